// The globals of a realm. The module behind a name is loaded when the name is first accessed.
import { ops } from "pinion:ops";
import { lazy } from "pinion:runtime/lazy";

const modules = {
  "runtime/timers": ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate"],
  "runtime/console": ["console"],
  "runtime/events": ["Event", "CustomEvent", "EventTarget"],
  "runtime/abort": ["AbortController", "AbortSignal"],
  "runtime/url": ["URL", "URLSearchParams"],
  "runtime/encoding": ["TextEncoder", "TextDecoder"],
  "runtime/encoding_streams": ["TextEncoderStream", "TextDecoderStream"],
  "runtime/clone": ["structuredClone"],
  "runtime/readable": ["ReadableStream", "ReadableStreamDefaultReader", "ByteLengthQueuingStrategy", "CountQueuingStrategy"],
  "runtime/writable": ["WritableStream", "WritableStreamDefaultWriter", "TransformStream"],
  "runtime/blob": ["Blob", "File"],
  "runtime/form": ["FormData"],
  "runtime/headers": ["Headers"],
  "runtime/messages": ["Request", "Response"],
  "runtime/fetch": ["fetch"],
  "runtime/intl": ["Intl"],
  "runtime/wasm": ["WebAssembly"],
  "node/buffer": ["Buffer"],
  "node/process": [["process", "default"]],
  "node/crypto": [["crypto", "webcrypto"]],
};

function settle(name, value) {
  Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, writable: true, value });
}

function define(name, load) {
  Object.defineProperty(globalThis, name, {
    configurable: true,
    enumerable: false,
    get() {
      const value = load();
      settle(name, value);
      return value;
    },
    set(value) {
      settle(name, value);
    },
  });
}

for (const [module, names] of Object.entries(modules)) {
  for (const entry of names) {
    const [name, member] = typeof entry === "string" ? [entry, entry] : entry;
    define(name, () => lazy(module)[member]);
  }
}

settle("global", globalThis);
settle("self", globalThis);
define("navigator", () => ({ userAgent: "pinion", language: "en-US", languages: ["en-US"], hardwareConcurrency: 1, platform: "" }));

if (globalThis.performance?.now === undefined) {
  settle("performance", { now: () => ops.core.now(), timeOrigin: Date.now() - ops.core.now() });
}

// The engine has no locales: these format in American English, like most hosts of extensions.
function localize(prototype, name, member) {
  Object.defineProperty(prototype, name, {
    configurable: true,
    enumerable: false,
    writable: true,
    value: { [name](...args) { return lazy("runtime/intl")[member](this, ...args); } }[name],
  });
}

localize(Number.prototype, "toLocaleString", "numberToLocale");
localize(BigInt.prototype, "toLocaleString", "numberToLocale");
localize(Date.prototype, "toLocaleString", "dateToLocale");
localize(Date.prototype, "toLocaleDateString", "dateToLocaleDate");
localize(Date.prototype, "toLocaleTimeString", "dateToLocaleTime");
localize(String.prototype, "localeCompare", "compareLocale");

// The engine's stacks contain only frames; scripts expect the error in front of them.
const frames = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
if (frames?.get) {
  Object.defineProperty(Error.prototype, "stack", {
    ...frames,
    get() {
      const stack = frames.get.call(this);
      if (typeof stack !== "string" || (stack !== "" && !stack.startsWith("    at "))) return stack;
      let head;
      try {
        head = Error.prototype.toString.call(this);
      } catch {
        head = "Error";
      }
      return stack === "" ? head : `${head}\n${stack.trimEnd()}`;
    },
  });
}
