// Calls handlers in the order of extensions and of registration, each to its end.

import { home, now } from "pinion:api/bridge";
import { makeContext, newScope } from "pinion:api/context";
import { describe } from "pinion:api/errors";
import { patiently } from "pinion:api/patience";
import { extensions } from "pinion:api/registry";
import { callHandler } from "pinion:api/runs";

const live = new Map();

/** Reports a failure of an extension to the program. */
export function report(path, event, error) {
  now(home, "fault", path, event, describe(error));
}

/** Returns the result of a call; a promise is awaited up to the time limit. */
export function settled(extension, result) {
  return typeof result?.then === "function" ? patiently(extension, Promise.resolve(result)) : result;
}

/** Runs `task` as part of the program's work number `work`. */
export async function during(work, scope, task) {
  const scopes = live.get(work) ?? new Set();
  live.set(work, scopes);
  scopes.add(scope);
  try {
    return await task();
  } finally {
    scopes.delete(scope);
    if (scopes.size === 0) live.delete(work);
  }
}

/** Marks `work` as abandoned: the program no longer waits for it. */
export function abandonScopes(work) {
  for (const scope of live.get(work) ?? []) scope.abandoned = true;
}

/**
 * Calls every handler of `name` with the result of `makeEvent` and passes the answer to `take`, which ends the round by
 * returning true. A handler that fails is reported and skipped.
 */
export async function each(work, name, makeEvent, take, prompt) {
  for (const extension of extensions) {
    const handlers = extension.handlers.get(name);
    if (!handlers) continue;
    const scope = newScope(extension, work);
    const ctx = makeContext(scope);
    const stop = await during(work, scope, async () => {
      for (const { handler } of [...handlers]) {
        scope.prompt = prompt?.();
        try {
          let result = callHandler(name, handler, makeEvent(), ctx);
          if (typeof result?.then === "function") result = await settled(extension, result);
          if (take?.(result, extension) === true) return true;
        } catch (error) {
          if (take?.failed?.(error) === true) return true;
          report(extension.path, name, error);
        }
      }
      return false;
    });
    if (stop) return;
  }
}
