// AbortController and AbortSignal.
import { Event, EventTarget, defineHandler } from "pinion:runtime/events";

const create = Symbol("create");
let abortSignal;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;

  static {
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
      signal.dispatchEvent(new Event("abort"));
    };
  }

  constructor(key) {
    if (key !== create) throw new TypeError("Illegal constructor");
    super();
  }

  get aborted() {
    return this.#aborted;
  }

  get reason() {
    return this.#reason;
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  get [Symbol.toStringTag]() {
    return "AbortSignal";
  }

  static abort(reason) {
    const signal = new AbortSignal(create);
    abortSignal(signal, reason);
    return signal;
  }

  static timeout(milliseconds) {
    const signal = new AbortSignal(create);
    setTimeout(() => abortSignal(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), milliseconds).unref();
    return signal;
  }

  static any(signals) {
    const joined = new AbortSignal(create);
    const sources = [...signals];
    const first = sources.find((signal) => signal.aborted);
    if (first) {
      abortSignal(joined, first.reason);
      return joined;
    }
    const listeners = sources.map((signal) => () => {
      sources.forEach((source, at) => source.removeEventListener("abort", listeners[at]));
      abortSignal(joined, signal.reason);
    });
    sources.forEach((signal, at) => signal.addEventListener("abort", listeners[at], { once: true }));
    return joined;
  }
}

defineHandler(AbortSignal.prototype, "abort");

export class AbortController {
  #signal = new AbortSignal(create);

  get signal() {
    return this.#signal;
  }

  abort(reason) {
    abortSignal(this.#signal, reason);
  }

  get [Symbol.toStringTag]() {
    return "AbortController";
  }
}
