// node:assert/strict

import { strict } from "pinion:node/assert";

export const { AssertionError, CallTracker, ok, fail, equal, notEqual, strictEqual, notStrictEqual, deepEqual, notDeepEqual, deepStrictEqual, notDeepStrictEqual, partialDeepStrictEqual, match, doesNotMatch, throws, doesNotThrow, rejects, doesNotReject, ifError } = strict;
export { strict };
export default strict;
