// Questions to the user, and the promises that wait for the answers.

import { home, now } from "pinion:api/bridge";
import { pause } from "pinion:api/patience";

const open = new Map();

/**
 * Asks the user a question and waits for the answer.
 *
 * Resolves with the default after the timeout, when `signal` fires, and when the work that asked is abandoned; the
 * client does not receive a message about it.
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

// A number, or `undefined`.
function milliseconds(given) {
  const number = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
  return Number.isFinite(number) ? number : undefined;
}

/** Passes on the client's answer. */
export function answer(id, response) {
  open.get(id)?.answer(response);
}

/** Resolves the questions of abandoned work with their defaults. */
export function abandon(work) {
  for (const { scope, giveUp } of [...open.values()]) {
    if (scope.work === work) giveUp();
  }
}
