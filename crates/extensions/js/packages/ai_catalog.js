// The providers and models that the program knows, under the names of their modules.

import { ops } from "pinion:ops";
import { createModels, isModelType, nativeProvider } from "pinion:packages/ai_collections";
import { getModel, getModels, getProviders } from "pinion:packages/ai_models";

const ofType = (type) => (provider) => JSON.parse(ops.llm.models(String(provider))).filter((model) => isModelType(model, type));

export const getBuiltinModel = getModel;
export const getBuiltinModels = getModels;
export const getBuiltinProviders = getProviders;
export const getBuiltinImageModels = ofType("image");
export const getBuiltinClassifierModels = ofType("classifier");
export const getBuiltinImageModel = (provider, id) => getBuiltinImageModels(provider).find((model) => model.id === id);
export const getBuiltinClassifierModel = (provider, id) => getBuiltinClassifierModels(provider).find((model) => model.id === id);
export const getAllBuiltinModels = (provider) => JSON.parse(ops.llm.models(String(provider)));
export const getBuiltinModelDataGeneratedAt = () => undefined;

export const builtinProviders = () => getProviders().map(nativeProvider);
export function builtinModels(options) {
  const models = createModels(options);
  for (const provider of builtinProviders()) models.setProvider(provider);
  return models;
}

/** The provider functions, by provider. */
const FACTORIES = {
  amazonBedrock: "amazon-bedrock", antLing: "ant-ling", anthropic: "anthropic",
  azureOpenAIResponses: "azure-openai-responses", azure: "azure", baseten: "baseten", cerebras: "cerebras",
  cloudflareAIGateway: "cloudflare-ai-gateway", cloudflareWorkersAI: "cloudflare-workers-ai", deepseek: "deepseek",
  fireworks: "fireworks", githubCopilot: "github-copilot", google: "google", googleVertex: "google-vertex",
  groq: "groq", huggingface: "huggingface", kimiCoding: "kimi-coding", meta: "meta", minimax: "minimax",
  minimaxCn: "minimax-cn", mistral: "mistral", moonshotai: "moonshotai", moonshotaiCn: "moonshotai-cn",
  nvidia: "nvidia", openai: "openai", openaiCodex: "openai-codex", opencode: "opencode", opencodeGo: "opencode-go",
  openrouter: "openrouter", qwenTokenPlan: "qwen-token-plan", qwenTokenPlanCn: "qwen-token-plan-cn",
  qwenTokenPlanIndividual: "qwen-token-plan-individual", radius: "radius", together: "together", typesafe: "typesafe",
  vercelAIGateway: "vercel-ai-gateway", xai: "xai", xiaomi: "xiaomi", xiaomiTokenPlanAms: "xiaomi-token-plan-ams",
  xiaomiTokenPlanCn: "xiaomi-token-plan-cn", xiaomiTokenPlanSgp: "xiaomi-token-plan-sgp", zai: "zai",
  zaiCodingCn: "zai-coding-cn",
};
export const {
  amazonBedrockProvider, antLingProvider, anthropicProvider, azureOpenAIResponsesProvider, azureProvider,
  basetenProvider, cerebrasProvider, cloudflareAIGatewayProvider, cloudflareWorkersAIProvider, deepseekProvider,
  fireworksProvider, githubCopilotProvider, googleProvider, googleVertexProvider, groqProvider, huggingfaceProvider,
  kimiCodingProvider, metaProvider, minimaxProvider, minimaxCnProvider, mistralProvider, moonshotaiProvider,
  moonshotaiCnProvider, nvidiaProvider, openaiProvider, openaiCodexProvider, opencodeProvider, opencodeGoProvider,
  openrouterProvider, qwenTokenPlanProvider, qwenTokenPlanCnProvider, qwenTokenPlanIndividualProvider, radiusProvider,
  togetherProvider, typesafeProvider, vercelAIGatewayProvider, xaiProvider, xiaomiProvider,
  xiaomiTokenPlanAmsProvider, xiaomiTokenPlanCnProvider, xiaomiTokenPlanSgpProvider, zaiProvider, zaiCodingCnProvider,
} = Object.fromEntries(Object.entries(FACTORIES).map(([name, id]) => [`${name}Provider`, () => nativeProvider(id)]));

/** Creates an object of the models of a provider by id, which is filled when it is first read. */
function catalog(provider) {
  let models;
  const filled = () => (models ??= Object.fromEntries(getModels(provider).map((model) => [model.id, model])));
  return new Proxy({}, {
    get: (_, key) => filled()[key],
    has: (_, key) => key in filled(),
    ownKeys: () => Reflect.ownKeys(filled()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(filled(), key),
  });
}
export const {
  AMAZON_BEDROCK_MODELS, ANT_LING_MODELS, ANTHROPIC_MODELS, AZURE_OPENAI_RESPONSES_MODELS, AZURE_MODELS,
  BASETEN_MODELS, CEREBRAS_MODELS, CLOUDFLARE_AI_GATEWAY_MODELS, CLOUDFLARE_WORKERS_AI_MODELS, DEEPSEEK_MODELS,
  FIREWORKS_MODELS, GITHUB_COPILOT_MODELS, GOOGLE_MODELS, GOOGLE_VERTEX_MODELS, GROQ_MODELS, HUGGINGFACE_MODELS,
  KIMI_CODING_MODELS, META_MODELS, MINIMAX_MODELS, MINIMAX_CN_MODELS, MISTRAL_MODELS, MOONSHOTAI_MODELS,
  MOONSHOTAI_CN_MODELS, NVIDIA_MODELS, OPENAI_MODELS, OPENAI_CODEX_MODELS, OPENCODE_MODELS, OPENCODE_GO_MODELS,
  OPENROUTER_MODELS, QWEN_TOKEN_PLAN_MODELS, QWEN_TOKEN_PLAN_CN_MODELS, QWEN_TOKEN_PLAN_INDIVIDUAL_MODELS,
  RADIUS_MODELS, TOGETHER_MODELS, TYPESAFE_MODELS, VERCEL_AI_GATEWAY_MODELS, XAI_MODELS, XIAOMI_MODELS,
  XIAOMI_TOKEN_PLAN_AMS_MODELS, XIAOMI_TOKEN_PLAN_CN_MODELS, XIAOMI_TOKEN_PLAN_SGP_MODELS, ZAI_MODELS,
  ZAI_CODING_CN_MODELS,
} = Object.fromEntries(Object.values(FACTORIES).map((id) => [`${id.replaceAll("-", "_").toUpperCase()}_MODELS`, catalog(id)]));
