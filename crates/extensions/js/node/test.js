// node:test: importable, so that code that may not need it loads; every use throws an error.

import { missing } from "pinion:node/internal_errors";

export const test = missing("test", "test");
export const suite = missing("test", "suite");
export const describe = missing("test", "describe");
export const it = missing("test", "it");
export const before = missing("test", "before");
export const after = missing("test", "after");
export const beforeEach = missing("test", "beforeEach");
export const afterEach = missing("test", "afterEach");
export const run = missing("test", "run");
export default { test, suite, describe, it, before, after, beforeEach, afterEach, run };
