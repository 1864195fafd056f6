// The signal of the active run, for as long as there is one.

import { now } from "pinion:api/bridge";

const controllers = new Map();

/** Returns the signal that fires when the active run is aborted; `undefined` without a run. */
export function runSignal(seat) {
  const run = now(seat, "run");
  if (run === undefined || run === null) return undefined;
  let controller = controllers.get(run);
  if (!controller) {
    // Only one run is active at a time, so all older ones have ended.
    controllers.clear();
    controller = new AbortController();
    controllers.set(run, controller);
    if (now(seat, "watchRun", run)) controller.abort();
  }
  return controller.signal;
}

/** Aborts the signal of a run. */
export function abortRun(run) {
  controllers.get(run)?.abort();
}

// The events of a run. The last of them may be delivered when the run has already ended. `agent_settled` comes after
// the run, and may start another one.
const OF_A_RUN = /^(agent_(?!settled)|turn_|message_|tool_execution_)/;
let telling = 0;

/** Reports whether a handler is being called for an event of a run; for that handler the run has not ended. */
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
