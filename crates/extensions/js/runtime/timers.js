// Timers with Node's handles. No timer prevents the program from ending, so `ref` only stores its state.
import { ops } from "pinion:ops";

const waiting = new Map();
let last = 0;

class Handle {
  #id = ++last;
  #referenced = true;

  constructor(callback, args, after, repeat) {
    this.callback = callback;
    this.args = args;
    this.after = after;
    this.repeat = repeat;
    waiting.set(this.#id, this);
  }

  get id() {
    return this.#id;
  }

  ref() {
    this.#referenced = true;
    return this;
  }

  unref() {
    this.#referenced = false;
    return this;
  }

  hasRef() {
    return this.#referenced;
  }

  close() {
    clear(this);
    return this;
  }

  [Symbol.dispose]() {
    clear(this);
  }
}

export class Timeout extends Handle {
  refresh() {
    if (waiting.has(this.id)) ops.timers.start(this.id, this.after);
    return this;
  }

  [Symbol.toPrimitive]() {
    return this.id;
  }
}

export class Immediate extends Handle {}

ops.timers.onFire((id) => {
  const timer = waiting.get(id);
  if (timer === undefined) return;
  if (timer.repeat) ops.timers.start(id, timer.after);
  else waiting.delete(id);
  try {
    timer.callback.apply(timer, timer.args);
  } catch (error) {
    ops.core.reportUncaught(error);
  }
});

function checked(callback) {
  if (typeof callback !== "function") {
    const error = new TypeError(`The "callback" argument must be of type function. Received ${callback === null ? "null" : typeof callback}`);
    error.code = "ERR_INVALID_ARG_TYPE";
    throw error;
  }
  return callback;
}

function duration(after) {
  const value = Number(after);
  return value >= 1 && value <= 2147483647 ? Math.trunc(value) : 1;
}

export function setTimeout(callback, after, ...args) {
  const timer = new Timeout(checked(callback), args, duration(after), false);
  ops.timers.start(timer.id, timer.after);
  return timer;
}

export function setInterval(callback, after, ...args) {
  const timer = new Timeout(checked(callback), args, duration(after), true);
  ops.timers.start(timer.id, timer.after);
  return timer;
}

export function setImmediate(callback, ...args) {
  const timer = new Immediate(checked(callback), args, 0, false);
  ops.timers.soon(timer.id);
  return timer;
}

function clear(timer) {
  const id = timer instanceof Handle ? timer.id : Number(timer);
  if (waiting.delete(id)) ops.timers.stop(id);
}

export const clearTimeout = (timer) => clear(timer);
export const clearInterval = (timer) => clear(timer);
export const clearImmediate = (timer) => clear(timer);
