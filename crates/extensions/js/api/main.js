// The functions that the program calls.

import { abandon, answer as answerDialog } from "pinion:api/dialogs";
import { newScope } from "pinion:api/context";
import { boundary } from "pinion:api/boundaries";
import * as events from "pinion:api/events";
import { abandonScopes, during, report, settled } from "pinion:api/handlers";
import { load, start } from "pinion:api/loader";
import { beforeRun } from "pinion:api/prompt_options";
import * as providers from "pinion:api/providers";
import { namedCommands } from "pinion:api/registry";
import { abortRun } from "pinion:api/runs";
import * as tools from "pinion:api/tools";
import { route, stopRoute } from "pinion:api/virtual_models";
import { lazy } from "pinion:runtime/lazy";

export { beforeRun, boundary, load, route, start };
export const { observe, messageEnd, input, userBash, context, headers, payload } = events;
export const { toolCall, toolResult, before, discover } = events;
export const { nestedUpdate, runTool, prepareArguments } = tools;

/** Runs a command with the text after its name as its argument. */
export async function command(work, name, words) {
  const found = namedCommands().find(({ called }) => called === name);
  if (!found) return;
  const { extension, command: registered } = found;
  const scope = newScope(extension, work);
  try {
    const ctx = lazy("api/command_context").makeCommandContext(scope);
    await during(work, scope, () => settled(extension, registered.handler(words, ctx)));
  } catch (error) {
    report(`command:${name}`, "command", error);
  }
}

/** Passes on the client's answer to a dialog. */
export function answer(id, response) {
  answerDialog(id, response);
}

/** Requests the end of the work; it may still finish in order. */
export function stop(work) {
  tools.stopTool(work);
  events.stopQuestion(work);
  stopRoute(work);
  abandon(work);
}

/** Marks the work as abandoned. */
export function drop(work) {
  abandonScopes(work);
  stop(work);
}

/** Aborts the signal of the active run. */
export function aborted(run) {
  abortRun(run);
}

/** Runs the setup function of a new session. */
export async function setup(number) {
  await lazy("api/command_context").runSetup(number);
}

/** Answers a request to a provider of an extension. */
export async function stream(request, name, model, conversation, options) {
  await providers.stream(request, name, model, conversation, options);
}

/** Cancels a provider's answer that is not awaited any more. */
export function stopStream(request) {
  providers.stopStream(request);
}
