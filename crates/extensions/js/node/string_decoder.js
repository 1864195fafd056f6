// node:string_decoder: decodes text from pieces of bytes without splitting characters.

import { Buffer, normalizeEncoding } from "pinion:node/buffer";
import { coded } from "pinion:node/internal_errors";

/** Returns the number of bytes at the end of `bytes` that begin an incomplete UTF-8 character. */
function openBytes(bytes) {
	for (let back = 1; back <= Math.min(3, bytes.length); back++) {
		const byte = bytes[bytes.length - back];
		if ((byte & 0xc0) === 0x80) continue;
		const width = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? (byte < 0xf0 ? 3 : 1) : byte >= 0xc2 ? 2 : 1;
		return width > back ? back : 0;
	}
	return 0;
}

export function StringDecoder(encoding) {
	const name = normalizeEncoding(encoding);
	if (name === undefined) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
	this.encoding = name;
	this.held = Buffer.alloc(0);
}

StringDecoder.prototype.write = function (chunk) {
	if (typeof chunk === "string") return chunk;
	let bytes = chunk instanceof Buffer ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
	if (this.held.length > 0) bytes = Buffer.concat([this.held, bytes]);
	let open = 0;
	if (this.encoding === "utf8") open = openBytes(bytes);
	else if (this.encoding === "utf16le") {
		open = bytes.length % 2;
		const last = bytes.length - open - 1;
		// The first half of a surrogate pair waits for the second.
		if (last >= 1 && bytes[last] >= 0xd8 && bytes[last] <= 0xdb) open += 2;
	} else if (this.encoding.startsWith("base64")) open = bytes.length % 3;
	const end = bytes.length - open;
	this.held = Buffer.from(bytes.subarray(end));
	return bytes.toString(this.encoding, 0, end);
};

StringDecoder.prototype.end = function (chunk) {
	const text = chunk === undefined ? "" : this.write(chunk);
	const rest = this.held.toString(this.encoding);
	this.held = Buffer.alloc(0);
	return text + rest;
};

StringDecoder.prototype.text = function (chunk, offset) {
	this.held = Buffer.alloc(0);
	return this.write(chunk.subarray(offset));
};

export default { StringDecoder };
