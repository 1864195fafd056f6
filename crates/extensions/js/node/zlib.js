// node:zlib

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { coded, missing } from "pinion:node/internal_errors";
import { Transform } from "pinion:node/internal_writable";

const buffered = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const bytesOf = (data) => {
	if (typeof data === "string") return Buffer.from(data);
	if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
	if (data instanceof ArrayBuffer) return new Uint8Array(data);
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", 'The "buffer" argument must be of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer.');
};
const levelOf = (options) => options?.level ?? -1;

function limited(bytes, options) {
	if (bytes.length > (options?.maxOutputLength ?? Number.POSITIVE_INFINITY)) throw coded(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${options.maxOutputLength} bytes`);
	return buffered(bytes);
}

class Zlib extends Transform {
	#stream;
	constructor(format, options) {
		super(options);
		this.#stream = ops.zlib.stream(format, levelOf(options));
		this.bytesWritten = 0;
	}
	_transform(chunk, encoding, callback) {
		const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
		this.bytesWritten += bytes.length;
		this.#give(() => this.#stream.push(bytes, false), callback);
	}
	_flush(callback) {
		this.#give(() => this.#stream.finish(), callback);
	}
	flush(kind, callback) {
		const done = typeof kind === "function" ? kind : callback;
		this.#give(() => this.#stream.push(new Uint8Array(0), true), done ?? (() => {}));
	}
	close(callback) {
		if (callback) this.once("close", callback);
		this.destroy();
	}
	#give(work, callback) {
		let made;
		try {
			made = work();
		} catch (error) {
			return callback(error);
		}
		if (made.length > 0) this.push(buffered(made));
		callback();
	}
}

const zlib = {};
for (const [name, format] of Object.entries({ Gzip: "gzip", Gunzip: "gunzip", Deflate: "deflate", Inflate: "inflate", DeflateRaw: "deflateRaw", InflateRaw: "inflateRaw", Unzip: "unzip" })) {
	const Class = { [name]: class extends Zlib {
		constructor(options) {
			super(format, options);
		}
	} }[name];
	const lower = name[0].toLowerCase() + name.slice(1);
	zlib[name] = Class;
	zlib[`create${name}`] = (options) => new Class(options);
	zlib[`${lower}Sync`] = (data, options) => limited(ops.zlib.whole(format, levelOf(options), bytesOf(data)), options);
	zlib[lower] = (data, options, callback) => {
		if (typeof options === "function") [callback, options] = [options, {}];
		ops.zlib.wholeAsync(format, levelOf(options), bytesOf(data)).then((bytes) => limited(bytes, options)).then(
			(bytes) => setImmediate(() => callback(null, bytes)),
			(error) => setImmediate(() => callback(error)),
		);
	};
}
for (const name of ["brotliCompress", "brotliCompressSync", "brotliDecompress", "brotliDecompressSync", "createBrotliCompress", "createBrotliDecompress"]) zlib[name] = missing("zlib", name);

const TABLE = Array.from({ length: 256 }, (_, n) => {
	for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
	return n >>> 0;
});
zlib.crc32 = (data, start = 0) => {
	let crc = ~start;
	for (const byte of bytesOf(data)) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
	return ~crc >>> 0;
};
zlib.constants = { Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1, BROTLI_PARAM_QUALITY: 1, BROTLI_PARAM_MODE: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2 };
zlib.codes = Object.fromEntries(["Z_OK", "Z_STREAM_END", "Z_NEED_DICT", "Z_ERRNO", "Z_STREAM_ERROR", "Z_DATA_ERROR", "Z_MEM_ERROR", "Z_BUF_ERROR", "Z_VERSION_ERROR"].map((name) => [name, zlib.constants[name]]));

export const { Gzip, Gunzip, Deflate, Inflate, DeflateRaw, InflateRaw, Unzip, createGzip, createGunzip, createDeflate, createInflate, createDeflateRaw, createInflateRaw, createUnzip, gzip, gunzip, deflate, inflate, deflateRaw, inflateRaw, unzip, gzipSync, gunzipSync, deflateSync, inflateSync, deflateRawSync, inflateRawSync, unzipSync, brotliCompress, brotliCompressSync, brotliDecompress, brotliDecompressSync, createBrotliCompress, createBrotliDecompress, crc32, constants, codes } = zlib;
export default zlib;
