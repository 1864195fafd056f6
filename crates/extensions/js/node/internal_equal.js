// Deep equality, for util.isDeepStrictEqual and assert.

/** Compares two values by structure; `strict` also compares types and prototypes. */
export function deepEqual(one, other, strict, pairs = new Map()) {
	if (strict ? Object.is(one, other) : one == other || (one !== one && other !== other)) return true;
	if (one === null || other === null || typeof one !== "object" || typeof other !== "object") return false;
	if (strict && Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
	if (Object.prototype.toString.call(one) !== Object.prototype.toString.call(other)) return false;
	if (Array.isArray(one) !== Array.isArray(other)) return false;
	if (pairs.get(one) === other) return true;
	pairs.set(one, other);
	if (Array.isArray(one) && one.length !== other.length) return false;
	if (one instanceof Date && one.getTime() !== other.getTime()) return false;
	if (one instanceof RegExp && (String(one) !== String(other) || one.lastIndex !== other.lastIndex)) return false;
	if (one instanceof Error && (one.message !== other.message || one.name !== other.name)) return false;
	if ([Number, String, Boolean, BigInt, Symbol].some((Box) => one instanceof Box) && !Object.is(one.valueOf(), other.valueOf())) return false;
	if (ArrayBuffer.isView(one)) {
		if (one.byteLength !== other.byteLength) return false;
		const a = new Uint8Array(one.buffer, one.byteOffset, one.byteLength);
		const b = new Uint8Array(other.buffer, other.byteOffset, other.byteLength);
		return a.every((byte, i) => byte === b[i]);
	}
	if (one instanceof ArrayBuffer) return deepEqual(new Uint8Array(one), new Uint8Array(other), strict, pairs);
	if (one instanceof Set) {
		if (one.size !== other.size) return false;
		const left = [...other];
		for (const item of one) {
			const at = left.findIndex((candidate) => deepEqual(item, candidate, strict, new Map(pairs)));
			if (at < 0) return false;
			left.splice(at, 1);
		}
	} else if (one instanceof Map) {
		if (one.size !== other.size) return false;
		const left = [...other];
		for (const [key, value] of one) {
			const at = left.findIndex((entry) => deepEqual(key, entry[0], strict, new Map(pairs)) && deepEqual(value, entry[1], strict, new Map(pairs)));
			if (at < 0) return false;
			left.splice(at, 1);
		}
	} else if (one instanceof WeakMap || one instanceof WeakSet || one instanceof Promise) return false;
	const keys = ownKeys(one, strict);
	if (keys.length !== ownKeys(other, strict).length) return false;
	return keys.every((key) => Object.prototype.propertyIsEnumerable.call(other, key) && deepEqual(one[key], other[key], strict, pairs));
}

function ownKeys(value, strict) {
	const keys = Object.keys(value);
	if (strict) keys.push(...Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key)));
	return keys;
}
