// Event, CustomEvent and EventTarget.
import { ops } from "pinion:ops";

const state = new WeakMap();

export class Event {
  constructor(type, { bubbles = false, cancelable = false, composed = false } = {}) {
    if (arguments.length === 0) throw new TypeError("The \"type\" argument must be specified");
    state.set(this, {
      type: String(type), bubbles, cancelable, composed, target: null, prevented: false, stopped: false, passive: false, time: performance.now(),
    });
  }

  get type() { return state.get(this).type; }
  get bubbles() { return state.get(this).bubbles; }
  get cancelable() { return state.get(this).cancelable; }
  get composed() { return state.get(this).composed; }
  get target() { return state.get(this).target; }
  get currentTarget() { return state.get(this).target; }
  get srcElement() { return state.get(this).target; }
  get defaultPrevented() { return state.get(this).prevented; }
  get returnValue() { return !state.get(this).prevented; }
  get timeStamp() { return state.get(this).time; }
  get eventPhase() { return state.get(this).target ? 2 : 0; }
  get isTrusted() { return false; }
  get cancelBubble() { return state.get(this).stopped; }

  preventDefault() {
    const own = state.get(this);
    if (own.cancelable && !own.passive) own.prevented = true;
  }

  stopPropagation() {}

  stopImmediatePropagation() {
    state.get(this).stopped = true;
  }

  composedPath() {
    const { target } = state.get(this);
    return target ? [target] : [];
  }
}

Object.assign(Event, { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 });

export class CustomEvent extends Event {
  #detail;

  constructor(type, options = {}) {
    super(type, options);
    this.#detail = options.detail ?? null;
  }

  get detail() {
    return this.#detail;
  }
}

export class EventTarget {
  #listeners = new Map();

  addEventListener(type, listener, options) {
    if (listener === null || listener === undefined) return;
    const settings = typeof options === "boolean" ? { capture: options } : options ?? {};
    if (settings.signal?.aborted) return;
    const list = this.#listeners.get(String(type)) ?? [];
    const capture = Boolean(settings.capture);
    if (list.some((entry) => entry.listener === listener && entry.capture === capture)) return;
    const entry = { listener, capture, once: Boolean(settings.once), passive: Boolean(settings.passive), removed: false };
    this.#listeners.set(String(type), [...list, entry]);
    settings.signal?.addEventListener("abort", () => this.removeEventListener(type, listener, { capture }), { once: true });
  }

  removeEventListener(type, listener, options) {
    const capture = Boolean(typeof options === "boolean" ? options : options?.capture);
    const list = this.#listeners.get(String(type)) ?? [];
    const kept = list.filter((entry) => {
      const gone = entry.listener === listener && entry.capture === capture;
      if (gone) entry.removed = true;
      return !gone;
    });
    if (kept.length > 0) this.#listeners.set(String(type), kept);
    else this.#listeners.delete(String(type));
  }

  dispatchEvent(event) {
    const own = state.get(event);
    if (own === undefined) throw new TypeError("The \"event\" argument must be an instance of Event");
    own.target = this;
    for (const entry of this.#listeners.get(own.type) ?? []) {
      if (entry.removed) continue;
      if (entry.once) this.removeEventListener(own.type, entry.listener, { capture: entry.capture });
      own.passive = entry.passive;
      try {
        if (typeof entry.listener === "function") entry.listener.call(this, event);
        else entry.listener.handleEvent(event);
      } catch (error) {
        ops.core.reportUncaught(error);
      }
      own.passive = false;
      if (own.stopped) break;
    }
    return !own.prevented;
  }
}

// Defines `onabort` and the like: one listener that can be replaced.
export function defineHandler(prototype, type) {
  const handlers = new WeakMap();
  Object.defineProperty(prototype, `on${type}`, {
    configurable: true,
    enumerable: true,
    get() {
      return handlers.get(this)?.handler ?? null;
    },
    set(handler) {
      const known = handlers.get(this);
      if (known) this.removeEventListener(type, known.listener);
      handlers.delete(this);
      if (typeof handler !== "function") return;
      const listener = (event) => handler.call(this, event);
      handlers.set(this, { handler, listener });
      this.addEventListener(type, listener);
    },
  });
}
