// Models that draw images. The program has none of its own; extensions register the APIs they bring.

import { ops } from "pinion:ops";

const apis = new Map();

export function registerImagesApiProvider(provider, sourceId) { apis.set(provider.api, { ...provider, sourceId }); }
export const getImagesApiProvider = (api) => apis.get(api);
export const registerBuiltInImagesApiProviders = () => {};

const images = (provider) => JSON.parse(ops.llm.models(String(provider))).filter(({ type }) => type === "image");
export const getImageModel = (provider, id) => images(provider).find((model) => model.id === id);
export const getImageModels = (provider) => images(provider);
export const getImageProviders = () => [...new Set(JSON.parse(ops.llm.allModels()).filter(({ type }) => type === "image").map(({ provider }) => provider))];

export async function generateImages(model, context, options) {
  const provider = apis.get(model.api);
  if (!provider) throw new Error(`No image API provider registered for api: ${model.api}`);
  return provider.generateImages(model, context, options);
}
