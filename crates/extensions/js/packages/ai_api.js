// The APIs of providers as objects and modules of their own: all of them send the program's own requests.

import { nativeStream } from "pinion:packages/ai_stream";

export const stream = nativeStream;
export const streamSimple = nativeStream;

const api = () => ({ stream: nativeStream, streamSimple: nativeStream });
export const anthropicMessagesApi = () => api();
export const azureOpenAIResponsesApi = () => api();
export const bedrockConverseStreamApi = () => api();
export const googleGenerativeAIApi = () => api();
export const googleVertexApi = () => api();
export const mistralConversationsApi = () => api();
export const openAICodexResponsesApi = () => api();
export const openAICompletionsApi = () => api();
export const openAIResponsesApi = () => api();
export { lazyApi, lazyStream } from "pinion:packages/ai_collections";
