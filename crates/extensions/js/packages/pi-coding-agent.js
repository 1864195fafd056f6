// `pi-coding-agent`: the tools of the program, and helpers around them.

import { ops } from "pinion:ops";
import { allAbsent } from "pinion:packages/absent";

export * from "pinion:packages/coding_components";
export {
  DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, formatSize, parseFrontmatter, parseSkillBlock, stripFrontmatter, truncateHead, truncateLine,
  truncateTail,
} from "pinion:packages/coding_text";
export {
  bashTool, codingTools, createAllTools, createBashTool, createBashToolDefinition, createCodingTools, createEditTool,
  createEditToolDefinition, createFindTool, createFindToolDefinition, createGrepTool, createGrepToolDefinition, createLsTool,
  createLsToolDefinition, createReadOnlyTools, createReadTool, createReadToolDefinition, createWriteTool, createWriteToolDefinition,
  defineTool, editTool, findTool, grepTool, lsTool, readOnlyTools, readTool, withFileMutationQueue, writeTool,
} from "pinion:packages/coding_tools";
export { createAgentSession } from "pinion:packages/sdk_create";
export { AgentSession } from "pinion:packages/sdk_session";
export { DefaultPackageManager, DefaultResourceLoader, createExtensionRuntime } from "pinion:packages/sdk_loader";
export { CredentialSynchronizationError, ModelRuntime, resolveCliModel, resolveModelScopeWithDiagnostics } from "pinion:packages/sdk_models";
export { generateDiffString, generateUnifiedPatch } from "pinion:packages/coding_diff";
export {
  ProjectTrustStore, VIRTUAL_MODEL_STATE_ENTRY, buildContextEntries, buildSessionProjection, detectSupportedImageMimeTypeFromFile,
  formatDimensionNote, formatReadLineRange, getDocsPath, getExamplesPath, getReadmePath,
  hasTrustRequiringProjectResources, isPowerShellToolResult, resizeImage, sessionEntryToContextMessages,
} from "pinion:packages/coding_extras";
export { copyToClipboard, createLocalBashOperations, getShellConfig } from "pinion:packages/coding_bash";
export {
  convertToLlm, createEventBus, isBashToolResult, isEditToolResult, isFindToolResult, isGrepToolResult, isLsToolResult,
  isReadToolResult, isToolCallEventType, isWriteToolResult, serializeConversation,
} from "pinion:packages/coding_messages";
export {
  DEFAULT_COMPACTION_SETTINGS, calculateContextTokens, collectEntriesForBranchSummary, compact, estimateTokens, findCutPoint,
  findTurnStartIndex, generateBranchSummary, generateSummary, getLastAssistantUsage, prepareBranchEntries, shouldCompact,
} from "pinion:packages/coding_compaction";
export {
  CURRENT_SESSION_VERSION, SessionManager, buildSessionContext, getLatestCompactionEntry, migrateSessionEntries, parseSessionEntries,
} from "pinion:packages/coding_session";
export { AuthStorage, FileAuthStorageBackend, InMemoryAuthStorageBackend, ModelRegistry, SettingsManager } from "pinion:packages/coding_settings";
export { createSyntheticSourceInfo, formatSkillsForPrompt, loadProjectContextFiles, loadSkills, loadSkillsFromDir } from "pinion:packages/coding_skills";
export {
  Theme, getLanguageFromPath, getMarkdownTheme, getSelectListTheme, getSettingsListTheme, highlightCode, initTheme, keyHint, keyText,
  rawKeyHint, renderDiff,
} from "pinion:packages/coding_theme";

/** The pi release whose extension interface this is. */
export const VERSION = "0.73.1";
export const CONFIG_DIR_NAME = ".pi";
export const APP_NAME = "pi";
export const getAgentDir = () => ops.tools.agentDirectory();
export const getPackageDir = () => ops.tools.programDirectory();
export const getSettingsPath = () => `${getAgentDir()}/settings.json`;
export const getAuthPath = () => `${getAgentDir()}/auth.json`;
export const getModelsPath = () => `${getAgentDir()}/models.json`;
export const getSessionsDir = () => `${getAgentDir()}/sessions`;
export const getPromptsDir = () => `${getAgentDir()}/prompts`;
export const getBinDir = () => `${getAgentDir()}/bin`;
export const getToolsDir = () => `${getAgentDir()}/tools`;

/** Returns the stored credential of a provider, as it is on disk. */
export function readStoredCredential(provider) {
  try { return JSON.parse(ops.tools.readText(getAuthPath()) ?? "{}")[provider]; } catch { return undefined; }
}

export const wrapRegisteredTool = (registered, runner) => {
  const { definition } = registered;
  return { ...definition, execute: (id, params, signal, onUpdate) => definition.execute(id, params, signal, onUpdate, runner?.createContext?.()) };
};
export const wrapRegisteredTools = (registered, runner) => registered.map((tool) => wrapRegisteredTool(tool, runner));

export const {
  AgentSessionRuntime, ExtensionRunner, InteractiveMode, RpcClient, createAgentSessionFromServices, createAgentSessionRuntime,
  createAgentSessionServices, discoverAndLoadExtensions, main, runPrintMode, runRpcMode,
} = allAbsent("pi-coding-agent", [
  "AgentSessionRuntime", "ExtensionRunner", "InteractiveMode", "RpcClient", "createAgentSessionFromServices", "createAgentSessionRuntime",
  "createAgentSessionServices", "discoverAndLoadExtensions", "main", "runPrintMode", "runRpcMode",
]);
