// node:util

import { ops } from "pinion:ops";
import { coded, invalidArgType, missing } from "pinion:node/internal_errors";
import { deepEqual } from "pinion:node/internal_equal";
import { format, formatWithOptions, inspect } from "pinion:node/internal_inspect";
import { parseArgs } from "pinion:node/internal_parse_args";
import types from "pinion:node/util_types";

export { format, formatWithOptions, inspect, parseArgs, types };

const promisified = Symbol.for("nodejs.util.promisify.custom");

export function promisify(original) {
	if (typeof original !== "function") throw invalidArgType("original", "function", original);
	if (original[promisified]) return Object.defineProperty(original[promisified], promisified, { value: original[promisified], configurable: true });
	function promised(...args) {
		return new Promise((resolve, reject) => {
			original.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
		});
	}
	Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
	Object.defineProperty(promised, promisified, { value: promised, configurable: true });
	return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = promisified;

export function callbackify(original) {
	if (typeof original !== "function") throw invalidArgType("original", "function", original);
	const called = function (...args) {
		const callback = args.pop();
		if (typeof callback !== "function") throw invalidArgType("last argument", "function", callback);
		const fail = (reason) => {
			if (reason) return callback(reason);
			const error = coded(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value");
			error.reason = reason;
			callback(error);
		};
		Reflect.apply(original, this, args).then(
			(value) => queueMicrotask(() => callback.call(this, null, value)),
			(reason) => queueMicrotask(() => fail(reason)),
		);
	};
	Object.defineProperty(called, "name", { value: `${original.name}Callbackified`, configurable: true });
	return called;
}

export function inherits(constructor, parent) {
	Object.defineProperty(constructor, "super_", { value: parent, writable: true, configurable: true });
	Object.setPrototypeOf(constructor.prototype, parent.prototype);
}

const warnedCodes = new Set();
export function deprecate(original, message, code) {
	let warned = false;
	const wrapped = function (...args) {
		if (!warned && !(code && warnedCodes.has(code))) {
			warned = true;
			if (code) warnedCodes.add(code);
			globalThis.process?.emitWarning?.(message, "DeprecationWarning", code);
		}
		return new.target ? Reflect.construct(original, args, new.target) : Reflect.apply(original, this, args);
	};
	Object.setPrototypeOf(wrapped, original);
	if (original.prototype) wrapped.prototype = original.prototype;
	return wrapped;
}

// Sequences that end in BEL, ESC \ or 0x9c, then those that end in a letter.
const CONTROLS = /[\u001B\u009B][[\]()#;?]*(?:(?:(?:(?:;[-a-zA-Z\d\/\#&.:=?%@~_]+)*|[a-zA-Z\d]+(?:;[-a-zA-Z\d\/\#&.:=?%@~_]*)*)?(?:\u0007|\u001B\u005C|\u009C))|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]))/g;

export function stripVTControlCharacters(text) {
	if (typeof text !== "string") throw invalidArgType("str", "string", text);
	return text.replace(CONTROLS, "");
}

const STYLES = { reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28], strikethrough: [9, 29], doubleunderline: [21, 24] };
for (const [i, name] of ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"].entries()) {
	STYLES[name] = [30 + i, 39];
	STYLES[`${name}Bright`] = [90 + i, 39];
	STYLES[`bg${name[0].toUpperCase()}${name.slice(1)}`] = [40 + i, 49];
	STYLES[`bg${name[0].toUpperCase()}${name.slice(1)}Bright`] = [100 + i, 49];
}
STYLES.gray = STYLES.grey = STYLES.blackBright;
STYLES.bgGray = STYLES.bgGrey = STYLES.bgBlackBright;

export function styleText(styles, text) {
	let [open, close] = ["", ""];
	for (const style of [styles].flat()) {
		const codes = STYLES[style];
		if (codes === undefined) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'format' must be one of: ${Object.keys(STYLES).join(", ")}. Received '${style}'`);
		open += `\x1b[${codes[0]}m`;
		close = `\x1b[${codes[1]}m${close}`;
	}
	return `${open}${text}${close}`;
}

export function debuglog(section) {
	const name = section.toUpperCase();
	const wanted = (ops.process.variable("NODE_DEBUG") ?? "").toUpperCase().split(",");
	const enabled = wanted.some((pattern) => new RegExp(`^${pattern.replace(/[^\w*]/g, "\\$&").replaceAll("*", ".*")}$`).test(name));
	const log = (...args) => {
		if (enabled) console.error(`${name} ${ops.process.pid}: ${format(...args)}`);
	};
	log.enabled = enabled;
	return log;
}
export const debug = debuglog;

export const isDeepStrictEqual = (one, other) => deepEqual(one, other, true);
export const isArray = Array.isArray;
export const isBoolean = (value) => typeof value === "boolean";
export const isBuffer = (value) => globalThis.Buffer.isBuffer(value);
export const isDate = types.isDate;
export const isError = (value) => value instanceof Error;
export const isFunction = (value) => typeof value === "function";
export const isNull = (value) => value === null;
export const isNullOrUndefined = (value) => value === null || value === undefined;
export const isNumber = (value) => typeof value === "number";
export const isObject = (value) => value !== null && typeof value === "object";
export const isPrimitive = (value) => value === null || (typeof value !== "object" && typeof value !== "function");
export const isRegExp = types.isRegExp;
export const isString = (value) => typeof value === "string";
export const isSymbol = (value) => typeof value === "symbol";
export const isUndefined = (value) => value === undefined;
export const toUSVString = (text) => String(text).toWellFormed();
export const TextEncoder = globalThis.TextEncoder;
export const TextDecoder = globalThis.TextDecoder;
export const getSystemErrorName = (number) => ops.os.errorName(-number);
export const getSystemErrorMap = missing("util", "getSystemErrorMap");
export const aborted = (signal) => (signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })));
export const log = (...args) => console.log(`${new Date().toTimeString().slice(0, 8)} - ${format(...args)}`);
export const _extend = (target, source) => Object.assign(target, source);
export const transferableAbortController = () => new AbortController();
export const transferableAbortSignal = (signal) => signal;
export const MIMEType = missing("util", "MIMEType");
export const MIMEParams = missing("util", "MIMEParams");

/** Parses the variables of an environment file. */
export function parseEnv(content) {
	const found = {};
	const line = /^\s*(?:export\s+)?([\w.-]+)\s*=[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|[^#\r\n]*)/gm;
	for (const [, name, raw] of content.matchAll(line)) {
		const value = raw.trim();
		const quoted = /^(["'`])([\s\S]*)\1$/.exec(value);
		found[name] = !quoted ? value : quoted[1] === '"' ? quoted[2].replaceAll("\\n", "\n") : quoted[2];
	}
	return found;
}

const util = { format, formatWithOptions, inspect, parseArgs, types, promisify, callbackify, inherits, deprecate, stripVTControlCharacters, styleText, debuglog, debug, isDeepStrictEqual, isArray, isBoolean, isBuffer, isDate, isError, isFunction, isNull, isNullOrUndefined, isNumber, isObject, isPrimitive, isRegExp, isString, isSymbol, isUndefined, toUSVString, TextEncoder, TextDecoder, getSystemErrorName, getSystemErrorMap, aborted, log, _extend, transferableAbortController, transferableAbortSignal, MIMEType, MIMEParams, parseEnv };
export default util;
