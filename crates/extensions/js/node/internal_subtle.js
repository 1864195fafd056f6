// crypto.subtle: digests, HMAC and key derivation.

import { ops } from "pinion:ops";

const HASHES = { "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
const BLOCKS = { sha1: 64, sha256: 64, sha384: 128, sha512: 128 };

const unknown = (name) => new DOMException(`Unrecognized algorithm name: ${name}`, "NotSupportedError");
const nameOf = (algorithm) => (typeof algorithm === "string" ? algorithm : algorithm?.name ?? "");
const hashOf = (algorithm) => {
	const name = nameOf(algorithm).toUpperCase();
	const found = HASHES[name];
	if (!found) throw unknown(nameOf(algorithm));
	return found;
};
// A copy, because later changes by the caller must not change the result.
const bytes = (data) => (ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice() : new Uint8Array(data).slice());
const bufferOf = (array) => array.buffer.slice(array.byteOffset, array.byteOffset + array.byteLength);

export class CryptoKey {
	#secret;
	constructor(secret, algorithm, extractable, usages) {
		this.#secret = secret;
		Object.assign(this, { type: "secret", algorithm, extractable, usages });
	}
	static secretOf(key) {
		return key.#secret;
	}
	get [Symbol.toStringTag]() {
		return "CryptoKey";
	}
}

const mac = (key, data) => {
	const state = ops.crypto.hmac(hashOf(key.algorithm.hash), CryptoKey.secretOf(key));
	state.update(bytes(data));
	return state.digest();
};

export const subtle = {
	async digest(algorithm, data) {
		const state = ops.crypto.hash(hashOf(algorithm));
		state.update(bytes(data));
		return bufferOf(state.digest());
	},
	async importKey(format, data, algorithm, extractable, usages) {
		const name = nameOf(algorithm).toUpperCase();
		if (name !== "HMAC" && name !== "PBKDF2") throw unknown(nameOf(algorithm));
		if (format !== "raw" && format !== "jwk") throw new DOMException(`Unable to import a key in the format ${format}`, "NotSupportedError");
		const secret = format === "raw" ? bytes(data) : ops.buffer.encode(data.k, "base64url");
		const hash = name === "HMAC" ? { name: nameOf(algorithm.hash).toUpperCase() } : undefined;
		return new CryptoKey(secret, name === "HMAC" ? { name, hash, length: secret.length * 8 } : { name }, extractable, usages);
	},
	async generateKey(algorithm, extractable, usages) {
		const name = nameOf(algorithm).toUpperCase();
		if (name !== "HMAC") throw unknown(nameOf(algorithm));
		const length = algorithm.length ?? BLOCKS[hashOf(algorithm.hash)] * 8;
		return new CryptoKey(ops.crypto.random(length / 8), { name, hash: { name: nameOf(algorithm.hash).toUpperCase() }, length }, extractable, usages);
	},
	async exportKey(format, key) {
		if (!key.extractable) throw new DOMException("key is not extractable", "InvalidAccessError");
		const secret = CryptoKey.secretOf(key);
		if (format === "raw") return bufferOf(secret.slice());
		return { kty: "oct", k: ops.buffer.decode(secret, "base64url"), ext: true, key_ops: key.usages, alg: `HS${key.algorithm.hash.name.slice(4)}` };
	},
	async sign(algorithm, key, data) {
		if (nameOf(algorithm).toUpperCase() !== "HMAC") throw unknown(nameOf(algorithm));
		return bufferOf(mac(key, data));
	},
	async verify(algorithm, key, signature, data) {
		if (nameOf(algorithm).toUpperCase() !== "HMAC") throw unknown(nameOf(algorithm));
		const [wanted, given] = [mac(key, data), bytes(signature)];
		if (wanted.length !== given.length) return false;
		return wanted.reduce((difference, byte, i) => difference | (byte ^ given[i]), 0) === 0;
	},
	async deriveBits(algorithm, key, length) {
		if (nameOf(algorithm).toUpperCase() !== "PBKDF2") throw unknown(nameOf(algorithm));
		const made = await ops.crypto.pbkdf2Async(CryptoKey.secretOf(key), bytes(algorithm.salt), algorithm.iterations, length / 8, hashOf(algorithm.hash));
		return bufferOf(made);
	},
};
for (const name of ["encrypt", "decrypt", "deriveKey", "wrapKey", "unwrapKey"])
	subtle[name] = async (algorithm) => {
		throw unknown(nameOf(algorithm));
	};
