// The `ctx` of handlers, tools and commands.
//
// Every value is looked up when it is accessed, and every access fails once the session has been replaced. A scope
// identifies the caller: its extension, its session and the work it is part of.

import { home, later, now, requireFresh } from "pinion:api/bridge";
import { describe } from "pinion:api/errors";
import { isTellingOfRun, runSignal } from "pinion:api/runs";
import { lazy } from "pinion:runtime/lazy";

const settings = { hasUi: false };

/** Sets whether a client can answer dialogs. */
export function setHasUi(hasUi) {
  settings.hasUi = hasUi;
}

/** Creates the scope of a caller. */
export function newScope(extension, work, seat = home) {
  return { extension, work, seat, ui: undefined, prompt: undefined, abandoned: false };
}

/** Returns `undefined` for `null`, where a member may be missing. */
const present = (found) => found ?? undefined;

/** Creates the context of a handler or tool. */
export function makeContext(scope) {
  const { seat } = scope;
  const check = () => requireFresh(seat);
  const look = (method, ...values) => {
    check();
    return now(seat, method, ...values);
  };
  return {
    get ui() {
      check();
      scope.ui ??= settings.hasUi ? lazy("api/ui").clientUi(scope) : lazy("api/ui").silentUi();
      return scope.ui;
    },
    get hasUI() {
      check();
      return settings.hasUi;
    },
    get cwd() {
      return look("session", "cwd");
    },
    get sessionManager() {
      check();
      return lazy("api/session_view").sessionView(seat);
    },
    get modelRegistry() {
      check();
      return lazy("api/models").modelRegistry(seat);
    },
    get model() {
      return lazy("api/models").fullModel(present(look("currentModel")));
    },
    isIdle: () => look("isIdle") && !isTellingOfRun() && !lazy("api/saying").isBeginning(),
    get signal() {
      check();
      return runSignal(seat);
    },
    // Delayed, so that the caller returns to its own caller first.
    abort: () => void setTimeout(() => look("abort"), 0),
    hasPendingMessages: () => look("hasPending"),
    shutdown: () => look("shutdown"),
    getContextUsage: () => present(look("contextUsage")),
    compact: (options) => {
      check();
      compact(seat, options);
    },
    getSystemPrompt: () => {
      check();
      return scope.prompt ?? now(seat, "systemPrompt");
    },
  };
}

function compact(seat, options) {
  const number = now(seat, "startCompaction", options?.customInstructions);
  later(seat, "compaction", number).then(
    (result) => options?.onComplete?.(result),
    (error) => options?.onError?.(error instanceof Error ? error : new Error(describe(error))),
  );
}
