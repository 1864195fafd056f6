// Collections of providers: their models, their credentials, and requests to them.

import { ops } from "pinion:ops";
import { AssistantMessageEventStream, failWith } from "pinion:packages/ai_events";
import { nativeStream } from "pinion:packages/ai_stream";
import { normalizeContext } from "pinion:packages/ai_transcript";
import { displayName } from "pinion:packages/provider_names";

export class ModelsError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = "ModelsError";
    this.code = code;
  }
}

export const getModelType = (model) => model.type ?? "chat";
export const isModelType = (model, type) => getModelType(model) === type;
export const hasApi = (model, api) => model.api === api;

/** Returns a stream at once; its events come from the one that `setup` promises. */
export function lazyStream(model, setup, observer) {
  const stream = new AssistantMessageEventStream();
  const run = async () => {
    for await (const event of await setup()) {
      observer?.onEvent?.(event);
      stream.push(event);
    }
  };
  run().catch((error) => failWith(stream, model, error)).finally(() => stream.end());
  if (observer?.onResult) stream.result().then((result) => observer.onResult(result));
  return stream;
}

/** Wraps an API whose functions are loaded with the first request. */
export function lazyApi(load, capabilities = {}) {
  let loading;
  const api = () => (loading ??= load());
  const later = (name) => (model, context, options) => lazyStream(model, async () => (await api())[name](model, context, options));
  const wrapped = { stream: later("stream"), streamSimple: later("streamSimple") };
  if (capabilities.fetchDeferred) wrapped.fetchDeferred = later("fetchDeferred");
  if (capabilities.cancelDeferred) wrapped.cancelDeferred = async (...given) => (await api()).cancelDeferred(...given);
  return wrapped;
}

export function lazyOAuth({ load, ...rest }) {
  let loading;
  const oauth = () => (loading ??= load());
  return {
    ...rest,
    login: async (...given) => (await oauth()).login(...given),
    refresh: async (...given) => (await oauth()).refresh(...given),
    toAuth: async (credential) => (await oauth()).toAuth(credential),
  };
}

/** Returns key authentication: a stored key, or the first variable that is set. */
export function envApiKeyAuth(name, variables) {
  const find = async ({ ctx, credential }) => {
    if (credential?.key) return { key: credential.key, source: "stored credential", env: credential.env };
    for (const variable of variables) {
      const key = credential?.env?.[variable] || await ctx.env(variable);
      if (key) return { key, source: variable, env: credential?.env };
    }
    return undefined;
  };
  return {
    name,
    async login(interaction) { return { type: "api_key", key: await interaction.prompt({ type: "secret", message: `Enter ${name}` }) }; },
    async check(input) {
      const found = await find(input);
      return found && { source: found.source, type: "api_key" };
    },
    async resolve(input) {
      const found = await find(input);
      return found && { auth: { apiKey: found.key }, env: found.env, source: found.source };
    },
  };
}

export const defaultProviderAuthContext = () => ({
  env: async (name) => process.env[name]?.trim() || undefined,
  fileExists: async (path) => ops.tools.readText(path.replace(/^~(?=\/|$)/, process.env.HOME ?? "~")) !== undefined,
});

export class InMemoryCredentialStore {
  #credentials = new Map();
  #last = new Map();

  async read(id) { return this.#credentials.get(id); }
  async list() { return [...this.#credentials].map(([providerId, { type }]) => ({ providerId, type })); }
  /** Changes a credential after earlier changes of it are done. */
  modify(id, change) {
    const work = async () => {
      const next = await change(this.#credentials.get(id));
      if (next !== undefined) this.#credentials.set(id, next);
      return this.#credentials.get(id);
    };
    const done = (this.#last.get(id) ?? Promise.resolve()).then(work, work);
    this.#last.set(id, done.catch(() => {}));
    return done;
  }
  async delete(id) { this.#credentials.delete(id); }
}

export class InMemoryModelsStore {
  #entries = new Map();
  async read(id) { return this.#entries.get(id); }
  async write(id, entry) { this.#entries.set(id, entry); }
  async delete(id) { this.#entries.delete(id); }
}

/** Creates a provider of its parts. */
export function createProvider({ id, name = id, baseUrl, headers, auth, models, fetchModels, filterModels, filterAllModels, api, images = {}, classifiers = {} }) {
  let known = [...models];
  const streams = (model) => {
    const found = typeof api?.streamSimple === "function" ? api : api?.[model.api];
    if (!found) throw new ModelsError("stream", `Provider ${id} has no API ${model.api}`);
    return found;
  };
  const provider = {
    id, name, baseUrl, headers, auth,
    getModels: () => known.filter((model) => isModelType(model, "chat")),
    getAllModels: () => known,
    stream: (model, context, options) => streams(model).stream(model, context, options),
    streamSimple: (model, context, options) => streams(model).streamSimple(model, context, options),
  };
  if (filterModels) provider.filterModels = filterModels;
  if (filterAllModels) provider.filterAllModels = filterAllModels;
  if (fetchModels) {
    provider.refreshModels = async (context) => {
      const fetched = await fetchModels(context);
      const update = () => { known = [...fetched]; };
      if (context?.publish) await context.publish({ persist: { models: fetched }, update }); else update();
    };
  }
  const special = (apis, member, kind) => async (model, context, options) => {
    if (!apis[model.api]) throw new ModelsError(kind, `Provider ${id} has no ${kind} API ${model.api}`);
    return apis[model.api][member](model, context, options);
  };
  if (Object.keys(images).length > 0) provider.generateImages = special(images, "generateImages", "image");
  if (Object.keys(classifiers).length > 0) provider.classify = special(classifiers, "classify", "classifier");
  return provider;
}

/** Creates the provider called `id` on the program's own models and requests. */
export function nativeProvider(id) {
  const variables = JSON.parse(ops.llm.keyVariables(id));
  const models = () => JSON.parse(ops.llm.models(id));
  return {
    id, name: displayName(id), baseUrl: undefined,
    auth: { apiKey: envApiKeyAuth(`${displayName(id)} API key`, variables) },
    getModels: () => models().filter((model) => isModelType(model, "chat")),
    getAllModels: models, stream: nativeStream, streamSimple: nativeStream,
  };
}

const STORED_VALIDITY = 5 * 60 * 1000;

/** A collection of providers, with their credentials. */
class Models {
  #providers = new Map(); #credentials; #context; #store; #identity;

  constructor({ credentials = new InMemoryCredentialStore(), modelsStore = new InMemoryModelsStore(), authContext = defaultProviderAuthContext(), identity }) {
    this.#credentials = credentials;
    this.#store = modelsStore;
    this.#context = authContext;
    this.#identity = identity;
  }

  setProvider(provider) { this.#providers.set(provider.id, provider); }
  deleteProvider(id) { this.#providers.delete(id); }
  clearProviders() { this.#providers.clear(); }
  getProviders() { return [...this.#providers.values()]; }
  getProvider(id) { return this.#providers.get(id); }
  getAllModels(id) {
    const providers = id === undefined ? this.getProviders() : [this.getProvider(id)].filter(Boolean);
    return providers.flatMap((provider) => provider.getAllModels?.() ?? provider.getModels());
  }
  getModelsOfType(type, id) { return this.getAllModels(id).filter((model) => isModelType(model, type)); }
  getModels(id) { return this.getModelsOfType("chat", id); }
  getModelOfType(type, provider, id) { return this.getModelsOfType(type, provider).find((model) => model.id === id); }
  getModel(provider, id) { return this.getModelOfType("chat", provider, id); }

  async refresh({ allowNetwork = true, providers, force, signal = new AbortController().signal } = {}) {
    const errors = new Map();
    for (const provider of this.getProviders()) {
      if (!provider.refreshModels || (providers && !providers.includes(provider.id))) continue;
      const publish = async ({ persist, update }) => {
        if (persist === null) await this.#store.delete(provider.id); else if (persist) await this.#store.write(provider.id, persist);
        update?.();
        return true;
      };
      try {
        const [credential, stored] = [await this.#credentials.read(provider.id), await this.#store.read(provider.id)];
        await provider.refreshModels({ credential, stored, publish, allowNetwork, force, signal, baseUrl: provider.baseUrl });
      } catch (error) { errors.set(provider.id, error); }
    }
    return { aborted: signal.aborted, errors };
  }

  async #stored(provider, credential) {
    const { oauth } = provider.auth;
    const old = ({ expires }) => Date.now() + STORED_VALIDITY >= expires;
    const fresh = !old(credential) ? credential : await this.#credentials.modify(provider.id, async (current) =>
      (current?.type === "oauth" && old(current) ? oauth.refresh(current, AbortSignal.timeout(15000)) : undefined));
    return fresh?.type === "oauth" ? { auth: await oauth.toAuth(fresh), source: "OAuth" } : undefined;
  }
  async getAuth(target, overrides = {}) {
    const provider = this.getProvider(typeof target === "string" ? target : target.provider);
    if (!provider) return undefined;
    const { apiKey, oauth } = provider.auth;
    const context = overrides.env ? { ...this.#context, env: async (name) => overrides.env[name] || this.#context.env(name) } : this.#context;
    const signal = overrides.signal ?? new AbortController().signal;
    const resolve = (credential) => apiKey?.resolve({ ctx: context, credential, signal });
    if (overrides.apiKey !== undefined && apiKey) return resolve({ type: "api_key", key: overrides.apiKey, env: overrides.env });
    const stored = await this.#credentials.read(provider.id);
    if (stored?.type === "oauth" && oauth) return this.#stored(provider, stored);
    return resolve(stored?.type === "api_key" ? stored : undefined);
  }
  async checkAuth(id) {
    const stored = await this.#credentials.read(id);
    if (stored?.type === "oauth") return { type: "oauth", source: "OAuth" };
    const found = await this.getAuth(id);
    return found && { type: "api_key", source: found.source };
  }
  async getAllAvailable(id) {
    const models = [];
    for (const provider of id === undefined ? this.getProviders() : [this.getProvider(id)].filter(Boolean)) {
      if (await this.checkAuth(provider.id)) models.push(...this.getAllModels(provider.id));
    }
    return models;
  }
  async getAvailableOfType(type, id) { return (await this.getAllAvailable(id)).filter((model) => isModelType(model, type)); }
  async getAvailable(id) { return this.getAvailableOfType("chat", id); }

  async login(id, type, interaction, options) {
    const provider = this.#known(id);
    const auth = type === "oauth" ? provider.auth.oauth : provider.auth.apiKey;
    if (!auth?.login) throw new ModelsError("auth", `Provider ${id} has no ${type} login`);
    const credential = await auth.login({ signal: new AbortController().signal, ...interaction }, options);
    await this.#credentials.modify(id, async () => credential);
    return credential;
  }
  async logout(id) { await this.#credentials.delete(id); }

  #known(id) {
    const provider = this.getProvider(id);
    if (!provider) throw new ModelsError("provider", `Unknown provider: ${id}`);
    return provider;
  }
  async #request(model, { transformHeaders, ...options } = {}) {
    const provider = this.#known(model.provider);
    const found = await this.getAuth(model, options);
    let headers = { ...provider.headers, ...found?.auth.headers, ...options.headers };
    if (transformHeaders) headers = await transformHeaders(headers);
    const request = { identity: this.#identity, ...options, apiKey: options.apiKey ?? found?.auth.apiKey, headers };
    const baseUrl = found?.auth.baseUrl;
    return { provider, model: baseUrl ? { ...model, baseUrl } : model, options: request };
  }
  #stream(member, model, context, options) {
    return lazyStream(model, async () => {
      const request = await this.#request(model, options);
      return request.provider[member](request.model, normalizeContext(context), request.options);
    });
  }
  stream(model, context, options) { return this.#stream("stream", model, context, options); }
  streamSimple(model, context, options) { return this.#stream("streamSimple", model, context, options); }
  async complete(model, context, options) { return this.stream(model, context, options).result(); }
  async completeSimple(model, context, options) { return this.streamSimple(model, context, options).result(); }

  async #special(member, model, context, options) {
    const request = await this.#request(model, options);
    if (!request.provider[member]) throw new ModelsError(member, `Provider ${model.provider} does not support ${member}`);
    return request.provider[member](request.model, context, request.options);
  }
  generateImages(model, context, options) { return this.#special("generateImages", model, context, options); }
  classify(model, context, options) { return this.#special("classify", model, context, options); }
  cancelDeferred(model, handle, options) { return this.#special("cancelDeferred", model, handle, options); }
  streamDeferred(model, handle, options) { return lazyStream(model, () => this.#special("fetchDeferred", model, handle, options)); }
  async fetchDeferred(model, handle, options) { return this.streamDeferred(model, handle, options).result(); }
}

export const createModels = (options = {}) => new Models(options);
