// Providers of extensions.

import { home, later, now, requireFresh } from "pinion:api/bridge";
import { describe } from "pinion:api/errors";
import { headers, observe, payload } from "pinion:api/events";
import { extensions, hasHandlers } from "pinion:api/registry";
import { lazy } from "pinion:runtime/lazy";

const streams = new Map();
const configs = new Map();

/**
 * Returns the name and the configuration of a provider. Besides these two, extensions may give a whole provider: an
 * object with an id, models, and functions that answer requests and find the key.
 */
export function asConfig(given, settings) {
  if (given === null || typeof given !== "object") return { name: given, config: settings ?? {} };
  const models = given.getModels?.() ?? given.models ?? [];
  const answer = given.streamSimple ?? given.stream;
  const resolve = given.auth?.apiKey?.resolve;
  return {
    name: given.id,
    config: {
      name: given.name,
      baseUrl: given.baseUrl ?? models.find((model) => model.baseUrl)?.baseUrl ?? "http://localhost",
      // The provider finds the key itself, when a request is made.
      apiKey: "-",
      api: models[0]?.api ?? "custom",
      models,
      streamSimple: async (model, context, options) => {
        const credential = options.apiKey === "-" ? undefined : { type: "api_key", key: options.apiKey };
        const found = await resolve?.call(given.auth.apiKey, { credential, signal: options.signal });
        const headers = { ...options.headers, ...found?.auth?.headers };
        return answer.call(given, model, context, { ...options, apiKey: found?.auth?.apiKey ?? options.apiKey, headers });
      },
    },
  };
}

/** Throws if a registration is invalid. */
function check(name, config) {
  if (config.streamSimple && !config.api) {
    throw new Error(`Provider ${name}: "api" is required when registering streamSimple.`);
  }
  const models = config.models ?? [];
  if (models.length === 0) return;
  if (!config.baseUrl) {
    throw new Error(`Provider ${name}: "baseUrl" is required when defining models.`);
  }
  if (!config.apiKey && !config.oauth) {
    throw new Error(`Provider ${name}: "apiKey" or "oauth" is required when defining models.`);
  }
  for (const model of models) {
    if (!(model.api ?? config.api)) {
      throw new Error(`Provider ${name}, model ${model.id}: no "api" specified.`);
    }
  }
}

/** Registers a provider with the program, or throws the reason why it cannot. */
export function registerProvider(name, config) {
  check(name, config);
  const { streamSimple, oauth, ...plain } = config;
  const streaming = typeof streamSimple === "function";
  const card = { ...plain, oauth: oauth ? { name: oauth.name } : undefined };
  now(home, "registerProvider", name, card, streaming);
  if (streaming) streams.set(name, streamSimple);
  configs.set(name, config);
}

/** Returns the configuration with which a provider was registered. */
export const registeredConfig = (name) => configs.get(name);

/** Returns the names of the registered providers. */
export const registeredNames = () => [...configs.keys()];

/** Returns the display name of a registered provider. */
export const registeredName = (name) => configs.get(name)?.name ?? configs.get(name)?.oauth?.name;

/** Removes a provider. */
export function unregisterProvider(name) {
  streams.delete(name);
  configs.delete(name);
  now(home, "unregisterProvider", name);
}

/** Registers the providers that were requested during loading and returns the problems, by extension. */
export function flushProviders() {
  const problems = [];
  for (const extension of extensions) {
    const registrations = [
      ...extension.providers.map(({ name, config }) => () => registerProvider(name, config)),
      ...extension.virtualModels.map((model) => () => lazy("api/virtual_models").registerVirtualModel(extension, model)),
    ];
    for (const register of registrations) {
      try {
        register();
      } catch (error) {
        problems.push({ path: extension.path, error: describe(error) });
      }
    }
  }
  return problems;
}

const controllers = new Map();

/** Passes an event to the program as soon as it has room. Reports whether the answer may continue. */
async function passOn(request, event) {
  for (;;) {
    const passed = now(home, "streamed", request, event);
    if (passed !== "full") return passed === "open";
    await later(home, "streamRoom", request);
  }
}

/** Answers a request and passes every event to the program as it arrives. */
export async function stream(request, name, model, context, options) {
  const answer = streams.get(name);
  if (!answer) throw new Error(`Provider ${name} is gone.`);
  requireFresh(home);
  const controller = new AbortController();
  controllers.set(request, controller);
  try {
    const signal = controller.signal;
    const work = `stream:${request}`;
    const watching = {
      onPayload: (body) => payload(work, body),
      onProviderStreamEvent: (data, { provider, api, id } = model) =>
        observe(work, { type: "provider_stream_event", provider, api, model: id, data }),
      onResponse: ({ status, headers }) => observe(work, { type: "after_provider_response", status, headers }),
    };
    const own = hasHandlers("before_provider_headers") ? await headers(work, { ...options.headers }) : options.headers;
    const events = await answer(model, context, { ...options, ...watching, headers: own, signal });
    let open = true;
    for await (const event of events) {
      open = await passOn(request, event);
      if (!open) break;
    }
    if (open) await finish(request, events);
  } finally {
    controllers.delete(request);
  }
}

// A stream may end with its result instead of an event that contains it.
async function finish(request, events) {
  if (typeof events.result !== "function") return;
  const nothing = new Promise((resolve) => setTimeout(resolve, 0));
  const message = await Promise.race([events.result(), nothing]);
  if (message) await passOn(request, { type: "done", message });
}

/** Cancels an answer that is not awaited any more. */
export function stopStream(request) {
  controllers.get(request)?.abort();
}
