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
