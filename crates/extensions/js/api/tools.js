// Calls of tools that extensions registered.

import { home, later, now, requireFresh } from "pinion:api/bridge";
import { makeContext, newScope } from "pinion:api/context";
import { describe } from "pinion:api/errors";
import { during } from "pinion:api/handlers";
import { pausing } from "pinion:api/patience";
import { whole, withLater } from "pinion:api/program";
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
      found.tool.execute(callId, given, controller.signal, onUpdate, toolContext(scope, controller.signal)),
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

const nested = new Map();
let nestedCount = 0;

/** Creates the context of a tool: that of a handler, and calls of other tools. */
function toolContext(scope, signal) {
  return withLater(makeContext(scope), {
    get tools() {
      requireFresh(scope.seat);
      return now(home, "callableTools").map(whole);
    },
    executeTool: (name, given, options) => executeTool(scope, name, given, { signal, ...options }),
  });
}

/** Calls another tool. The result reports a failure; the promise is rejected only if the calling tool has ended. */
async function executeTool(scope, name, given, { signal, onUpdate }) {
  requireFresh(scope.seat);
  const number = (nestedCount += 1);
  const stop = () => now(home, "stopNested", number);
  const progress = { onUpdate, received: 0, arrived: () => {} };
  nested.set(number, progress);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const calling = later(home, "executeTool", scope.work, number, String(name), given ?? {});
    if (signal?.aborted) stop();
    return await pausing(scope.extension, async () => {
      const { answer, updates } = await calling;
      while (progress.received < updates) await new Promise((resolve) => (progress.arrived = resolve));
      return answer;
    });
  } finally {
    signal?.removeEventListener("abort", stop);
    nested.delete(number);
  }
}

/** Passes the progress of a nested call on to the tool that makes it. */
export function nestedUpdate(number, output) {
  const progress = nested.get(number);
  if (!progress) return;
  progress.received += 1;
  progress.arrived();
  progress.onUpdate?.(output);
}
