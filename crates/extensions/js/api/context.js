// The `ctx` of handlers, tools and commands.
//
// Every value is looked up when it is accessed, and every access fails once the session has been replaced. A scope
// identifies the caller: its extension, its session and the work it is part of.

import { home, later, now, requireFresh } from "pinion:api/bridge";
import { describe } from "pinion:api/errors";
import { program, withLater } from "pinion:api/program";
import { isTellingOfRun, runSignal } from "pinion:api/runs";
import { lazy } from "pinion:runtime/lazy";

/** Creates the scope of a caller. */
export function newScope(extension, work, seat = home) {
  return { extension, work, seat, ui: undefined, prompt: undefined, abandoned: false };
}

/** Returns `undefined` for `null`, where a member may be missing. */
const present = (found) => found ?? undefined;

// While handlers prepare a run, pi 1.x counts as busy.
const isStarting = (scope) => program.modern && scope.prompt !== undefined;

/** Creates the context of a handler or tool. */
export function makeContext(scope) {
  const { seat } = scope;
  const check = () => requireFresh(seat);
  const look = (method, ...values) => {
    check();
    return now(seat, method, ...values);
  };
  const ctx = {
    get ui() {
      check();
      scope.ui ??= program.hasUi ? lazy("api/ui").clientUi(scope) : lazy("api/ui").silentUi();
      return scope.ui;
    },
    get hasUI() {
      check();
      return program.hasUi;
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
    isIdle: () => look("isIdle") && !isStarting(scope) && !isTellingOfRun() && !lazy("api/saying").isBeginning(),
    get signal() {
      check();
      return runSignal(seat);
    },
    // At once, so that an answer which the caller returns next counts as one of an aborted run.
    abort: () => look("abort"),
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
  return withLater(ctx, {
    get mode() {
      check();
      return program.mode;
    },
    get scopedModels() {
      return lazy("api/models").scopedModels(look("scopedModels"));
    },
    get thinkingLevel() {
      return look("thinkingLevel");
    },
    isProjectTrusted: () => look("isProjectTrusted"),
  });
}

function compact(seat, options) {
  const number = now(seat, "startCompaction", options?.customInstructions);
  later(seat, "compaction", number).then(
    (result) => options?.onComplete?.(result),
    (error) => options?.onError?.(error instanceof Error ? error : new Error(describe(error))),
  );
}
