//! Every name of the packages that extensions import can be imported.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::Bench;

/// The public names of each package, as released.
const NAMES: &[(&str, &str)] = &[
    (
        "@mariozechner/pi-ai",
        "AssistantMessageEventStream EventStream StringEnum Type appendAssistantMessageDiagnostic \
         calculateCost clampThinkingLevel cleanupSessionResources clearApiProviders complete \
         completeSimple createAssistantMessageDiagnostic createAssistantMessageEventStream \
         extractDiagnosticError fauxAssistantMessage fauxText fauxThinking fauxToolCall findEnvKeys \
         formatThrownValue getApiProvider getApiProviders getEnvApiKey getModel getModels \
         getOverflowPatterns getProviders getSupportedThinkingLevels isContextOverflow modelsAreEqual \
         parseJsonWithRepair parseStreamingJson registerApiProvider registerBuiltInApiProviders \
         registerFauxProvider registerSessionResourceCleanup repairJson resetApiProviders \
         setBedrockProviderModule stream streamAnthropic streamAzureOpenAIResponses streamGoogle \
         streamGoogleVertex streamMistral streamOpenAICodexResponses streamOpenAICompletions \
         streamOpenAIResponses streamSimple streamSimpleAnthropic streamSimpleAzureOpenAIResponses \
         streamSimpleGoogle streamSimpleGoogleVertex streamSimpleMistral streamSimpleOpenAICodexResponses \
         streamSimpleOpenAICompletions streamSimpleOpenAIResponses unregisterApiProviders \
         validateToolArguments validateToolCall",
    ),
    (
        "@mariozechner/pi-ai/oauth",
        "anthropicOAuthProvider getGitHubCopilotBaseUrl getOAuthApiKey getOAuthProvider \
         getOAuthProviderInfoList getOAuthProviders githubCopilotOAuthProvider loginAnthropic \
         loginGitHubCopilot loginOpenAICodex normalizeDomain openaiCodexOAuthProvider \
         refreshAnthropicToken refreshGitHubCopilotToken refreshOAuthToken refreshOpenAICodexToken \
         registerOAuthProvider resetOAuthProviders unregisterOAuthProvider",
    ),
    (
        "@mariozechner/pi-agent-core",
        "Agent agentLoop agentLoopContinue runAgentLoop runAgentLoopContinue streamProxy",
    ),
    (
        "@mariozechner/pi-coding-agent",
        "AgentSession AgentSessionRuntime ArminComponent AssistantMessageComponent AuthStorage \
         BashExecutionComponent BorderedLoader BranchSummaryMessageComponent CURRENT_SESSION_VERSION \
         CompactionSummaryMessageComponent CustomEditor CustomMessageComponent \
         DEFAULT_COMPACTION_SETTINGS DEFAULT_MAX_BYTES DEFAULT_MAX_LINES DefaultPackageManager \
         DefaultResourceLoader DynamicBorder ExtensionEditorComponent ExtensionInputComponent \
         ExtensionRunner ExtensionSelectorComponent FileAuthStorageBackend FooterComponent \
         InMemoryAuthStorageBackend InteractiveMode LoginDialogComponent ModelRegistry \
         ModelSelectorComponent OAuthSelectorComponent RpcClient SessionManager SessionSelectorComponent \
         SettingsManager SettingsSelectorComponent ShowImagesSelectorComponent \
         SkillInvocationMessageComponent Theme ThemeSelectorComponent ThinkingSelectorComponent \
         ToolExecutionComponent TreeSelectorComponent UserMessageComponent UserMessageSelectorComponent \
         VERSION buildSessionContext calculateContextTokens collectEntriesForBranchSummary compact \
         convertToLlm copyToClipboard createAgentSession createAgentSessionFromServices \
         createAgentSessionRuntime createAgentSessionServices createBashTool createBashToolDefinition \
         createCodingTools createEditTool createEditToolDefinition createEventBus createExtensionRuntime \
         createFindTool createFindToolDefinition createGrepTool createGrepToolDefinition \
         createLocalBashOperations createLsTool createLsToolDefinition createReadOnlyTools createReadTool \
         createReadToolDefinition createSyntheticSourceInfo createWriteTool createWriteToolDefinition \
         defineTool discoverAndLoadExtensions estimateTokens findCutPoint findTurnStartIndex formatSize \
         formatSkillsForPrompt generateBranchSummary generateSummary getAgentDir getLanguageFromPath \
         getLastAssistantUsage getLatestCompactionEntry getMarkdownTheme getSelectListTheme \
         getSettingsListTheme getShellConfig highlightCode initTheme isBashToolResult isEditToolResult \
         isFindToolResult isGrepToolResult isLsToolResult isReadToolResult isToolCallEventType \
         isWriteToolResult keyHint keyText loadProjectContextFiles loadSkills loadSkillsFromDir main \
         migrateSessionEntries parseFrontmatter parseSessionEntries parseSkillBlock prepareBranchEntries \
         rawKeyHint renderDiff runPrintMode runRpcMode serializeConversation shouldCompact \
         stripFrontmatter truncateHead truncateLine truncateTail truncateToVisualLines \
         withFileMutationQueue wrapRegisteredTool wrapRegisteredTools",
    ),
    (
        "@mariozechner/pi-tui",
        "Box CURSOR_MARKER CancellableLoader CombinedAutocompleteProvider Container Editor Image Input \
         Key KeybindingsManager Loader Markdown ProcessTerminal SelectList SettingsList Spacer \
         StdinBuffer TUI TUI_KEYBINDINGS Text TruncatedText allocateImageId calculateImageRows \
         decodeKittyPrintable deleteAllKittyImages deleteKittyImage detectCapabilities encodeITerm2 \
         encodeKitty fuzzyFilter fuzzyMatch getCapabilities getCellDimensions getGifDimensions \
         getImageDimensions getJpegDimensions getKeybindings getPngDimensions getWebpDimensions hyperlink \
         imageFallback isFocusable isKeyRelease isKeyRepeat isKittyProtocolActive matchesKey parseKey \
         renderImage resetCapabilitiesCache setCapabilities setCellDimensions setKeybindings \
         setKittyProtocolActive truncateToWidth visibleWidth wrapTextWithAnsi",
    ),
    (
        "typebox",
        "AddImmutable AddImmutableDeferred AddOptional AddOptionalDeferred AddReadonly \
         AddReadonlyDeferred Any Array ArrayOptions BigInt BigIntPattern Boolean Broaden Call \
         CallConstruct Capitalize CapitalizeAction CapitalizeDeferred CapitalizeInstantiate Codec \
         CollapseToObject Compare CompareResultDisjoint CompareResultEqual CompareResultLeftInside \
         CompareResultRightInside Composite Conditional ConditionalAction ConditionalDeferred \
         ConditionalInstantiate Constructor ConstructorOptions ConstructorParameters \
         ConstructorParametersAction ConstructorParametersDeferred ConstructorParametersInstantiate \
         ConvertToIntegerKey Cyclic CyclicCandidates CyclicCheck CyclicDependencies CyclicExtends \
         CyclicOptions CyclicTarget Decode DecodeBuilder Deferred Dependent DependentOptions Distribute \
         Encode EncodeBuilder Enum Evaluate EvaluateAction EvaluateDeferred EvaluateDependent \
         EvaluateEnum EvaluateInstantiate EvaluateIntersect EvaluatePropertyIntersect \
         EvaluatePropertyUnion EvaluateTemplateLiteral EvaluateType EvaluateUnion EvaluateUnionFast \
         Exclude ExcludeAction ExcludeDeferred ExcludeInstantiate Extends ExtendsResult Extract \
         ExtractAction ExtractDeferred ExtractInstantiate Flatten Function FunctionOptions Generic \
         Identifier Immutable Index IndexAction IndexDeferred IndexInstantiate Infer InstanceType \
         InstanceTypeAction InstanceTypeDeferred InstanceTypeInstantiate Instantiate InstantiateCyclic \
         Integer IntegerKey IntegerPattern Interface InterfaceAction InterfaceDeferred \
         InterfaceInstantiate Intersect IntersectOptions InvalidLiteralValue IsAny IsArray IsBigInt \
         IsBoolean IsCall IsCodec IsConstructor IsCyclic IsDeferred IsDependent IsEnum IsEnumValue \
         IsFunction IsGeneric IsIdentifier IsImmutable IsInfer IsInteger IsInterfaceDeferred IsIntersect \
         IsKind IsLiteral IsLiteralBigInt IsLiteralBoolean IsLiteralNumber IsLiteralString IsLiteralValue \
         IsNever IsNull IsNumber IsObject IsOptional IsParameter IsReadonly IsRecord IsRef IsRefine \
         IsRefinement IsRest IsSchema IsString IsSymbol IsTemplateLiteral IsTemplateLiteralDeferred \
         IsTemplateLiteralFinite IsTemplateLiteralPattern IsThis IsTuple IsTypeScriptEnumLike IsUndefined \
         IsUnion IsUnknown IsUnsafe IsVoid KeyOf KeyOfAction KeyOfDeferred KeyOfInstantiate KeysToIndexer \
         Literal LiteralTypeName Lowercase LowercaseAction LowercaseDeferred LowercaseInstantiate Mapped \
         MappedAction MappedDeferred MappedInstantiate Module ModuleDeferred ModuleInstantiate Narrow \
         Never NeverPattern NonNullable NonNullableAction NonNullableDeferred NonNullableInstantiate Null \
         Number NumberKey NumberPattern Object ObjectOptions Omit OmitAction OmitDeferred OmitInstantiate \
         Optional Parameter Parameters ParametersAction ParametersDeferred ParametersInstantiate \
         ParsePatternIntoTypes ParseTemplateIntoTypes Partial PartialAction PartialDeferred \
         PartialInstantiate Pick PickAction PickDeferred PickInstantiate Priority PropertyKeys \
         PropertyValues Readonly ReadonlyObject ReadonlyObjectAction ReadonlyObjectDeferred \
         ReadonlyObjectInstantiate ReadonlyType Record RecordAction RecordDeferred RecordFromPattern \
         RecordInstantiate RecordKey RecordOptions RecordPattern RecordPatternToType RecordValue Ref \
         RefInstantiate Refine RefineAdd RemoveImmutable RemoveImmutableDeferred RemoveOptional \
         RemoveOptionalDeferred RemoveReadonly RemoveReadonlyDeferred Required RequiredAction \
         RequiredArray RequiredDeferred RequiredInstantiate Rest ReturnType ReturnTypeAction \
         ReturnTypeDeferred ReturnTypeInstantiate Script String StringKey StringPattern Symbol \
         TemplateLiteral TemplateLiteralCreate TemplateLiteralDecode TemplateLiteralDecodeUnsafe \
         TemplateLiteralDeferred TemplateLiteralEncode TemplateLiteralFromString TemplateLiteralFromTypes \
         This Tuple TupleOptions Type TypeScriptEnumToEnumValues Uncapitalize UncapitalizeAction \
         UncapitalizeDeferred UncapitalizeInstantiate Undefined Union UnionOptions Unknown Unsafe \
         Uppercase UppercaseAction UppercaseDeferred UppercaseInstantiate Void With WithAction \
         WithDeferred WithInstantiate _Array_ _Function_ _Object_",
    ),
    ("typebox/compile", "Code Compile Validator"),
    (
        "typebox/value",
        "Assert AssertError Check Clean Clone Convert Create CreateError Decode DecodeError DecodeUnsafe \
         Default Delete Diff Edit Encode EncodeError EncodeUnsafe Equal Errors HasCodec Hash Insert \
         IsOptionalUndefined Parse ParseError Parser Patch Pipeline Pointer Repair UnionPrioritySort \
         UnionScoreSelect Update Value",
    ),
];

async fn import_all(module: &str, names: &str) {
    let bench = Bench::new().await;
    let list = names.split_whitespace().collect::<Vec<_>>();
    let renamed: Vec<String> = list
        .iter()
        .map(|name| format!("{name} as _{name}"))
        .collect();
    let values: Vec<String> = list
        .iter()
        .map(|name| format!("[{name:?}, typeof _{name}]"))
        .collect();
    bench.write(
        "a.ts",
        &format!(
            "import {{ {} }} from {module:?};
             import * as all from {module:?};
             export default () => [{}].filter(([name, type]) => type === 'undefined' || !(name in all));",
            renamed.join(", "),
            values.join(", "),
        ),
    );
    assert_eq!(bench.run("a.ts").await.unwrap(), json!([]), "{module}");
}

#[tokio::test]
async fn every_public_name_can_be_imported() {
    for (module, names) in NAMES {
        import_all(module, names).await;
    }
}

#[tokio::test]
async fn both_scopes_import_the_same_packages() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "import * as old from '@mariozechner/pi-ai';
         import * as young from '@earendil-works/pi-ai';
         import { Type } from 'typebox';
         import { Type as Older } from '@sinclair/typebox';
         import { TypeCompiler } from '@sinclair/typebox/compiler';
         import { getAgentDir, CONFIG_DIR_NAME, VERSION } from '@earendil-works/pi-coding-agent';
         export default () => [old.complete === young.complete, Type === Older, typeof TypeCompiler.Compile, typeof getAgentDir(), CONFIG_DIR_NAME, VERSION];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([true, true, "function", "string", ".pi", "0.73.1"])
    );
}

#[tokio::test]
async fn an_unimplemented_name_throws_its_name_when_used() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        "import { createAgentSessionRuntime, AgentSessionRuntime, RpcClient } from '@mariozechner/pi-coding-agent';
         class Mine extends RpcClient {}
         const said = (work: () => unknown) => { try { return work() } catch (error) { return (error as Error).message } };
         export default () => [said(() => createAgentSessionRuntime()), said(() => new AgentSessionRuntime()), said(() => new Mine())];",
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([
            "createAgentSessionRuntime of pi-coding-agent is not available in this host",
            "AgentSessionRuntime of pi-coding-agent is not available in this host",
            "RpcClient of pi-coding-agent is not available in this host",
        ])
    );
}

#[tokio::test]
async fn modules_of_later_releases_exist_and_their_names_mean_something() {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        r#"import { anthropicMessagesApi, openAICompletionsApi, createProvider, createModels, envApiKeyAuth, getCurrentTools, normalizeContext, fauxProvider, fauxAssistantMessage, PI_AI_VERSION } from "@earendil-works/pi-ai/compat";
        import { builtinModels, openaiProvider, getBuiltinModel } from "@earendil-works/pi-ai/providers/all";
        import { anthropicProvider } from "@earendil-works/pi-ai/providers/anthropic";
        import { stream, convertMessages } from "@earendil-works/pi-ai/api/openai-completions";
        import { sanitizeSurrogates } from "@earendil-works/pi-ai/utils/sanitize-unicode";
        import { ModelRuntime, generateUnifiedPatch, parseArgs } from "@earendil-works/pi-coding-agent";
        import { VStack, stripTerminalSequences } from "@earendil-works/pi-tui";
        import { uuidv7 } from "@earendil-works/pi-agent-core";
        const said = (work: () => unknown) => { try { return work(); } catch (error) { return (error as Error).message; } };
        export default async () => {
          const faux = fauxProvider({ provider: "f" });
          faux.setResponses([fauxAssistantMessage("from the collection")]);
          const models = createModels();
          models.setProvider(faux.provider);
          const answer = await models.completeSimple(models.getModels()[0], { systemPrompt: "s", messages: [] });
          const own = createProvider({ id: "own", auth: { apiKey: envApiKeyAuth("Own", ["OWN_KEY"]) }, models: [{ id: "m", provider: "own", api: "x" }], api: { x: { stream, streamSimple: stream } } });
          models.setProvider(own);
          const auth = [await models.checkAuth("own"), (await models.getAuth("own", { env: { OWN_KEY: "k" } }))?.auth.apiKey];
          const context = normalizeContext({ systemPrompt: "p", tools: [{ name: "t" }], messages: [] });
          return [
            answer.content[0].text, auth, [typeof anthropicMessagesApi().stream, typeof openAICompletionsApi().streamSimple], getCurrentTools(context.messages).map(({ name }) => name),
            [openaiProvider().name, anthropicProvider().id, builtinModels().getProviders().length, typeof getBuiltinModel], said(() => convertMessages()), sanitizeSurrogates("a\ud800b"),
            typeof (await ModelRuntime.create()).getModels, generateUnifiedPatch("f", "a\nb\nc\n", "a\nx\nc\n").split("\n"), said(() => parseArgs([])),
            new VStack([{ render: () => ["1"] }, { render: () => ["2"] }]).render(5), stripTerminalSequences("\u001b[1mb\u001b]8;;u\u0007c"), uuidv7().length, typeof PI_AI_VERSION,
          ];
        };"#,
    );
    assert_eq!(
        bench.run("a.ts").await.unwrap(),
        json!([
            "from the collection",
            [null, "k"],
            ["function", "function"],
            ["t"],
            ["OpenAI", "anthropic", 0, "function"],
            "'convertMessages' of '@mariozechner/pi-ai/api' is not available to extensions here",
            "ab",
            "function",
            [
                "--- f",
                "+++ f",
                "@@ -1,3 +1,3 @@",
                " a",
                "-b",
                "+x",
                " c",
                ""
            ],
            "'parseArgs' of '@mariozechner/pi-coding-agent' is not available to extensions here",
            ["1", "2"],
            "bc",
            36,
            "string",
        ])
    );
}

#[tokio::test]
async fn require_gives_all_names_of_a_package() {
    let bench = Bench::new().await;
    bench.write(
        "a.cjs",
        r#"const { Type } = require("typebox");
        const old = require("@sinclair/typebox");
        const fs = require("node:fs");
        module.exports = () => [Type.String().type, typeof old.Type.Object, typeof require("@mariozechner/pi-tui").Text, typeof fs.readFileSync];"#,
    );
    bench.write("b.ts", "import run from './a.cjs'; export default run;");
    assert_eq!(
        bench.run("b.ts").await.unwrap(),
        json!(["string", "function", "function", "function"])
    );
}
