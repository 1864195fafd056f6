// The two ways from here to the program: what is answered at once, and what is answered later.
//
// Arguments and answers are JSON text. A seat says on whose behalf is asked: an instance of the
// extensions belongs to one session and is told apart by its number.

import { ops } from "pinion:ops";

const { now: askNow, later: askLater, stale } = ops.api;

/** The instance this code belongs to. Its number is known when extensions are loaded. */
export const home = { generation: 0 };

const STALE =
  "This extension ctx is stale after session replacement or reload. " +
  "Do not use what was captured before it: use the ctx given to withSession or to the next handler.";

const NOT_BOUND =
  "Extension runtime not initialized. Action methods cannot be called during extension loading.";

let bound = false;

/** From here on the session can be acted upon. */
export function bind() {
  bound = true;
}

/** Whether the session can be acted upon. */
export function isBound() {
  return bound;
}

/** Throws while extensions are being loaded. */
export function requireBound() {
  if (!bound) throw new Error(NOT_BOUND);
}

/** Throws when the session of `seat` has been replaced. */
export function requireFresh(seat) {
  if (stale(seat.generation)) throw new Error(STALE);
}

/** Asks and gets the answer at once. */
export function now(seat, method, ...values) {
  return parsed(askNow(seat.generation, method, JSON.stringify(values)));
}

/** Asks and gets the answer later. */
export async function later(seat, method, ...values) {
  return parsed(await askLater(seat.generation, method, JSON.stringify(values)));
}

function parsed(text) {
  return text === "" || text === undefined ? undefined : JSON.parse(text);
}
