// Calls of tools that extensions registered.

import { home, now } from "pinion:api/bridge";
import { makeContext, newScope } from "pinion:api/context";
import { describe } from "pinion:api/errors";
import { during } from "pinion:api/handlers";
import { findTool } from "pinion:api/registry";

const controllers = new Map();

/** Runs one call; an error that the tool throws is an answer too. */
export async function runTool(work, name, callId, given) {
  const found = findTool(name);
  if (!found) return { error: `Tool ${name} not found` };
  const controller = new AbortController();
  controllers.set(work, controller);
  const scope = newScope(found.extension, work);
  const onUpdate = (partial) => void now(home, "toolUpdate", work, partial);
  try {
    const output = await during(work, scope, () =>
      found.tool.execute(callId, given, controller.signal, onUpdate, makeContext(scope)),
    );
    return { output };
  } catch (error) {
    return { error: describe(error) };
  } finally {
    controllers.delete(work);
  }
}

/** Lets a tool convert the model's arguments to the form it expects. */
export function prepareArguments(_work, name, given) {
  const found = findTool(name);
  try {
    return { output: found?.tool.prepareArguments ? found.tool.prepareArguments(given) : given };
  } catch (error) {
    return { error: describe(error) };
  }
}

/** Requests the end of a call. */
export function stopTool(work) {
  controllers.get(work)?.abort();
}
