// `ctx.modelRegistry` and `ctx.model`.

import { later, now } from "pinion:api/bridge";
import {
  asConfig,
  registeredConfig,
  registeredName,
  registeredNames,
  registerProvider,
  unregisterProvider,
} from "pinion:api/providers";
import { lazy } from "pinion:runtime/lazy";

/** Returns a model with every member that extensions may read. */
export function fullModel(model) {
  if (!model) return undefined;
  for (const name of ["thinkingLevelMap", "headers", "compat"]) {
    if (!(name in model)) model[name] = undefined;
  }
  return model;
}

const reference = (model) => ({ provider: model?.provider, id: model?.id });

/** Returns the models to which the session is limited. */
export function scopedModels(scoped) {
  for (const { model } of scoped) fullModel(model);
  return scoped;
}

const isChat = (type) => type === "chat";
const ofProvider = (provider) => (model) => provider === undefined || model.provider === provider;

let storage;

/** The registry of models. */
export function modelRegistry(seat) {
  const list = (which) => now(seat, "models", which).map(fullModel);
  const access = (model) => later(seat, "access", reference(model));
  const find = (provider, id) => fullModel(now(seat, "model", { provider, id }) ?? undefined);
  const hasKey = (provider) => now(seat, "hasCredentials", { provider });
  const displayName = (provider) =>
    registeredName(provider) ?? lazy("packages/provider_names").displayName(provider);
  const authStorage = () => (storage ??= lazy("packages/coding_settings").AuthStorage.create());
  // Keys and headers of the program come first; the caller's own replace them.
  const authorized = async (model, options = {}) => {
    const granted = options.apiKey === undefined ? await access(model) : { ok: true };
    if (!granted.ok) throw new Error(granted.error);
    const headers = { ...granted.headers, ...options.headers };
    return { ...options, apiKey: options.apiKey ?? granted.apiKey, headers };
  };
  const streamSimple = (model, context, options) => {
    const { AssistantMessageEventStream, failWith } = lazy("packages/ai_events");
    const stream = new AssistantMessageEventStream();
    const pass = async () => {
      const given = await authorized(model, options);
      for await (const event of lazy("packages/ai_stream").nativeStream(model, context, given)) stream.push(event);
    };
    pass()
      .catch((error) => failWith(stream, model, error, options?.signal))
      .then(() => stream.end());
    return stream;
  };
  const members = {
    find,
    getAll: () => list("all"),
    getAvailable: () => list("available"),
    getApiKeyAndHeaders: access,
    getApiKey: async (model) => {
      const granted = await access(model);
      return granted.ok ? granted.apiKey : undefined;
    },
    getApiKeyForProvider: async (provider) =>
      (await later(seat, "providerKey", provider)) ?? undefined,
    hasConfiguredAuth: (model) => now(seat, "hasCredentials", reference(model)),
    isUsingOAuth: (model) => now(seat, "usesOAuth", model?.provider),
    getProviderDisplayName: displayName,
    getError: () => undefined,
    refresh: async () => undefined,
    registerProvider: (given, settings) => {
      const { name, config } = asConfig(given, settings);
      registerProvider(name, config);
    },
    unregisterProvider,
    getRegisteredProviderConfig: registeredConfig,
    getRegisteredProviderIds: registeredNames,
    getProviderAuthStatus: (provider) =>
      hasKey(provider) ? { ...authStorage().getAuthStatus(provider), configured: true } : { configured: false },
    getProviderAuth: async (provider) => {
      const model = list("all").find(ofProvider(provider));
      const granted = model && hasKey(provider) ? await access(model) : { ok: false };
      if (!granted.ok) return undefined;
      return { auth: { apiKey: granted.apiKey, headers: granted.headers, baseUrl: model.baseUrl } };
    },
    getProvider: (provider) => {
      const getModels = () => list("all").filter(ofProvider(provider));
      const [first] = getModels();
      if (!first) return undefined;
      const name = displayName(provider);
      return { id: provider, name, baseUrl: first.baseUrl, getModels, stream: streamSimple, streamSimple };
    },
    // The program has chat models only.
    getModelsOfType: (type, provider) => (isChat(type) ? list("all").filter(ofProvider(provider)) : []),
    getAvailableOfType: async (type, provider) =>
      isChat(type) ? list("available").filter(ofProvider(provider)) : [],
    getModelOfType: (type, provider, id) => (isChat(type) ? find(provider, id) : undefined),
    findOfType: (type, provider, id) => (isChat(type) ? find(provider, id) : undefined),
    stream: streamSimple,
    streamSimple,
    complete: async (model, context, options) => streamSimple(model, context, options).result(),
    completeSimple: async (model, context, options) => streamSimple(model, context, options).result(),
    classify: async () => unavailable("classifier"),
    generateImages: async () => unavailable("image"),
  };
  return Object.defineProperty(members, "authStorage", { get: authStorage, enumerable: true });
}

// These calls never reject.
const unavailable = (type) => ({
  stopReason: "error",
  errorMessage: `pinion has no ${type} models`,
  timestamp: Date.now(),
});
