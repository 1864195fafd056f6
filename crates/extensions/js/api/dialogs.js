// Questions to the user and who waits for their answers.

import { home, now } from "pinion:api/bridge";
import { pause } from "pinion:api/patience";

const open = new Map();

/**
 * Asks the user something and waits.
 *
 * The default comes back when the time is over, when `signal` fires, and when the work that asked
 * is given up; the client is not told.
 */
export function ask(scope, request, options, accept, fallback) {
  const signal = options?.signal;
  if (signal?.aborted || scope.abandoned) return Promise.resolve(fallback);
  return new Promise((resolve) => {
    const id = now(home, "ask", { ...request, timeout: milliseconds(options?.timeout) });
    const finish = pause(scope.extension);
    let timer;
    const settle = (value) => {
      if (!open.delete(id)) return;
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
      finish();
      now(home, "asked", id);
      resolve(value);
    };
    const giveUp = () => settle(fallback);
    open.set(id, { scope, giveUp, answer: (response) => settle(accept(response)) });
    if (options?.timeout) timer = setTimeout(giveUp, options.timeout);
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}

// As a number, or not at all.
function milliseconds(given) {
  const number = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
  return Number.isFinite(number) ? number : undefined;
}

/** The client has answered. */
export function answer(id, response) {
  open.get(id)?.answer(response);
}

/** Nobody waits any more for the work of `scope`: its questions get their defaults. */
export function abandon(work) {
  for (const { scope, giveUp } of [...open.values()]) {
    if (scope.work === work) giveUp();
  }
}
