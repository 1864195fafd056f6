// The signal of the active run, for as long as there is one.

import { now } from "pinion:api/bridge";

const controllers = new Map();

/** The signal that fires when the active run is aborted; `undefined` when there is none. */
export function runSignal(seat) {
  const run = now(seat, "run");
  if (run === undefined || run === null) return undefined;
  let controller = controllers.get(run);
  if (!controller) {
    // Only one run is active at a time, so whoever is here is over.
    controllers.clear();
    controller = new AbortController();
    controllers.set(run, controller);
    if (now(seat, "watchRun", run)) controller.abort();
  }
  return controller.signal;
}

/** The run was aborted. */
export function abortRun(run) {
  controllers.get(run)?.abort();
}

// What is told about a run while it lasts; the last of it is told when the run may be over already.
const OF_A_RUN = /^(agent|turn|message|tool_execution)_/;
let telling = 0;

/** Whether a handler is just being called for a run: then the run is not over, for that handler. */
export function isTellingOfRun() {
  return telling > 0;
}

/** Calls a handler of the event `name`. */
export function callHandler(name, handler, event, ctx) {
  const ofRun = OF_A_RUN.test(name) ? 1 : 0;
  telling += ofRun;
  try {
    return handler(event, ctx);
  } finally {
    telling -= ofRun;
  }
}
