// Sends requests to the program, with immediate or asynchronous answers.
//
// Arguments and answers are JSON text. A seat is the instance of the extensions that a request belongs to; an instance
// belongs to one session and is identified by its number.

import { ops } from "pinion:ops";

const { now: askNow, later: askLater, stale } = ops.api;

/** The instance that this code belongs to. Its number is set when extensions are loaded. */
export const home = { generation: 0 };

const STALE =
  "This extension ctx is stale after session replacement or reload. " +
  "Do not use what was captured before it: use the ctx given to withSession or to the next handler.";

const NOT_BOUND =
  "Extension runtime not initialized. Action methods cannot be called during extension loading.";

let bound = false;

/** Permits actions on the session from now on. */
export function bind() {
  bound = true;
}

/** Reports whether actions on the session are permitted. */
export function isBound() {
  return bound;
}

/** Throws while extensions are being loaded. */
export function requireBound() {
  if (!bound) throw new Error(NOT_BOUND);
}

/** Throws if the session of `seat` has been replaced. */
export function requireFresh(seat) {
  if (stale(seat.generation)) throw new Error(STALE);
}

/** Sends a request and returns the answer immediately. */
export function now(seat, method, ...values) {
  return parsed(askNow(seat.generation, method, JSON.stringify(values)));
}

/** Sends a request and resolves with the answer. */
export async function later(seat, method, ...values) {
  return parsed(await askLater(seat.generation, method, JSON.stringify(values)));
}

function parsed(text) {
  return text === "" || text === undefined ? undefined : JSON.parse(text);
}
