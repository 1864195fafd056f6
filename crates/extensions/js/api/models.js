// `ctx.modelRegistry` and `ctx.model`.

import { later, now } from "pinion:api/bridge";
import { registeredName } from "pinion:api/providers";
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

/** The registry of models. */
export function modelRegistry(seat) {
  const list = (which) => now(seat, "models", which).map(fullModel);
  const access = (model) => later(seat, "access", reference(model));
  return {
    find: (provider, id) => fullModel(now(seat, "model", { provider, id }) ?? undefined),
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
    getProviderDisplayName: (provider) =>
      registeredName(provider) ?? lazy("packages/provider_names").displayName(provider),
    getError: () => undefined,
    refresh: () => undefined,
  };
}
