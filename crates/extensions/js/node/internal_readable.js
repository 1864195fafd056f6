// Readable streams.

import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { abortError, coded } from "pinion:node/internal_errors";
import { StringDecoder } from "pinion:node/string_decoder";

export const nextTick = (work, ...args) => queueMicrotask(() => work(...args));
export const define = (target, members) => {
	for (const name of Reflect.ownKeys(members)) Object.defineProperty(target, name, { ...Object.getOwnPropertyDescriptor(members, name), enumerable: false });
};

let defaultBytes = 65536;
let defaultObjects = 16;
export const getDefaultHighWaterMark = (objectMode) => (objectMode ? defaultObjects : defaultBytes);
export const setDefaultHighWaterMark = (objectMode, value) => {
	if (objectMode) defaultObjects = value;
	else defaultBytes = value;
};

export function Stream(options) {
	EventEmitter.call(this, options);
}
Object.setPrototypeOf(Stream.prototype, EventEmitter.prototype);
Object.setPrototypeOf(Stream, EventEmitter);

/** Ends a stream permanently: `_destroy`, then `error` if there is one, then `close`. */
export function destroy(error, callback) {
	const reading = this._readableState;
	const writing = this._writableState;
	const states = [reading, writing].filter(Boolean);
	if (states[0].destroyed) {
		callback?.(error);
		return this;
	}
	for (const state of states) {
		state.destroyed = true;
		if (error) state.errored ??= error;
	}
	const finish = (failure) => {
		const final = failure ?? error ?? null;
		for (const state of states) {
			state.closed = true;
			if (final) state.errored ??= final;
		}
		callback?.(final);
		nextTick(() => {
			if (final && !states.some((state) => state.errorEmitted)) {
				for (const state of states) state.errorEmitted = true;
				this.emit("error", final);
			}
			if (states.every((state) => state.emitClose)) {
				for (const state of states) state.closeEmitted = true;
				this.emit("close");
			}
		});
	};
	const run = () => {
		try {
			this._destroy(error ?? null, finish);
		} catch (thrown) {
			finish(thrown);
		}
	};
	// A stream that is still being constructed finishes that first.
	if (states.some((state) => state.constructing)) this.once("pinion:constructed", run);
	else run();
	return this;
}

export function construct(stream, options) {
	if (typeof options?.construct === "function") stream._construct = options.construct;
	if (typeof stream._construct !== "function") return;
	const states = [stream._readableState, stream._writableState].filter(Boolean);
	for (const state of states) state.constructing = true;
	nextTick(() => {
		stream._construct((error) => {
			for (const state of states) state.constructing = false;
			stream.emit("pinion:constructed");
			if (error) stream.destroy(error);
			else {
				if (stream._readableState?.flowing !== null && stream._readableState) fill(stream);
				stream._resumeWriting?.();
			}
		});
	});
}

export function followSignal(stream, signal) {
	if (!signal) return;
	const onAbort = () => stream.destroy(abortError(signal.reason));
	if (signal.aborted) onAbort();
	else {
		signal.addEventListener("abort", onAbort, { once: true });
		stream.once("close", () => signal.removeEventListener("abort", onAbort));
	}
}

export function readableState(options, duplex) {
	const objectMode = Boolean(options?.objectMode || (duplex && options?.readableObjectMode));
	const mark = options?.highWaterMark ?? (duplex ? options?.readableHighWaterMark : undefined);
	return {
		objectMode,
		highWaterMark: mark ?? getDefaultHighWaterMark(objectMode),
		buffer: [],
		length: 0,
		flowing: null,
		ended: false,
		endEmitted: false,
		reading: false,
		needReadable: false,
		emittedReadable: false,
		readableListening: false,
		resumeScheduled: false,
		destroyed: false,
		closed: false,
		closeEmitted: false,
		errored: null,
		errorEmitted: false,
		constructing: false,
		autoDestroy: options?.autoDestroy !== false,
		emitClose: options?.emitClose !== false,
		pipes: [],
		awaiting: new Set(),
		decoder: null,
		encoding: null,
		dataEmitted: false,
	};
}

export function Readable(options) {
	if (!(this instanceof Readable)) return new Readable(options);
	this._readableState ??= readableState(options, false);
	Stream.call(this, options);
	initReadable(this, options);
	construct(this, options);
	followSignal(this, options?.signal);
}
Object.setPrototypeOf(Readable.prototype, Stream.prototype);
Object.setPrototypeOf(Readable, Stream);

export function initReadable(stream, options) {
	if (typeof options?.read === "function") stream._read = options.read;
	if (typeof options?.destroy === "function") stream._destroy = options.destroy;
	if (options?.encoding) stream.setEncoding(options.encoding);
}

function sized(state, chunk) {
	return state.objectMode ? 1 : chunk.length;
}

function addChunk(stream, chunk, front) {
	const state = stream._readableState;
	if (!front && state.flowing && state.length === 0 && !state.inRead && stream.listenerCount("data") > 0) {
		state.dataEmitted = true;
		stream.emit("data", chunk);
	} else {
		state.length += sized(state, chunk);
		if (front) state.buffer.unshift(chunk);
		else state.buffer.push(chunk);
		if (state.readableListening || state.needReadable) emitReadable(stream);
		if (state.flowing) flowSoon(stream);
	}
}

function push(stream, chunk, encoding, front) {
	const state = stream._readableState;
	state.reading = false;
	if (chunk === null) {
		endOfInput(stream);
		return false;
	}
	if (!state.objectMode) {
		if (typeof chunk === "string") {
			if (state.encoding === null || (encoding && encoding !== state.encoding)) chunk = Buffer.from(chunk, encoding);
		} else if (chunk instanceof Uint8Array) {
			if (!(chunk instanceof Buffer)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
		} else if (chunk !== undefined) {
			stream.destroy(coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "chunk" argument must be of type string or an instance of Buffer or Uint8Array. Received ${chunk === null ? "null" : typeof chunk}`));
			return false;
		}
	}
	if (state.destroyed || state.errored) return false;
	if (state.ended && !front) {
		stream.destroy(coded(Error, "ERR_STREAM_PUSH_AFTER_EOF", "stream.push() after EOF"));
		return false;
	}
	if (state.objectMode || (chunk && chunk.length > 0)) {
		if (state.decoder && !front && typeof chunk !== "string") chunk = state.decoder.write(chunk);
		if (state.objectMode || chunk.length > 0) addChunk(stream, chunk, front);
	}
	fillSoon(stream);
	return !state.ended && (state.length < state.highWaterMark || state.length === 0);
}

function endOfInput(stream) {
	const state = stream._readableState;
	if (state.ended) return;
	if (state.decoder) {
		const rest = state.decoder.end();
		if (rest.length > 0) addChunk(stream, rest, false);
	}
	state.ended = true;
	if (state.readableListening) emitReadable(stream);
	if (state.flowing) flowSoon(stream);
	if (state.length === 0) endSoon(stream);
}

function emitReadable(stream) {
	const state = stream._readableState;
	state.needReadable = false;
	if (state.emittedReadable) return;
	state.emittedReadable = true;
	nextTick(() => {
		state.emittedReadable = false;
		if (!state.destroyed && !state.errored && (state.length > 0 || state.ended)) stream.emit("readable");
	});
}

function endSoon(stream) {
	const state = stream._readableState;
	if (state.endEmitted || state.endScheduled || !state.ended || state.length > 0) return;
	if (state.flowing === null && !state.readableListening && !state.consumed) return;
	state.endScheduled = true;
	nextTick(() => {
		state.endScheduled = false;
		if (state.endEmitted || state.length > 0 || state.destroyed || state.errored) return;
		state.endEmitted = true;
		stream.readable = false;
		stream.emit("end");
		const writing = stream._writableState;
		if (writing && stream.allowHalfOpen === false) stream.end();
		if (state.autoDestroy && (!writing || (writing.autoDestroy && (writing.finished || writing.writable === false)))) stream.destroy();
	});
}

/** Requests more data if there is room. */
export function fill(stream) {
	const state = stream._readableState;
	if (state.reading || state.ended || state.destroyed || state.errored || state.constructing) return;
	if (state.length >= state.highWaterMark && state.length > 0) return;
	state.reading = true;
	try {
		stream._read(state.highWaterMark);
	} catch (error) {
		stream.destroy(error);
	}
}

function fillSoon(stream) {
	const state = stream._readableState;
	if (state.fillScheduled || (state.flowing === null && !state.readableListening && !state.consumed)) return;
	if (state.flowing === false && !state.readableListening) return;
	state.fillScheduled = true;
	nextTick(() => {
		state.fillScheduled = false;
		fill(stream);
	});
}

function flowSoon(stream) {
	const state = stream._readableState;
	if (state.resumeScheduled) return;
	state.resumeScheduled = true;
	nextTick(() => {
		state.resumeScheduled = false;
		while (state.flowing && state.buffer.length > 0 && !state.destroyed) {
			const chunk = state.buffer.shift();
			state.length -= sized(state, chunk);
			state.dataEmitted = true;
			stream.emit("data", chunk);
		}
		if (state.flowing) {
			fill(stream);
			endSoon(stream);
		}
	});
}

function take(state, count) {
	if (state.objectMode) return state.buffer.shift();
	const joined = state.buffer.length === 1 ? state.buffer[0] : state.decoder || typeof state.buffer[0] === "string" ? state.buffer.join("") : Buffer.concat(state.buffer);
	if (count === undefined || count >= joined.length) {
		state.buffer = [];
		return joined;
	}
	state.buffer = [joined.slice(count)];
	return joined.slice(0, count);
}

define(Readable.prototype, {
	constructor: Readable,
	_read() {
		throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _read() method is not implemented");
	},
	_destroy(error, callback) {
		callback(error);
	},
	destroy,
	push(chunk, encoding) {
		return push(this, chunk, encoding, false);
	},
	unshift(chunk, encoding) {
		return push(this, chunk, encoding, true);
	},
	read(count) {
		const state = this._readableState;
		state.consumed = true;
		if (Number.isNaN(count)) count = undefined;
		if (count === 0) {
			fill(this);
			if (state.length > 0 || state.ended) emitReadable(this);
			return null;
		}
		if (!state.ended && state.length < state.highWaterMark) {
			state.inRead = true;
			fill(this);
			state.inRead = false;
		}
		if (state.length === 0 || (count !== undefined && count > state.length && !state.ended && !state.objectMode)) {
			state.needReadable = true;
			endSoon(this);
			return null;
		}
		const chunk = take(state, count);
		state.length -= sized(state, chunk);
		if (state.length === 0) state.needReadable = !state.ended;
		endSoon(this);
		if (!state.ended) fillSoon(this);
		state.dataEmitted = true;
		this.emit("data", chunk);
		return chunk;
	},
	setEncoding(encoding) {
		const state = this._readableState;
		state.decoder = new StringDecoder(encoding);
		state.encoding = state.decoder.encoding;
		const text = state.buffer.map((chunk) => state.decoder.write(chunk)).join("");
		state.buffer = text === "" ? [] : [text];
		state.length = text.length;
		return this;
	},
	resume() {
		const state = this._readableState;
		if (state.flowing !== true) {
			state.flowing = !state.readableListening;
			this.emit("resume");
			flowSoon(this);
			fillSoon(this);
		}
		state.paused = false;
		return this;
	},
	pause() {
		const state = this._readableState;
		if (state.flowing !== false) {
			state.flowing = false;
			this.emit("pause");
		}
		state.paused = true;
		return this;
	},
	isPaused() {
		return this._readableState.paused === true || this._readableState.flowing === false;
	},
	on(name, listener) {
		const result = Stream.prototype.on.call(this, name, listener);
		const state = this._readableState;
		if (name === "data") {
			state.readableListening = this.listenerCount("readable") > 0;
			if (state.flowing !== false && !state.readableListening) this.resume();
		} else if (name === "readable" && !state.endEmitted && !state.readableListening) {
			state.readableListening = state.needReadable = true;
			state.flowing = false;
			if (state.length > 0 || state.ended) emitReadable(this);
			fillSoon(this);
		}
		return result;
	},
	addListener(name, listener) {
		return this.on(name, listener);
	},
	removeListener(name, listener) {
		const result = Stream.prototype.removeListener.call(this, name, listener);
		if (name === "readable") updateListening(this);
		return result;
	},
	off(name, listener) {
		return this.removeListener(name, listener);
	},
	removeAllListeners(name) {
		const result = Stream.prototype.removeAllListeners.call(this, name);
		if (name === "readable" || name === undefined) updateListening(this);
		return result;
	},
	pipe(target, options) {
		const state = this._readableState;
		const source = this;
		state.pipes.push(target);
		const onData = (chunk) => {
			if (target.write(chunk) === false) {
				state.awaiting.add(target);
				source.pause();
			}
		};
		const onDrain = () => {
			state.awaiting.delete(target);
			if (state.awaiting.size === 0 && state.pipes.includes(target)) source.resume();
		};
		const onEnd = () => target.end();
		const onClose = () => source.unpipe(target);
		const onError = (error) => {
			source.unpipe(target);
			if (target.listenerCount("error") === 0) target.destroy?.(error) ?? target.emit("error", error);
		};
		const clean = (gone) => {
			if (gone !== source) return;
			source.removeListener("data", onData);
			source.removeListener("end", onEnd);
			target.removeListener("drain", onDrain);
			target.removeListener("close", onClose);
			target.removeListener("finish", onClose);
			target.removeListener("error", onError);
			target.removeListener("unpipe", clean);
		};
		this.on("data", onData);
		target.on("drain", onDrain);
		target.prependListener("error", onError);
		target.once("close", onClose);
		target.once("finish", onClose);
		target.on("unpipe", clean);
		if (options?.end !== false) {
			if (state.endEmitted) nextTick(onEnd);
			else this.once("end", onEnd);
		}
		target.emit("pipe", this);
		if (target.writableNeedDrain === true) {
			state.awaiting.add(target);
			this.pause();
		} else if (!state.flowing) this.resume();
		return target;
	},
	unpipe(target) {
		const state = this._readableState;
		const gone = target === undefined ? state.pipes : state.pipes.filter((pipe) => pipe === target);
		state.pipes = target === undefined ? [] : state.pipes.filter((pipe) => pipe !== target);
		for (const pipe of gone) {
			state.awaiting.delete(pipe);
			pipe.emit("unpipe", this, { hasUnpiped: false });
		}
		if (gone.length > 0 && state.pipes.length === 0) this.pause();
		return this;
	},
	wrap(old) {
		old.on("data", (chunk) => {
			if (!this.push(chunk)) old.pause?.();
		});
		old.on("end", () => this.push(null));
		old.on("error", (error) => this.destroy(error));
		this._read = () => old.resume?.();
		return this;
	},
	[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
		this.destroy();
		return Promise.resolve();
	},
});

function updateListening(stream) {
	const state = stream._readableState;
	nextTick(() => {
		state.readableListening = stream.listenerCount("readable") > 0;
		if (!state.readableListening && state.paused !== true && stream.listenerCount("data") > 0) {
			state.flowing = null;
			stream.resume();
		}
	});
}

const accessors = {
	readable: {
		get() {
			const state = this._readableState;
			return Boolean(state) && !state.destroyed && !state.endEmitted && !state.errored && state.disabled !== true;
		},
		set(value) {
			if (this._readableState) this._readableState.disabled = !value;
		},
	},
	readableFlowing: { get() { return this._readableState.flowing; }, set(value) { this._readableState.flowing = value; } },
	readableLength: { get() { return this._readableState.length; } },
	readableHighWaterMark: { get() { return this._readableState.highWaterMark; } },
	readableObjectMode: { get() { return this._readableState.objectMode; } },
	readableEncoding: { get() { return this._readableState.encoding; } },
	readableEnded: { get() { return this._readableState.endEmitted; } },
	readableAborted: { get() { return (this._readableState.destroyed || this._readableState.errored !== null) && !this._readableState.endEmitted; } },
	readableDidRead: { get() { return this._readableState.dataEmitted; } },
	destroyed: { get() { return this._readableState?.destroyed ?? this._writableState?.destroyed ?? false; }, set(value) { for (const state of [this._readableState, this._writableState]) if (state) state.destroyed = value; } },
	closed: { get() { return (this._readableState ?? this._writableState).closed; } },
	errored: { get() { return this._readableState?.errored ?? this._writableState?.errored ?? null; } },
};
export const readableAccessors = accessors;
for (const [name, accessor] of Object.entries(accessors)) Object.defineProperty(Readable.prototype, name, { ...accessor, configurable: true });
