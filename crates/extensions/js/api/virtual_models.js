// Virtual models of extensions: each request to one is sent to the model that its router names.

import { home, now } from "pinion:api/bridge";
import { makeContext, newScope } from "pinion:api/context";
import { during, settled } from "pinion:api/handlers";
import { fullModel } from "pinion:api/models";

const routers = new Map();
const keyOf = (provider, id) => `${provider}/${id}`;

/** Throws if a definition is invalid. */
export function checkVirtualModel(model) {
  for (const member of ["provider", "id", "name"]) {
    if (typeof model?.[member] !== "string" || model[member] === "") {
      throw new Error(`Virtual model: "${member}" must be a string that is not empty.`);
    }
  }
  if (typeof model.route !== "function") {
    throw new Error(`Virtual model ${keyOf(model.provider, model.id)}: "route" must be a function.`);
  }
}

/** Registers a virtual model with the program; one with the same provider and id is replaced. */
export function registerVirtualModel(extension, model) {
  checkVirtualModel(model);
  const { provider, id, name, thinkingLevels, contextWindow, maxTokens, input } = model;
  const key = keyOf(provider, id);
  now(home, "registerVirtualModel", key, { provider, id, name, thinkingLevels, contextWindow, maxTokens, input });
  routers.set(key, { extension, model });
}

/** Removes a virtual model. */
export function unregisterVirtualModel(provider, id) {
  if (routers.delete(keyOf(provider, id))) now(home, "unregisterVirtualModel", provider, id);
}

const controllers = new Map();

/** Asks the router of a virtual model; returns the provider, id and thinking level of a model, and its new state. */
export async function route(work, key, request) {
  const found = routers.get(key);
  if (!found) throw new Error(`The virtual model ${key} is gone.`);
  const scope = newScope(found.extension, work);
  const controller = new AbortController();
  controllers.set(work, controller);
  for (const response of [request.previous, request.failed]) {
    if (response) response.model = fullModel(response.model);
  }
  const given = { ...request, model: fullModel(request.model), signal: controller.signal };
  const { state } = given;
  try {
    const ask = () => settled(found.extension, found.model.route(given, makeContext(scope)));
    const chosen = await during(work, scope, ask);
    if (!chosen?.model) throw new Error(`The router of ${key} returned no model.`);
    return {
      provider: chosen.model.provider,
      id: chosen.model.id,
      thinkingLevel: chosen.thinkingLevel,
      ...(chosen.state === undefined || chosen.state === state ? {} : { state: chosen.state }),
    };
  } finally {
    controllers.delete(work);
  }
}

/** Requests the end of a router. */
export function stopRoute(work) {
  controllers.get(work)?.abort();
}
