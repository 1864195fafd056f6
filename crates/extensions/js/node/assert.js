// node:assert

import { coded, invalidArgType } from "pinion:node/internal_errors";
import { deepEqual as alike } from "pinion:node/internal_equal";
import { inspect } from "pinion:node/internal_inspect";

export class AssertionError extends Error {
	constructor({ message, actual, expected, operator, stackStartFn } = {}) {
		super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
		this.name = "AssertionError";
		Object.assign(this, { code: "ERR_ASSERTION", generatedMessage: message === undefined, actual, expected, operator });
		Error.captureStackTrace?.(this, stackStartFn ?? AssertionError);
	}
}

const TEXTS = {
	strictEqual: "Expected values to be strictly equal:",
	deepStrictEqual: "Expected values to be strictly deep-equal:",
	deepEqual: "Expected values to be loosely deep-equal:",
	notStrictEqual: 'Expected "actual" to be strictly unequal to:',
	notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
	notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
};

function fail_(actual, expected, message, operator, stackStartFn) {
	if (message instanceof Error) throw message;
	const error = new AssertionError({ message, actual, expected, operator, stackStartFn });
	if (message === undefined && TEXTS[operator]) {
		const shown = operator.startsWith("not") ? inspect(expected) : `\n${inspect(actual)} !== ${inspect(expected)}\n`;
		error.message = operator.startsWith("not") ? `${TEXTS[operator]} ${shown}` : `${TEXTS[operator]}\n${shown}`;
	}
	throw error;
}

const assert = function ok(value, message) {
	if (!value) {
		if (message instanceof Error) throw message;
		throw new AssertionError({ message: message ?? (arguments.length === 0 ? "No value argument passed to `assert.ok()`" : "The expression evaluated to a falsy value"), actual: value, expected: true, operator: "==" });
	}
};

export const ok = assert;
export function fail(message = "Failed") {
	if (message instanceof Error) throw message;
	throw new AssertionError({ message, operator: "fail" });
}
export function equal(actual, expected, message) {
	if (!(actual == expected || (actual !== actual && expected !== expected))) fail_(actual, expected, message, "==", equal);
}
export function notEqual(actual, expected, message) {
	if (actual == expected || (actual !== actual && expected !== expected)) fail_(actual, expected, message, "!=", notEqual);
}
export function strictEqual(actual, expected, message) {
	if (!Object.is(actual, expected)) fail_(actual, expected, message, "strictEqual", strictEqual);
}
export function notStrictEqual(actual, expected, message) {
	if (Object.is(actual, expected)) fail_(actual, expected, message, "notStrictEqual", notStrictEqual);
}
export function deepEqual(actual, expected, message) {
	if (!alike(actual, expected, false)) fail_(actual, expected, message, "deepEqual", deepEqual);
}
export function notDeepEqual(actual, expected, message) {
	if (alike(actual, expected, false)) fail_(actual, expected, message, "notDeepEqual", notDeepEqual);
}
export function deepStrictEqual(actual, expected, message) {
	if (!alike(actual, expected, true)) fail_(actual, expected, message, "deepStrictEqual", deepStrictEqual);
}
export function notDeepStrictEqual(actual, expected, message) {
	if (alike(actual, expected, true)) fail_(actual, expected, message, "notDeepStrictEqual", notDeepStrictEqual);
}
export function partialDeepStrictEqual(actual, expected, message) {
	const covers = (whole, part) => (part === null || typeof part !== "object" ? Object.is(whole, part) : whole !== null && typeof whole === "object" && Object.keys(part).every((key) => covers(whole[key], part[key])));
	if (!covers(actual, expected)) fail_(actual, expected, message, "partialDeepStrictEqual", partialDeepStrictEqual);
}
export function match(text, pattern, message) {
	if (typeof text !== "string" || !pattern.test(text)) fail_(text, pattern, message ?? `The input did not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, "match", match);
}
export function doesNotMatch(text, pattern, message) {
	if (typeof text === "string" && pattern.test(text)) fail_(text, pattern, message ?? `The input was expected to not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, "doesNotMatch", doesNotMatch);
}

/** Reports whether `error` matches the expectation; throws if it clearly does not. */
function expected_(error, wanted, message, operator) {
	if (wanted === undefined) return;
	if (typeof wanted === "string") return;
	if (wanted instanceof RegExp) {
		if (!wanted.test(String(error))) fail_(error, wanted, message ?? `The input did not match the regular expression ${inspect(wanted)}. Input:\n\n${inspect(String(error))}\n`, operator);
		return;
	}
	if (typeof wanted === "function") {
		if (wanted.prototype !== undefined && error instanceof wanted) return;
		if (Object.prototype.isPrototypeOf.call(Error, wanted)) throw error;
		if (wanted.call({}, error) !== true) fail_(error, wanted, message ?? `The ${wanted.name ? `"${wanted.name}" ` : ""}validation function is expected to return "true".`, operator);
		return;
	}
	const keys = wanted instanceof Error ? [...Object.keys(wanted), "name", "message"] : Object.keys(wanted);
	for (const key of keys) {
		const fits = wanted[key] instanceof RegExp && typeof error[key] === "string" ? wanted[key].test(error[key]) : alike(error[key], wanted[key], true);
		if (!fits) fail_(error, wanted, message ?? `Expected values to be strictly deep-equal:\n\n${key}: ${inspect(error[key])} !== ${inspect(wanted[key])}\n`, operator);
	}
}

const split = (wanted, message) => (typeof wanted === "string" ? [undefined, wanted] : [wanted, message]);
const called = (work) => {
	if (typeof work !== "function") throw invalidArgType("fn", "function", work);
	return work();
};

export function throws(work, ...rest) {
	const [wanted, message] = split(...rest);
	let thrown;
	try {
		called(work);
	} catch (error) {
		if (error?.code === "ERR_INVALID_ARG_TYPE" && typeof work !== "function") throw error;
		thrown = { error };
	}
	if (!thrown) fail_(undefined, wanted, message ?? `Missing expected exception${wanted?.name ? ` (${wanted.name}).` : "."}`, "throws", throws);
	expected_(thrown.error, wanted, message, "throws");
}
export function doesNotThrow(work, ...rest) {
	const [, message] = split(...rest);
	try {
		called(work);
	} catch (error) {
		fail_(error, undefined, `Got unwanted exception${message ? `: ${message}` : "."}\nActual message: "${error?.message}"`, "doesNotThrow", doesNotThrow);
	}
}
const promiseOf = async (work) => (typeof work === "function" ? work() : work);
export async function rejects(work, ...rest) {
	const [wanted, message] = split(...rest);
	let thrown;
	try {
		await promiseOf(work);
	} catch (error) {
		thrown = { error };
	}
	if (!thrown) fail_(undefined, wanted, message ?? `Missing expected rejection${wanted?.name ? ` (${wanted.name}).` : "."}`, "rejects", rejects);
	expected_(thrown.error, wanted, message, "rejects");
}
export async function doesNotReject(work, ...rest) {
	const [, message] = split(...rest);
	try {
		await promiseOf(work);
	} catch (error) {
		fail_(error, undefined, `Got unwanted rejection${message ? `: ${message}` : "."}\nActual message: "${error?.message}"`, "doesNotReject", doesNotReject);
	}
}
export function ifError(value) {
	if (value === null || value === undefined) return;
	const error = new AssertionError({ message: `ifError got unwanted exception: ${value.message ?? inspect(value)}`, actual: value, expected: null, operator: "ifError" });
	throw error;
}
export class CallTracker {
	constructor() {
		throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "assert.CallTracker is not available to extensions in pinion");
	}
}

Object.assign(assert, { AssertionError, CallTracker, ok: assert, fail, equal, notEqual, strictEqual, notStrictEqual, deepEqual, notDeepEqual, deepStrictEqual, notDeepStrictEqual, partialDeepStrictEqual, match, doesNotMatch, throws, doesNotThrow, rejects, doesNotReject, ifError });
export const strict = Object.assign((value, message) => assert(value, message), assert, { equal: strictEqual, notEqual: notStrictEqual, deepEqual: deepStrictEqual, notDeepEqual: notDeepStrictEqual });
strict.strict = strict;
assert.strict = strict;
export default assert;
