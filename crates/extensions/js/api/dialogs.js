// Questions to the user, and the promises that wait for the answers.

import { home, now } from "pinion:api/bridge";
import { pause } from "pinion:api/patience";
import { hasHandlers } from "pinion:api/registry";
import { lazy } from "pinion:runtime/lazy";

const open = new Map();

// The first of the questions that are open, with which waiting for the user began.
let waiting;

/** Reports that waiting for the user begins or ends. The question does not wait for the handlers. */
function announce(name, { method, title }) {
  if (!hasHandlers(name)) return;
  const event = { type: name, reason: "ui_prompt", kind: method, title };
  lazy("api/handlers").each("ui_prompt", name, () => event);
}

function startWaiting(request) {
  if (waiting) return;
  waiting = request;
  announce("ui_prompt_start", request);
}

function stopWaiting() {
  if (open.size > 0 || !waiting) return;
  const request = waiting;
  waiting = undefined;
  announce("ui_prompt_end", request);
}

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
      stopWaiting();
      resolve(value);
    };
    const giveUp = () => settle(fallback);
    open.set(id, { scope, giveUp, answer: (response) => settle(accept(response)) });
    startWaiting(request);
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
