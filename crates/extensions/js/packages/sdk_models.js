// The program's models as the runtime that sessions of the SDK share.

import { ops } from "pinion:ops";
import { ModelsError, createModels, isModelType, nativeProvider } from "pinion:packages/ai_collections";
import { getSupportedThinkingLevels } from "pinion:packages/ai_models";
import { complete, completeSimple, stream, streamSimple } from "pinion:packages/ai_stream";
import { displayName } from "pinion:packages/provider_names";
import { lazy } from "pinion:runtime/lazy";

export class CredentialSynchronizationError extends Error {
  constructor(providerId, operation, credential, options) {
    super(`Credentials of ${providerId} could not be synchronized (${operation})`, options);
    Object.assign(this, { name: "CredentialSynchronizationError", providerId, operation, credential });
  }
}

const own = (what) => { throw new Error(`${what} of ModelRuntime is not available in this host: use the program itself`); };

/** Models and credentials of the program. Providers that are added here serve only the requests of this object. */
export class ModelRuntime {
  #added = createModels();

  static async create() { return new ModelRuntime(); }

  getAllModels(provider) {
    const all = [...JSON.parse(ops.llm.allModels()), ...this.#added.getAllModels()];
    return provider === undefined ? all : all.filter((model) => model.provider === provider);
  }
  getModelsOfType(type, provider) { return this.getAllModels(provider).filter((model) => isModelType(model, type)); }
  getModelOfType(type, provider, id) { return this.getModelsOfType(type, provider).find((model) => model.id === id); }
  getModels(provider) { return this.getModelsOfType("chat", provider); }
  getModel(provider, id) { return this.getModelOfType("chat", provider, id); }
  getPhysicalModel(provider, id) { return this.getModel(provider, id); }
  getProviders() { return [...new Set(this.getAllModels().map(({ provider }) => provider))].map((id) => this.getProvider(id)); }
  getProvider(id) { return this.#added.getProvider(id) ?? (this.getAllModels(id).length > 0 ? nativeProvider(id) : undefined); }
  getAvailableSnapshot() { return [...JSON.parse(ops.llm.availableModels()), ...this.#added.getModels()]; }
  async getAllAvailable(provider) { return this.getAvailableSnapshot().filter((model) => provider === undefined || model.provider === provider); }
  async getAvailableOfType(type, provider) { return (await this.getAllAvailable(provider)).filter((model) => isModelType(model, type)); }
  async getAvailable(provider) { return this.getAvailableOfType("chat", provider); }

  hasConfiguredAuth(provider) { return ops.llm.hasCredentials(provider) || this.#added.getProvider(provider) !== undefined; }
  isUsingOAuth() { return false; }
  isUsingSubscription() { return false; }
  async checkAuth(provider) { return this.hasConfiguredAuth(provider) ? { type: "api_key" } : undefined; }
  async getAuth(target, overrides) {
    const provider = typeof target === "string" ? target : target.provider;
    if (this.#added.getProvider(provider)) return this.#added.getAuth(target, overrides);
    const model = typeof target === "string" ? this.getModels(provider)[0] : target;
    if (!model) return undefined;
    const granted = JSON.parse(await ops.llm.access(JSON.stringify(model)));
    const apiKey = overrides?.apiKey ?? granted.apiKey;
    return granted.ok || apiKey !== undefined ? { auth: { apiKey, headers: granted.headers } } : undefined;
  }
  getProviderAuthStatus(provider) { return { configured: this.hasConfiguredAuth(provider) }; }
  getProviderDisplayName(provider) { return displayName(provider); }
  async listCredentials() { return []; }
  getError() { return undefined; }
  async refresh() { return { aborted: false, errors: new Map() }; }

  #streams(model) { return this.#added.getProvider(model.provider) ? this.#added : { stream, complete, streamSimple, completeSimple }; }
  stream(model, context, options) { return this.#streams(model).stream(model, context, options); }
  complete(model, context, options) { return this.#streams(model).complete(model, context, options); }
  streamSimple(model, context, options) { return this.#streams(model).streamSimple(model, context, options); }
  completeSimple(model, context, options) { return this.#streams(model).completeSimple(model, context, options); }
  generateImages(model, context, options) { return this.#added.generateImages(model, context, options); }
  classify(model, context, options) { return this.#added.classify(model, context, options); }

  registerNativeProvider(provider) { this.#added.setProvider(provider); }
  getRegisteredNativeProvider(id) { return this.#added.getProvider(id); }
  registerProvider(id, config) { lazy("api/providers").registerProvider(id, config); }
  unregisterProvider(id) { if (this.#added.getProvider(id)) this.#added.deleteProvider(id); else lazy("api/providers").unregisterProvider(id); }
  getRegisteredProviderIds() { return this.#added.getProviders().map(({ id }) => id); }
  getRegisteredProviderConfig() { return undefined; }
  async setRuntimeApiKey() { own("setRuntimeApiKey"); }
  async removeRuntimeApiKey() {}
  async login(provider) { throw new ModelsError("auth", `Log in to ${provider} with the program itself`); }
  async logout() { own("logout"); }
}

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Finds the model that a reference such as `provider/id:level` names. */
export function resolveCliModel({ cliProvider, cliModel, cliThinking, modelRuntime = new ModelRuntime() }) {
  if (!cliModel) return { model: undefined, thinkingLevel: cliThinking, warning: undefined, error: undefined };
  const all = modelRuntime.getModels();
  const usable = new Set(modelRuntime.getAvailableSnapshot().map(({ provider, id }) => `${provider}/${id}`));
  const find = (reference) => {
    const wanted = (cliProvider ? `${cliProvider}/${reference}` : reference).toLowerCase();
    const ranked = all.filter(({ provider, id }) => `${provider}/${id}`.toLowerCase() === wanted || (!cliProvider && id.toLowerCase() === wanted));
    const similar = ranked.length > 0 ? ranked : all.filter(({ provider, id }) => `${provider}/${id}`.toLowerCase().includes(wanted));
    return similar.find(({ provider, id }) => usable.has(`${provider}/${id}`)) ?? similar[0];
  };
  let [model, thinkingLevel] = [find(cliModel), cliThinking];
  const end = cliModel.lastIndexOf(":");
  if (!model && end > 0 && LEVELS.includes(cliModel.slice(end + 1))) {
    model = find(cliModel.slice(0, end));
    thinkingLevel ??= cliModel.slice(end + 1);
  }
  const error = model ? undefined : `Model "${cliModel}" not found. Use --list-models to see available models.`;
  return { model, thinkingLevel, warning: undefined, error };
}

/** Finds the models that patterns with optional levels name. */
export function resolveModelScopeWithDiagnostics(patterns, modelRuntime) {
  const found = patterns.map((cliModel) => ({ cliModel, ...resolveCliModel({ cliModel, modelRuntime }) }));
  return {
    scopedModels: found.filter(({ model }) => model).map(({ model, thinkingLevel }) => ({ model, thinkingLevel })),
    diagnostics: found.filter(({ model }) => !model).map(({ cliModel }) => ({ type: "warning", message: `No models match pattern "${cliModel}"` })),
  };
}

/** Returns the level, or the nearest one that the model supports. */
export function levelFor(model, level) {
  if (!model) return level ?? "off";
  const supported = getSupportedThinkingLevels(model);
  if (supported.includes(level)) return level;
  const at = LEVELS.indexOf(level ?? "off");
  return supported.findLast((known) => LEVELS.indexOf(known) <= at) ?? supported[0] ?? "off";
}
