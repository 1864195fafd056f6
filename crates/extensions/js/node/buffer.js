// node:buffer: Buffer as a Uint8Array with encodings.

import { ops } from "pinion:ops";
import { coded, invalidArgType, outOfRange } from "pinion:node/internal_errors";
import { numberMethods } from "pinion:node/internal_buffer_numbers";

const ENCODINGS = {
	utf8: "utf8",
	"utf-8": "utf8",
	hex: "hex",
	base64: "base64",
	base64url: "base64url",
	latin1: "latin1",
	binary: "latin1",
	ascii: "ascii",
	ucs2: "utf16le",
	"ucs-2": "utf16le",
	utf16le: "utf16le",
	"utf-16le": "utf16le",
};

export const kMaxLength = 2 ** 32;
export const kStringMaxLength = 2 ** 29 - 24;
export const constants = { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength };
export const INSPECT_MAX_BYTES = 50;

/** Returns the normal name of an encoding; `undefined` if it is unknown. */
export function normalizeEncoding(encoding) {
	if (encoding === undefined || encoding === null || encoding === "" || encoding === "buffer") return "utf8";
	return ENCODINGS[encoding] ?? ENCODINGS[String(encoding).toLowerCase()];
}

function known(encoding) {
	const found = normalizeEncoding(encoding);
	if (found === undefined) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
	return found;
}

/** Returns the bytes of `text` as a plain Uint8Array. */
function encode(text, encoding) {
	switch (known(encoding)) {
		case "utf16le": {
			const bytes = new Uint8Array(text.length * 2);
			for (let i = 0; i < text.length; i++) {
				const unit = text.charCodeAt(i);
				bytes[2 * i] = unit;
				bytes[2 * i + 1] = unit >> 8;
			}
			return bytes;
		}
		case "latin1":
		case "ascii": {
			const bytes = new Uint8Array(text.length);
			for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
			return bytes;
		}
		case "utf8":
			return ops.buffer.encode(text.toWellFormed(), "utf8");
		default:
			return ops.buffer.encode(text.toWellFormed(), known(encoding));
	}
}

function decode(bytes, encoding) {
	const name = known(encoding);
	if (name !== "utf16le") return ops.buffer.decode(bytes, name);
	const units = new Uint16Array(bytes.length >> 1);
	for (let i = 0; i < units.length; i++) units[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
	let text = "";
	for (let i = 0; i < units.length; i += 8192) text += String.fromCharCode.apply(null, units.subarray(i, i + 8192));
	return text;
}

const wrap = (array) => new Buffer(array.buffer, array.byteOffset, array.byteLength);
const clamp = (value, fallback, most) => {
	const number = value === undefined ? fallback : Math.trunc(Number(value)) || 0;
	return Math.min(Math.max(number < 0 ? 0 : number, 0), most);
};
const size = (value) => {
	if (typeof value !== "number") throw invalidArgType("size", "number", value);
	if (!(value >= 0 && value <= kMaxLength)) throw outOfRange("size", `>= 0 && <= ${kMaxLength}`, value);
	return value;
};

export class Buffer extends Uint8Array {
	static poolSize = 8192;

	static from(value, encodingOrOffset, length) {
		if (typeof value === "string") return wrap(encode(value, encodingOrOffset));
		if (value === null || (typeof value !== "object" && typeof value !== "function")) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object. Received ${value === null || value === undefined ? value : `type ${typeof value} (${String(value)})`}`);
		if (value instanceof ArrayBuffer || (typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer)) return new Buffer(value, encodingOrOffset ?? 0, length ?? value.byteLength - (encodingOrOffset ?? 0));
		if (ArrayBuffer.isView(value) || Array.isArray(value)) return copyOf(value);
		const primitive = value.valueOf?.();
		if (primitive != null && primitive !== value && (typeof primitive === "string" || typeof primitive === "object")) return Buffer.from(primitive, encodingOrOffset, length);
		if (typeof value[Symbol.toPrimitive] === "function") return Buffer.from(value[Symbol.toPrimitive]("string"), encodingOrOffset);
		if (value.type === "Buffer" && Array.isArray(value.data)) return copyOf(value.data);
		if (typeof value.length === "number") return copyOf(Array.from(value));
		throw invalidArgType("first argument", "Buffer", value);
	}
	static of(...items) {
		return copyOf(items);
	}
	static alloc(length, fill, encoding) {
		const buffer = new Buffer(size(length));
		if (fill !== undefined && fill !== 0 && length > 0) buffer.fill(fill, encoding);
		return buffer;
	}
	static allocUnsafe(length) {
		return new Buffer(size(length));
	}
	static allocUnsafeSlow(length) {
		return new Buffer(size(length));
	}
	static isBuffer(value) {
		return value instanceof Buffer;
	}
	static isEncoding(encoding) {
		return typeof encoding === "string" && encoding !== "" && normalizeEncoding(encoding) !== undefined;
	}
	static byteLength(value, encoding) {
		if (typeof value !== "string") {
			if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
			throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "string" argument must be of type string or an instance of Buffer or ArrayBuffer. Received ${typeof value}`);
		}
		const name = normalizeEncoding(encoding) ?? "utf8";
		if (name === "utf16le") return value.length * 2;
		if (name === "latin1" || name === "ascii") return value.length;
		if (name === "hex") return value.length >>> 1;
		if (name.startsWith("base64")) return (value.replace(/=+$/, "").length * 3) >>> 2;
		return encode(value, name).length;
	}
	static concat(list, total) {
		if (!Array.isArray(list)) throw invalidArgType("list", "Array", list);
		total ??= list.reduce((sum, part) => sum + part.length, 0);
		const buffer = new Buffer(total);
		let at = 0;
		for (const part of list) {
			if (!(part instanceof Uint8Array)) throw invalidArgType(`list[${list.indexOf(part)}]`, "Buffer or Uint8Array", part);
			if (at >= total) break;
			const fits = part.length > total - at ? part.subarray(0, total - at) : part;
			buffer.set(fits, at);
			at += fits.length;
		}
		return buffer;
	}
	static compare(one, other) {
		for (const part of [one, other]) if (!(part instanceof Uint8Array)) throw invalidArgType("buf1", "Buffer or Uint8Array", part);
		const common = Math.min(one.length, other.length);
		for (let i = 0; i < common; i++) if (one[i] !== other[i]) return one[i] < other[i] ? -1 : 1;
		return Math.sign(one.length - other.length);
	}
	static copyBytesFrom(view, offset = 0, length = view.length - offset) {
		const part = view.subarray(offset, offset + length);
		return copyOf(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
	}

	get parent() {
		return this.buffer;
	}
	get offset() {
		return this.byteOffset;
	}
	toString(encoding, start, end) {
		const from = clamp(start, 0, this.length);
		const to = clamp(end, this.length, this.length);
		if (to <= from) {
			known(encoding);
			return "";
		}
		return decode(from === 0 && to === this.length ? this : this.subarray(from, to), encoding);
	}
	toLocaleString(encoding, start, end) {
		return this.toString(encoding, start, end);
	}
	toJSON() {
		return { type: "Buffer", data: Array.from(this) };
	}
	equals(other) {
		if (!(other instanceof Uint8Array)) throw invalidArgType("otherBuffer", "Buffer or Uint8Array", other);
		return this === other || (this.length === other.length && Buffer.compare(this, other) === 0);
	}
	compare(target, targetStart = 0, targetEnd = target.length, start = 0, end = this.length) {
		return Buffer.compare(this.subarray(start, end), target.subarray(targetStart, targetEnd));
	}
	subarray(start, end) {
		const part = Uint8Array.prototype.subarray.call(this, start, end);
		return part instanceof Buffer ? part : wrap(part);
	}
	slice(start, end) {
		return this.subarray(start, end);
	}
	copy(target, targetStart = 0, start = 0, end = this.length) {
		const part = Uint8Array.prototype.subarray.call(this, start, Math.min(end, this.length));
		const room = Math.max(target.length - targetStart, 0);
		const fits = part.length > room ? part.subarray(0, room) : part;
		if (fits.length > 0) target.set(fits, targetStart);
		return fits.length;
	}
	write(text, offset, length, encoding) {
		if (typeof offset === "string") [encoding, offset, length] = [offset, 0, undefined];
		else if (typeof length === "string") [encoding, length] = [length, undefined];
		offset = clamp(offset, 0, this.length);
		let bytes = encode(text, encoding);
		const room = Math.min(length ?? Number.POSITIVE_INFINITY, this.length - offset);
		if (bytes.length > room) {
			let cut = room;
			// Characters are not split.
			if (known(encoding) === "utf8") while (cut > 0 && (bytes[cut] & 0xc0) === 0x80) cut--;
			bytes = bytes.subarray(0, cut);
		}
		this.set(bytes, offset);
		return bytes.length;
	}
	fill(value, offset, end, encoding) {
		if (typeof offset === "string") [encoding, offset, end] = [offset, 0, this.length];
		else if (typeof end === "string") [encoding, end] = [end, this.length];
		const from = offset ?? 0;
		const to = end ?? this.length;
		if (typeof value === "number" || typeof value === "boolean") return Uint8Array.prototype.fill.call(this, Number(value) & 255, from, to), this;
		const pattern = typeof value === "string" ? encode(value, encoding) : value;
		if (pattern.length === 0) {
			if (typeof value === "string" && value !== "") throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'value' is invalid. Received '${value}'`);
			return Uint8Array.prototype.fill.call(this, 0, from, to), this;
		}
		for (let i = from; i < to; i++) this[i] = pattern[(i - from) % pattern.length];
		return this;
	}
	indexOf(value, offset, encoding) {
		return search(this, value, offset, encoding, true);
	}
	lastIndexOf(value, offset, encoding) {
		return search(this, value, offset, encoding, false);
	}
	includes(value, offset, encoding) {
		return this.indexOf(value, offset, encoding) !== -1;
	}
	swap16() {
		return swap(this, 2);
	}
	swap32() {
		return swap(this, 4);
	}
	swap64() {
		return swap(this, 8);
	}
	[Symbol.for("nodejs.util.inspect.custom")]() {
		const shown = Array.from(Uint8Array.prototype.subarray.call(this, 0, INSPECT_MAX_BYTES), (byte) => byte.toString(16).padStart(2, "0"));
		const more = this.length - INSPECT_MAX_BYTES;
		return `<${["Buffer", ...shown].join(" ")}${more > 0 ? ` ... ${more} more byte${more > 1 ? "s" : ""}` : ""}>`;
	}
}

for (const [name, method] of Object.entries(numberMethods)) Object.defineProperty(Buffer.prototype, name, { value: method, writable: true, configurable: true });
for (const name of ["utf8", "hex", "base64", "base64url", "latin1", "ascii", "ucs2", "utf16le"]) {
	const write = function (text, offset, length) {
		return this.write(text, offset, length, name);
	};
	const slice = function (start, end) {
		return this.toString(name, start, end);
	};
	Object.defineProperty(Buffer.prototype, `${name}Write`, { value: write, writable: true, configurable: true });
	Object.defineProperty(Buffer.prototype, `${name}Slice`, { value: slice, writable: true, configurable: true });
}

function copyOf(source) {
	const buffer = new Buffer(source.length);
	if (ArrayBuffer.isView(source)) buffer.set(source);
	else for (let i = 0; i < source.length; i++) buffer[i] = source[i];
	return buffer;
}

function swap(buffer, width) {
	if (buffer.length % width !== 0) throw coded(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${width * 8}-bits`);
	for (let i = 0; i < buffer.length; i += width) Uint8Array.prototype.subarray.call(buffer, i, i + width).reverse();
	return buffer;
}

function search(buffer, value, offset, encoding, forward) {
	if (typeof offset === "string") [encoding, offset] = [offset, undefined];
	let from = offset === undefined ? (forward ? 0 : buffer.length) : Math.trunc(Number(offset));
	if (Number.isNaN(from)) from = forward ? 0 : buffer.length;
	if (from < 0) from += buffer.length;
	if (typeof value === "number") {
		const byte = value & 255;
		if (forward) return Uint8Array.prototype.indexOf.call(buffer, byte, Math.max(from, 0));
		return from < 0 ? -1 : Uint8Array.prototype.lastIndexOf.call(buffer, byte, from);
	}
	if (typeof value !== "string" && !(value instanceof Uint8Array)) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "value" argument must be one of type number or string or an instance of Buffer or Uint8Array.`);
	const wanted = typeof value === "string" ? encode(value, encoding) : value;
	if (forward) return ops.buffer.find(buffer, wanted, Math.max(from, 0));
	for (let i = Math.min(from, buffer.length - wanted.length); i >= 0; i--) {
		let same = true;
		for (let j = 0; same && j < wanted.length; j++) same = buffer[i + j] === wanted[j];
		if (same) return i;
	}
	return -1;
}

const Callable = new Proxy(Buffer, {
	apply: (_target, _self, [value, encoding, length]) => (typeof value === "number" ? Buffer.alloc(value) : Buffer.from(value, encoding, length)),
});

export const SlowBuffer = Callable;
export const isUtf8 = (bytes) => ops.buffer.isUtf8(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes));
export const isAscii = (bytes) => new Uint8Array(bytes.buffer ?? bytes).every((byte) => byte < 128);
export const transcode = (source, from, to) => Buffer.from(Buffer.from(source).toString(from), to);
export const atob = (text) => {
	const clean = String(text).replace(/[\t\n\f\r ]/g, "");
	if (!/^[A-Za-z0-9+/]*={0,2}$/.test(clean) || clean.replace(/=+$/, "").length % 4 === 1) throw new DOMException("The string to be decoded is not correctly encoded.", "InvalidCharacterError");
	return Buffer.from(clean, "base64").toString("latin1");
};
export const btoa = (text) => {
	if (/[^\0-\xff]/.test(text)) throw new DOMException("Invalid character", "InvalidCharacterError");
	return Buffer.from(String(text), "latin1").toString("base64");
};
export const Blob = globalThis.Blob;
export const File = globalThis.File;
export const resolveObjectURL = () => undefined;

const buffer = { Buffer, SlowBuffer, INSPECT_MAX_BYTES, kMaxLength, kStringMaxLength, constants, isUtf8, isAscii, transcode, atob, btoa, Blob, File, resolveObjectURL };
export default buffer;
