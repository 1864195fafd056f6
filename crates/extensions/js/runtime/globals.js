// The globals of a realm. Each module behind them is loaded when one of its names is first touched.
import { ops } from "pinion:ops";

const modules = {
  timers: ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate"],
};

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

function settle(name, value) {
  Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, writable: true, value });
}

for (const [module, names] of Object.entries(modules)) {
  for (const name of names) define(name, () => ops.core.load(`pinion:runtime/${module}`)[name]);
}

settle("global", globalThis);
settle("self", globalThis);
