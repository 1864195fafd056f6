// node:crypto and the global `crypto`.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { coded, invalidArgType, missing, missingClass, outOfRange } from "pinion:node/internal_errors";
import { Transform } from "pinion:node/internal_writable";
import { subtle } from "pinion:node/internal_subtle";

const native = ops.crypto;
const buffered = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const NAMES = { "rsa-md5": "md5", "rsa-sha1": "sha1", "rsa-sha256": "sha256", "rsa-sha384": "sha384", "rsa-sha512": "sha512" };
const algorithmOf = (name) => {
	const lower = String(name).toLowerCase();
	return NAMES[lower] ?? lower.replace(/^sha-(\d)/, "sha$1");
};

export function bytesOf(data, encoding, name = "data") {
	if (typeof data === "string") return Buffer.from(data, encoding === "buffer" ? "utf8" : encoding);
	if (data instanceof Uint8Array) return data;
	if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
	if (data instanceof ArrayBuffer) return new Uint8Array(data);
	if (data instanceof KeyObject) return data.export();
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === undefined || data === null ? data : `type ${typeof data}`}`);
}

class Digest extends Transform {
	#state;
	#done = false;
	constructor(state, options) {
		super(options);
		this.#state = state;
	}
	update(data, encoding) {
		if (this.#done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
		this.#state.update(bytesOf(data, encoding));
		return this;
	}
	digest(encoding) {
		if (this.#done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
		this.#done = true;
		const bytes = buffered(this.#state.digest());
		return encoding && encoding !== "buffer" ? bytes.toString(encoding) : bytes;
	}
	_copied() {
		if (this.#done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
		return this.#state.copy();
	}
	_transform(chunk, encoding, callback) {
		this.update(chunk, encoding);
		callback();
	}
	_flush(callback) {
		this.push(this.digest());
		callback();
	}
}

export class Hash extends Digest {
	copy(options) {
		return new Hash(this._copied(), options);
	}
}
export class Hmac extends Digest {}

const known = (made) => {
	if (!made) throw coded(Error, "ERR_OSSL_EVP_UNSUPPORTED", "Digest method not supported");
	return made;
};

export const createHash = (algorithm, options) => {
	if (typeof algorithm !== "string") throw invalidArgType("algorithm", "string", algorithm);
	return new Hash(known(native.hash(algorithmOf(algorithm))), options);
};
export const createHmac = (algorithm, key, options) => {
	if (typeof algorithm !== "string") throw invalidArgType("hmac", "string", algorithm);
	const made = native.hmac(algorithmOf(algorithm), new Uint8Array(bytesOf(key, "utf8", "key")));
	if (!made) throw coded(Error, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${algorithm}`);
	return new Hmac(made, options);
};
export const hash = (algorithm, data, encoding = "hex") => createHash(algorithm).update(data).digest(encoding);
export const getHashes = () => ["RSA-MD5", "RSA-SHA1", "RSA-SHA256", "RSA-SHA384", "RSA-SHA512", "md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

export function randomBytes(size, callback) {
	if (typeof size !== "number") throw invalidArgType("size", "number", size);
	if (!(size >= 0 && size <= 2147483647)) throw outOfRange("size", ">= 0 && <= 2147483647", size);
	const bytes = buffered(native.random(size));
	if (!callback) return bytes;
	setImmediate(() => callback(null, bytes));
}
export const pseudoRandomBytes = randomBytes;
export const prng = randomBytes;
export const rng = randomBytes;
export function randomFillSync(target, offset = 0, size) {
	const bytes = ArrayBuffer.isView(target) ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength) : new Uint8Array(target);
	bytes.set(native.random(size ?? bytes.length - offset), offset);
	return target;
}
export function randomFill(target, ...args) {
	const callback = args.pop();
	randomFillSync(target, ...args);
	setImmediate(() => callback(null, target));
}
export const randomUUID = () => native.uuid();

export function randomInt(low, high, callback) {
	if (high === undefined || typeof high === "function") [low, high, callback] = [0, low, high];
	for (const [name, value] of [["min", low], ["max", high]]) if (!Number.isSafeInteger(value)) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be a safe integer. Received ${typeof value === "number" ? `type number (${value})` : String(value)}`);
	if (high <= low) throw outOfRange("max", `greater than the value of "min" (${low})`, high);
	const range = high - low;
	if (range > 2 ** 48 - 1) throw outOfRange("max - min", "<= 281474976710655", range);
	const limit = 2 ** 48 - (2 ** 48 % range);
	let value;
	do value = buffered(native.random(6)).readUIntBE(0, 6);
	while (value >= limit);
	const chosen = low + (value % range);
	if (!callback) return chosen;
	setImmediate(() => callback(undefined, chosen));
}

export function timingSafeEqual(one, other) {
	const [a, b] = [bytesOf(one, undefined, "buf1"), bytesOf(other, undefined, "buf2")];
	if (a.length !== b.length) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
	let difference = 0;
	for (let i = 0; i < a.length; i++) difference |= a[i] ^ b[i];
	return difference === 0;
}

const derived = (bytes, digest) => {
	if (!bytes) throw coded(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${digest}`);
	return buffered(bytes);
};
const plain = (data, name) => new Uint8Array(bytesOf(data, "utf8", name));
export const pbkdf2Sync = (password, salt, rounds, length, digest) => derived(native.pbkdf2(plain(password, "password"), plain(salt, "salt"), rounds, length, algorithmOf(digest)), digest);
export function pbkdf2(password, salt, rounds, length, digest, callback) {
	native.pbkdf2Async(plain(password, "password"), plain(salt, "salt"), rounds, length, algorithmOf(digest)).then((bytes) => derived(bytes, digest)).then(
		(key) => setImmediate(() => callback(null, key)),
		(error) => setImmediate(() => callback(error)),
	);
}
export function hkdfSync(digest, key, salt, info, length) {
	const mac = (secret, ...parts) => parts.reduce((state, part) => state.update(part), createHmac(digest, secret)).digest();
	const pseudo = mac(plain(salt, "salt"), plain(key, "ikm"));
	let block = Buffer.alloc(0);
	let whole = Buffer.alloc(0);
	for (let i = 1; whole.length < length; i++) {
		block = mac(pseudo, block, plain(info, "info"), Buffer.from([i]));
		whole = Buffer.concat([whole, block]);
	}
	return new Uint8Array(whole.subarray(0, length)).buffer;
}
export const hkdf = (digest, key, salt, info, length, callback) => {
	const made = hkdfSync(digest, key, salt, info, length);
	setImmediate(() => callback(null, made));
};

export class KeyObject {
	#bytes;
	constructor(type, bytes) {
		this.type = type;
		this.#bytes = bytes;
	}
	get symmetricKeySize() {
		return this.#bytes.length;
	}
	export(options) {
		return options?.format === "jwk" ? { kty: "oct", k: this.#bytes.toString("base64url") } : Buffer.from(this.#bytes);
	}
	equals(other) {
		return this.#bytes.equals(other.export());
	}
}
export const createSecretKey = (key, encoding) => new KeyObject("secret", Buffer.from(bytesOf(key, encoding)));

export const getRandomValues = (array) => {
	if (!ArrayBuffer.isView(array) || array instanceof Float32Array || array instanceof Float64Array || array instanceof DataView) throw new DOMException("The data argument must be an integer-type TypedArray", "TypeMismatchError");
	if (array.byteLength > 65536) throw new DOMException(`The requested length exceeds 65,536 bytes`, "QuotaExceededError");
	return randomFillSync(array);
};

class Crypto {
	get subtle() {
		return subtle;
	}
	getRandomValues(array) {
		return getRandomValues(array);
	}
	randomUUID() {
		return native.uuid();
	}
	get [Symbol.toStringTag]() {
		return "Crypto";
	}
}
export const webcrypto = new Crypto();
export { subtle };

const absent = (name) => missing("crypto", name);
export const createCipheriv = absent("createCipheriv");
export const createDecipheriv = absent("createDecipheriv");
export const createSign = absent("createSign");
export const createVerify = absent("createVerify");
export const createPublicKey = absent("createPublicKey");
export const createPrivateKey = absent("createPrivateKey");
export const createDiffieHellman = absent("createDiffieHellman");
export const createECDH = absent("createECDH");
export const generateKeyPair = absent("generateKeyPair");
export const generateKeyPairSync = absent("generateKeyPairSync");
export const generateKeySync = absent("generateKeySync");
export const publicEncrypt = absent("publicEncrypt");
export const privateDecrypt = absent("privateDecrypt");
export const sign = absent("sign");
export const verify = absent("verify");
export const scrypt = absent("scrypt");
export const scryptSync = absent("scryptSync");
export const X509Certificate = missingClass("crypto", "X509Certificate");
export const getCiphers = () => [];
export const getCurves = () => [];
export const getFips = () => 0;
export const constants = {};

const crypto = { Hash, Hmac, createHash, createHmac, hash, getHashes, randomBytes, pseudoRandomBytes, prng, rng, randomFill, randomFillSync, randomUUID, randomInt, timingSafeEqual, pbkdf2, pbkdf2Sync, hkdf, hkdfSync, KeyObject, createSecretKey, getRandomValues, webcrypto, subtle, createCipheriv, createDecipheriv, createSign, createVerify, createPublicKey, createPrivateKey, createDiffieHellman, createECDH, generateKeyPair, generateKeyPairSync, generateKeySync, publicEncrypt, privateDecrypt, sign, verify, scrypt, scryptSync, X509Certificate, getCiphers, getCurves, getFips, constants };
export default crypto;
