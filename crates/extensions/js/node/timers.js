// node:timers

import promises from "pinion:node/timers_promises";

export const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate } = globalThis;
export { promises };
export const enroll = () => {};
export const unenroll = () => {};
export const active = () => {};

const custom = Symbol.for("nodejs.util.promisify.custom");
for (const [timer, promised] of [[setTimeout, promises.setTimeout], [setImmediate, promises.setImmediate]]) if (timer && !timer[custom]) Object.defineProperty(timer, custom, { value: promised, configurable: true });

export default { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, promises, enroll, unenroll, active };
