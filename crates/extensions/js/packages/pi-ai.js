// `pi-ai`: models, requests and tool arguments.

export { StringEnum } from "pinion:packages/ai_schemas";
export { Type } from "pinion:packages/typebox";
export { AssistantMessageEventStream, EventStream, createAssistantMessageEventStream } from "pinion:packages/ai_events";
export {
  calculateCost, clampThinkingLevel, findEnvKeys, getEnvApiKey, getModel, getModels, getProviders, getSupportedThinkingLevels,
  modelsAreEqual, supportsXhigh,
} from "pinion:packages/ai_models";
export {
  clearApiProviders, complete, completeSimple, getApiProvider, getApiProviders, registerApiProvider, registerBuiltInApiProviders,
  resetApiProviders, setBedrockProviderModule, stream, streamAnthropic, streamAzureOpenAIResponses, streamGoogle, streamGoogleVertex,
  streamMistral, streamOpenAICodexResponses, streamOpenAICompletions, streamOpenAIResponses, streamSimple, streamSimpleAnthropic,
  streamSimpleAzureOpenAIResponses, streamSimpleGoogle, streamSimpleGoogleVertex, streamSimpleMistral,
  streamSimpleOpenAICodexResponses, streamSimpleOpenAICompletions, streamSimpleOpenAIResponses, unregisterApiProviders,
} from "pinion:packages/ai_stream";
export { fauxAssistantMessage, fauxText, fauxThinking, fauxToolCall, registerFauxProvider } from "pinion:packages/ai_faux";
export {
  appendAssistantMessageDiagnostic, cleanupSessionResources, createAssistantMessageDiagnostic, extractDiagnosticError,
  formatThrownValue, getOverflowPatterns, isContextOverflow, parseJsonWithRepair, parseStreamingJson, registerSessionResourceCleanup,
  repairJson,
} from "pinion:packages/ai_diagnostics";
export { validateToolArguments, validateToolCall } from "pinion:packages/ai_validation";
