// `pi-ai`: models, requests and tool arguments.

export { StringEnum } from "pinion:packages/ai_schemas";
export { Type } from "pinion:packages/typebox";
export { AssistantMessageEventStream, EventStream, createAssistantMessageEventStream } from "pinion:packages/ai_events";
export {
  ANTHROPIC_API_KEY_ENV, ANTHROPIC_AUTH_TOKEN_ENV, ANTHROPIC_OAUTH_TOKEN_ENV, calculateCost, clampThinkingLevel, findEnvKeys,
  getEnvApiKey, getModel, getModels, getProviders, getSupportedThinkingLevels, modelsAreEqual, supportsXhigh,
} from "pinion:packages/ai_models";
export {
  clearApiProviders, complete, completeSimple, getApiProvider, getApiProviders, registerApiProvider, registerBuiltInApiProviders,
  resetApiProviders, setBedrockProviderModule, stream, streamAnthropic, streamAzureOpenAIResponses, streamGoogle,
  streamGoogleVertex, streamMistral, streamOpenAICodexResponses, streamOpenAICompletions, streamOpenAIResponses, streamSimple,
  streamSimpleAnthropic, streamSimpleAzureOpenAIResponses, streamSimpleGoogle, streamSimpleGoogleVertex, streamSimpleMistral,
  streamSimpleOpenAICodexResponses, streamSimpleOpenAICompletions, streamSimpleOpenAIResponses, unregisterApiProviders,
} from "pinion:packages/ai_stream";
export {
  InMemoryCredentialStore, InMemoryModelsStore, ModelsError, createModels, createProvider, defaultProviderAuthContext,
  envApiKeyAuth, getModelType, hasApi, isModelType, lazyApi, lazyOAuth, lazyStream,
} from "pinion:packages/ai_collections";
export {
  anthropicMessagesApi, azureOpenAIResponsesApi, bedrockConverseStreamApi, googleGenerativeAIApi, googleVertexApi,
  mistralConversationsApi, openAICodexResponsesApi, openAICompletionsApi, openAIResponsesApi,
} from "pinion:packages/ai_api";
export {
  generateImages, getImageModel, getImageModels, getImageProviders, getImagesApiProvider, registerBuiltInImagesApiProviders,
  registerImagesApiProvider,
} from "pinion:packages/ai_images";
export {
  collapseSystemMessages, contentText, createInitialSystemMessage, declarationsEqual, getCurrentSystemMessage,
  getCurrentSystemPrompt, getCurrentTools, getDeclaredTools, getInitialSystemMessage, getSystemMessageText, getToolStateChanges,
  hasNonAdditiveToolChanges, hasToolRedefinitions, normalizeContext, renderSystemMessageUpdate, resolveTranscript,
  resolveTranscriptTools, toToolDeclaration, withoutInitialSystemMessage,
} from "pinion:packages/ai_transcript";
export {
  DEFAULT_MAX_AGENT_RETRY_DELAY_MS, isRecoverableLength, isRetryableAssistantError, retryAssistantCall, retryDelayMs,
} from "pinion:packages/ai_retry";
export {
  PI_AI_VERSION, PI_ATTRIBUTION, formatUserAgent, getAttributionHeaders, getClientVersion, getIdentityHeaders,
  getOpenCodeSessionHeaders, mergeClientIdentity, withClientIdentity,
} from "pinion:packages/ai_identity";
export { uuidv7 } from "pinion:packages/ai_utils";
export {
  createFauxCore, fauxAssistantMessage, fauxProvider, fauxText, fauxThinking, fauxToolCall, registerFauxProvider,
} from "pinion:packages/ai_faux";
export {
  appendAssistantMessageDiagnostic, cleanupSessionResources, createAssistantMessageDiagnostic, extractDiagnosticError,
  formatThrownValue, getOverflowPatterns, isContextOverflow, parseJsonWithRepair, parseStreamingJson, parseToolCallArguments,
  registerSessionResourceCleanup, repairJson,
} from "pinion:packages/ai_diagnostics";
export { validateToolArguments, validateToolCall } from "pinion:packages/ai_validation";
