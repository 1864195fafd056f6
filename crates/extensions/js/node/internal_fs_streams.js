// fs.createReadStream and fs.createWriteStream.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { flagsOf, modeOf, optionsOf, pathOf } from "pinion:node/internal_fs";
import { Readable, define } from "pinion:node/internal_readable";
import { Writable } from "pinion:node/internal_writable";
import { outOfRange } from "pinion:node/internal_errors";

const { fs } = ops;

function prepare(stream, path, settings) {
	stream.path = path === undefined || path === null ? undefined : pathOf(path);
	stream.fd = typeof settings.fd === "object" ? settings.fd?.fd : settings.fd ?? null;
	stream.handle = typeof settings.fd === "object" ? settings.fd : settings.handle;
	stream.start = settings.start;
	stream.autoClose = settings.autoClose !== false;
	stream.pending = stream.fd === null || stream.fd === undefined;
}

const opened = (stream, flags, mode, callback) => {
	if (!stream.pending) return callback();
	fs.openAsync(stream.path, flags, mode).then((fd) => {
		stream.fd = fd;
		stream.pending = false;
		callback();
		stream.emit("open", fd);
		stream.emit("ready");
	}, callback);
};

const closed = (stream, error, callback) => {
	if (typeof stream.fd !== "number" || !stream.autoClose) return callback(error);
	const closing = stream.handle ? stream.handle.close() : fs.closeAsync(stream.fd);
	stream.fd = null;
	closing.then(() => callback(error), (failure) => callback(error ?? failure));
};

export function ReadStream(path, options) {
	if (!(this instanceof ReadStream)) return new ReadStream(path, options);
	const settings = optionsOf(options);
	if (settings.start !== undefined && settings.end !== undefined && settings.start > settings.end) throw outOfRange("start", `<= "end" (here: ${settings.end})`, settings.start);
	prepare(this, path, settings);
	this.flags = flagsOf(settings.flags);
	this.mode = modeOf(settings.mode, 0o666);
	this.end = settings.end ?? Number.POSITIVE_INFINITY;
	this.pos = settings.start;
	this.bytesRead = 0;
	Readable.call(this, { highWaterMark: 65536, ...settings, read: undefined, destroy: undefined, fd: undefined });
}
Object.setPrototypeOf(ReadStream.prototype, Readable.prototype);
Object.setPrototypeOf(ReadStream, Readable);
define(ReadStream.prototype, {
	constructor: ReadStream,
	_construct(callback) {
		opened(this, this.flags, this.mode, callback);
	},
	_read(count) {
		const left = this.end - (this.pos ?? this.bytesRead) + 1;
		const wanted = Math.min(count, left);
		if (wanted <= 0) return void this.push(null);
		fs.readAsync(this.fd, wanted, this.pos ?? -1).then(
			(bytes) => {
				this.bytesRead += bytes.length;
				if (this.pos !== undefined) this.pos += bytes.length;
				this.push(bytes.length === 0 ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
			},
			(error) => this.destroy(error),
		);
	},
	_destroy(error, callback) {
		closed(this, error, callback);
	},
	close(callback) {
		if (callback) this.once("close", () => callback());
		this.destroy();
	},
});

export function WriteStream(path, options) {
	if (!(this instanceof WriteStream)) return new WriteStream(path, options);
	const settings = optionsOf(options);
	prepare(this, path, settings);
	this.flags = flagsOf(settings.flags, "w");
	this.mode = modeOf(settings.mode, 0o666);
	this.pos = settings.start;
	this.bytesWritten = 0;
	this.flush = settings.flush;
	Writable.call(this, { ...settings, defaultEncoding: settings.encoding ?? "utf8", write: undefined, destroy: undefined, final: undefined });
}
Object.setPrototypeOf(WriteStream.prototype, Writable.prototype);
Object.setPrototypeOf(WriteStream, Writable);
define(WriteStream.prototype, {
	constructor: WriteStream,
	_construct(callback) {
		opened(this, this.flags, this.mode, callback);
	},
	_write(chunk, _encoding, callback) {
		fs.writeAsync(this.fd, chunk, this.pos ?? -1).then((count) => {
			this.bytesWritten += count;
			if (this.pos !== undefined) this.pos += count;
			callback();
		}, callback);
	},
	_writev(parts, callback) {
		this._write(Buffer.concat(parts.map(({ chunk }) => chunk)), "buffer", callback);
	},
	_final(callback) {
		if (this.flush) fs.fsyncAsync(this.fd).then(() => callback(), callback);
		else callback();
	},
	_destroy(error, callback) {
		closed(this, error, callback);
	},
	close(callback) {
		if (callback) this.once("close", () => callback());
		if (this.writableFinished || this.destroyed) this.destroy();
		else this.end(() => this.destroy());
	},
	destroySoon() {
		this.end();
	},
});
