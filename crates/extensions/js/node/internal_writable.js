// Writable, Duplex, Transform and PassThrough streams.

import { Buffer } from "pinion:node/buffer";
import { coded } from "pinion:node/internal_errors";
import "pinion:node/internal_stream_helpers";
import { Readable, Stream, construct, define, destroy, fill, followSignal, getDefaultHighWaterMark, initReadable, nextTick, readableAccessors, readableState } from "pinion:node/internal_readable";

export function writableState(options, duplex) {
	const objectMode = Boolean(options?.objectMode || (duplex && options?.writableObjectMode));
	const mark = options?.highWaterMark ?? (duplex ? options?.writableHighWaterMark : undefined);
	return {
		objectMode,
		highWaterMark: mark ?? getDefaultHighWaterMark(objectMode),
		decodeStrings: options?.decodeStrings !== false,
		defaultEncoding: options?.defaultEncoding ?? "utf8",
		queue: [],
		length: 0,
		writing: false,
		needDrain: false,
		ending: false,
		finished: false,
		finalCalled: false,
		corked: 0,
		destroyed: false,
		closed: false,
		closeEmitted: false,
		errored: null,
		errorEmitted: false,
		constructing: false,
		autoDestroy: options?.autoDestroy !== false,
		emitClose: options?.emitClose !== false,
		endCallbacks: [],
	};
}

export function Writable(options) {
	if (!(this instanceof Writable)) return new Writable(options);
	this._writableState ??= writableState(options, false);
	Stream.call(this, options);
	initWritable(this, options);
	construct(this, options);
	followSignal(this, options?.signal);
}
Object.setPrototypeOf(Writable.prototype, Stream.prototype);
Object.setPrototypeOf(Writable, Stream);
Object.defineProperty(Writable, Symbol.hasInstance, {
	value(value) {
		if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
		return this === Writable && value?._writableState !== undefined;
	},
});

function initWritable(stream, options) {
	for (const name of ["write", "writev", "final", "destroy"]) if (typeof options?.[name] === "function") stream[`_${name}`] = options[name];
}

function prepare(state, chunk, encoding) {
	if (state.objectMode) return chunk;
	if (typeof chunk === "string") return state.decodeStrings ? Buffer.from(chunk, encoding ?? state.defaultEncoding) : chunk;
	if (chunk instanceof Buffer) return chunk;
	if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "chunk" argument must be of type string or an instance of Buffer or Uint8Array. Received ${chunk === undefined ? "undefined" : `type ${typeof chunk} (${String(chunk)})`}`);
}

function work(stream) {
	const state = stream._writableState;
	if (state.writing || state.corked > 0 || state.destroyed || state.errored || state.constructing) return;
	if (state.queue.length === 0) {
		finishSoon(stream);
		return;
	}
	state.writing = true;
	const batch = stream._writev && state.queue.length > 1 ? state.queue.splice(0) : [state.queue.shift()];
	let sync = true;
	let called = false;
	const done = (error) => {
		if (called) return void stream.destroy(coded(Error, "ERR_MULTIPLE_CALLBACK", "Callback called multiple times"));
		called = true;
		const settle = () => {
			state.writing = false;
			state.length -= batch.reduce((sum, item) => sum + item.size, 0);
			if (error) {
				state.errored ??= error;
				for (const item of [...batch, ...state.queue.splice(0)]) item.callback?.(error);
				fail(stream, error);
				return;
			}
			if (state.needDrain && state.length === 0 && !state.ending && !state.destroyed) {
				state.needDrain = false;
				stream.emit("drain");
			}
			for (const item of batch) item.callback?.(null);
			work(stream);
		};
		if (sync) nextTick(settle);
		else settle();
	};
	try {
		if (batch.length > 1) stream._writev(batch.map(({ chunk, encoding }) => ({ chunk, encoding })), done);
		else stream._write(batch[0].chunk, batch[0].encoding, done);
	} catch (error) {
		done(error);
	}
	sync = false;
}

function fail(stream, error) {
	if (stream._writableState.autoDestroy) stream.destroy(error);
	else if (!stream._writableState.errorEmitted) {
		stream._writableState.errorEmitted = true;
		stream.emit("error", error);
	}
}

function finishSoon(stream) {
	const state = stream._writableState;
	if (!state.ending || state.finished || state.writing || state.finalCalled || state.queue.length > 0 || state.destroyed || state.errored || state.constructing) return;
	state.finalCalled = true;
	const finish = (error) => {
		if (error) {
			for (const callback of state.endCallbacks.splice(0)) callback(error);
			fail(stream, error);
			return;
		}
		nextTick(() => {
			if (state.errored || state.finished) return;
			state.finished = true;
			for (const callback of state.endCallbacks.splice(0)) callback(null);
			stream.emit("finish");
			const reading = stream._readableState;
			if (state.autoDestroy && (!reading || (reading.autoDestroy && (reading.endEmitted || reading.disabled)))) stream.destroy();
		});
	};
	if (typeof stream._final !== "function") return finish();
	nextTick(() => {
		try {
			stream._final(finish);
		} catch (error) {
			finish(error);
		}
	});
}

export const writableMembers = {
	_write(chunk, encoding, callback) {
		if (this._writev) this._writev([{ chunk, encoding }], callback);
		else throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _write() method is not implemented");
	},
	_resumeWriting() {
		if (this._writableState) work(this);
	},
	write(chunk, encoding, callback) {
		const state = this._writableState;
		if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
		if (chunk === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
		const ready = prepare(state, chunk, encoding);
		let error;
		if (state.ending) error = coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
		else if (state.destroyed) error = coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed");
		if (error) {
			nextTick(() => callback?.(error));
			if (!state.destroyed) nextTick(() => fail(this, error));
			return false;
		}
		const size = state.objectMode ? 1 : ready.length;
		state.length += size;
		const room = state.length < state.highWaterMark;
		if (!room) state.needDrain = true;
		state.queue.push({ chunk: ready, encoding: ready instanceof Buffer && !state.objectMode ? "buffer" : encoding ?? state.defaultEncoding, callback, size });
		work(this);
		return room && !state.errored && !state.destroyed;
	},
	end(chunk, encoding, callback) {
		const state = this._writableState;
		if (typeof chunk === "function") [callback, chunk, encoding] = [chunk, undefined, undefined];
		else if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
		if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
		state.corked = 0;
		if (state.finished || state.destroyed) {
			const error = state.finished ? coded(Error, "ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished") : coded(Error, "ERR_STREAM_DESTROYED", "Cannot call end after a stream was destroyed");
			nextTick(() => callback?.(state.finished && !state.errored ? (state.ending ? error : null) : error));
			return this;
		}
		if (callback) state.endCallbacks.push(callback);
		state.ending = true;
		work(this);
		return this;
	},
	cork() {
		this._writableState.corked++;
	},
	uncork() {
		const state = this._writableState;
		if (state.corked > 0 && --state.corked === 0) work(this);
	},
	setDefaultEncoding(encoding) {
		this._writableState.defaultEncoding = encoding;
		return this;
	},
};

define(Writable.prototype, {
	constructor: Writable,
	...writableMembers,
	_destroy(error, callback) {
		callback(error);
	},
	destroy,
	pipe() {
		this.emit("error", coded(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable"));
	},
	[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
		this.destroy();
		return Promise.resolve();
	},
});

const writableAccessors = {
	writable: {
		get() {
			const state = this._writableState;
			return Boolean(state) && state.writable !== false && !state.destroyed && !state.errored && !state.ending && !state.finished;
		},
		set(value) {
			if (this._writableState) this._writableState.writable = Boolean(value);
		},
	},
	writableEnded: { get() { return this._writableState.ending; } },
	writableFinished: { get() { return this._writableState.finished; } },
	writableLength: { get() { return this._writableState.length; } },
	writableHighWaterMark: { get() { return this._writableState.highWaterMark; } },
	writableObjectMode: { get() { return this._writableState.objectMode; } },
	writableCorked: { get() { return this._writableState.corked; } },
	writableNeedDrain: { get() { const state = this._writableState; return !state.destroyed && !state.ending && state.needDrain; } },
	writableAborted: { get() { return (this._writableState.destroyed || this._writableState.errored !== null) && !this._writableState.finished; } },
};
const { destroyed, closed, errored } = readableAccessors;
for (const [name, accessor] of Object.entries({ ...writableAccessors, destroyed, closed, errored })) Object.defineProperty(Writable.prototype, name, { ...accessor, configurable: true });

Writable.fromWeb = function (web) {
	const writer = web.getWriter();
	return new Writable({
		write: (chunk, _encoding, callback) => void writer.write(chunk).then(() => callback(), callback),
		final: (callback) => void writer.close().then(() => callback(), callback),
		destroy: (error, callback) => void Promise.resolve(error ? writer.abort(error) : undefined).then(() => callback(error), () => callback(error)),
	});
};
Writable.toWeb = (stream) =>
	new WritableStream({
		write: (chunk) => new Promise((resolve, reject) => stream.write(chunk, (error) => (error ? reject(error) : resolve()))),
		close: () => new Promise((resolve) => stream.end(resolve)),
		abort: (reason) => stream.destroy(reason),
	});

export function Duplex(options) {
	if (!(this instanceof Duplex)) return new Duplex(options);
	this._readableState ??= readableState(options, true);
	this._writableState ??= writableState(options, true);
	this.allowHalfOpen = options?.allowHalfOpen !== false;
	Stream.call(this, options);
	initReadable(this, options);
	initWritable(this, options);
	if (options?.readable === false) Object.assign(this._readableState, { disabled: true, ended: true, endEmitted: true });
	if (options?.writable === false) Object.assign(this._writableState, { writable: false, ending: true, finished: true });
	construct(this, options);
	followSignal(this, options?.signal);
}
Object.setPrototypeOf(Duplex.prototype, Readable.prototype);
Object.setPrototypeOf(Duplex, Readable);
define(Duplex.prototype, { constructor: Duplex, ...writableMembers });
for (const [name, accessor] of Object.entries(writableAccessors)) Object.defineProperty(Duplex.prototype, name, { ...accessor, configurable: true });

Duplex.from = function (source) {
	if (source instanceof Duplex) return source;
	if (typeof source?.pipe === "function" || source?.[Symbol.asyncIterator] || source?.[Symbol.iterator]) {
		const inner = Readable.from(source);
		const outer = new Duplex({ objectMode: true, writable: false, read: () => inner.resume() });
		inner.on("data", (chunk) => outer.push(chunk) || inner.pause());
		inner.on("end", () => outer.push(null));
		inner.on("error", (error) => outer.destroy(error));
		return outer;
	}
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", "Duplex.from takes a stream or an iterable here");
};

export function Transform(options) {
	if (!(this instanceof Transform)) return new Transform(options);
	this._transformCallback = null;
	Duplex.call(this, options);
	if (typeof options?.transform === "function") this._transform = options.transform;
	if (typeof options?.flush === "function") this._flush = options.flush;
}
Object.setPrototypeOf(Transform.prototype, Duplex.prototype);
Object.setPrototypeOf(Transform, Duplex);
define(Transform.prototype, {
	constructor: Transform,
	_transform() {
		throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _transform() method is not implemented");
	},
	_write(chunk, encoding, callback) {
		const state = this._readableState;
		this._transform(chunk, encoding, (error, result) => {
			if (error) return callback(error);
			if (result !== undefined && result !== null) this.push(result);
			if (state.ended || this._writableState.ending || state.length < state.highWaterMark) callback();
			else this._transformCallback = callback;
		});
	},
	_read() {
		const callback = this._transformCallback;
		this._transformCallback = null;
		this._readableState.reading = false;
		callback?.();
	},
	_final(callback) {
		const end = (error, result) => {
			if (error) return callback(error);
			if (result !== undefined && result !== null) this.push(result);
			this.push(null);
			callback();
		};
		if (typeof this._flush === "function") this._flush(end);
		else end();
	},
});

export function PassThrough(options) {
	if (!(this instanceof PassThrough)) return new PassThrough(options);
	Transform.call(this, options);
}
Object.setPrototypeOf(PassThrough.prototype, Transform.prototype);
Object.setPrototypeOf(PassThrough, Transform);
define(PassThrough.prototype, {
	constructor: PassThrough,
	_transform(chunk, _encoding, callback) {
		callback(null, chunk);
	},
});

export { fill };
