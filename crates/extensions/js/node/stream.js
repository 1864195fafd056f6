// node:stream

import { abortError, coded, invalidArgType } from "pinion:node/internal_errors";
import { Readable, Stream, getDefaultHighWaterMark, setDefaultHighWaterMark } from "pinion:node/internal_readable";
import { Duplex, PassThrough, Transform, Writable } from "pinion:node/internal_writable";
import "pinion:node/internal_stream_helpers";
import { Buffer } from "pinion:node/buffer";

export { Duplex, PassThrough, Readable, Stream, Transform, Writable, getDefaultHighWaterMark, setDefaultHighWaterMark };

const isReadable_ = (stream) => stream?._readableState !== undefined && stream._readableState.disabled !== true;
const isWritable_ = (stream) => stream?._writableState !== undefined && stream._writableState.writable !== false;

/** Calls back once the stream has ended, failed or closed early. */
export function finished(stream, options, callback) {
	if (typeof options === "function") [callback, options] = [options, {}];
	const reads = options?.readable ?? isReadable_(stream);
	const writes = options?.writable ?? isWritable_(stream);
	let readDone = !reads || stream.readableEnded === true;
	let writeDone = !writes || stream.writableFinished === true;
	let called = false;
	const done = (error) => {
		if (called) return;
		called = true;
		if (options?.cleanup) clean();
		callback.call(stream, error);
	};
	const check = () => {
		if (readDone && writeDone) done();
	};
	const onEnd = () => {
		readDone = true;
		check();
	};
	const onFinish = () => {
		writeDone = true;
		check();
	};
	const onError = (error) => done(error);
	const onClose = () => {
		if (stream.errored && options?.error !== false) return done(stream.errored);
		if (!readDone && stream.readableEnded) readDone = true;
		if (!writeDone && stream.writableFinished) writeDone = true;
		if (readDone && writeDone) done();
		else done(coded(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close"));
	};
	const onAbort = () => done(abortError(options.signal.reason));
	const clean = () => {
		callback ??= () => {};
		stream.removeListener("end", onEnd);
		stream.removeListener("finish", onFinish);
		stream.removeListener("error", onError);
		stream.removeListener("close", onClose);
		options?.signal?.removeEventListener("abort", onAbort);
	};
	stream.on("end", onEnd);
	stream.on("finish", onFinish);
	if (options?.error !== false) stream.on("error", onError);
	stream.on("close", onClose);
	if (options?.signal) {
		if (options.signal.aborted) queueMicrotask(onAbort);
		else options.signal.addEventListener("abort", onAbort, { once: true });
	}
	if (stream.closed || stream.destroyed === true && stream.errored) queueMicrotask(onClose);
	else if (readDone && writeDone && (stream.readableEnded || stream.writableFinished)) queueMicrotask(check);
	return clean;
}

const isStream = (value) => typeof value?.pipe === "function" || typeof value?.write === "function";

function toReadable(source) {
	if (isStream(source)) return source;
	if (typeof source?.getReader === "function") return Readable.fromWeb(source);
	return Readable.from(source);
}

/** Connects streams and ends all of them when one fails. */
export function pipeline(...parts) {
	let callback = typeof parts.at(-1) === "function" && parts.length > 1 && parts.at(-1).length <= 2 && !isGenerator(parts.at(-1)) ? parts.pop() : undefined;
	if (typeof callback !== "function") throw invalidArgType("streams[stream.length - 1]", "function", callback);
	return connect(parts.flat(), callback, {});
}

const isGenerator = (value) => /Generator/.test(Object.prototype.toString.call(value));

function connect(parts, callback, { signal, end = true }) {
	if (parts.length < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
	const streams = [];
	let failure;
	let pending = 0;
	let value;
	const settle = () => {
		pending--;
		if (failure) for (const stream of streams) if (!stream.destroyed && !(stream.readableEnded && stream.writableFinished !== false)) stream.destroy();
		if (pending === 0) queueMicrotask(() => callback(failure, value));
	};
	const fail = (error) => {
		if (!failure || failure.code === "ERR_STREAM_PREMATURE_CLOSE") failure = error;
		for (const stream of streams) if (!stream.destroyed) stream.destroy(stream === streams.at(-1) ? error : undefined);
	};
	const watch = (stream, reading, writing) => {
		streams.push(stream);
		stream.on("error", () => {});
		pending++;
		finished(stream, { readable: reading, writable: writing }, (error) => {
			if (error) fail(error);
			settle();
		});
		return stream;
	};
	let current;
	for (const [i, part] of parts.entries()) {
		const last = i === parts.length - 1;
		if (typeof part === "function") {
			const made = i === 0 ? part({ signal }) : part(current, { signal });
			if (last && typeof made?.then === "function") {
				pending++;
				made.then(
					(result) => {
						value = result;
						settle();
					},
					(error) => {
						fail(error);
						settle();
					},
				);
			} else current = watch(toReadable(made), true, false);
		} else if (i === 0) current = watch(toReadable(part), true, false);
		else {
			const from = current;
			watch(part, !last && isReadable_(part), true);
			toReadable(from).pipe(part, { end: end || !last });
			current = part;
		}
	}
	if (signal) {
		const onAbort = () => fail(abortError(signal.reason));
		if (signal.aborted) onAbort();
		else signal.addEventListener("abort", onAbort, { once: true });
	}
	return current;
}

export const promises = {
	finished: (stream, options = {}) => new Promise((resolve, reject) => finished(stream, options, (error) => (error ? reject(error) : resolve()))),
	pipeline: (...parts) => {
		const last = parts.at(-1);
		const options = last && typeof last === "object" && !isStream(last) && !last[Symbol.asyncIterator] && !last[Symbol.iterator] ? parts.pop() : {};
		return new Promise((resolve, reject) => connect(parts.flat(), (error, value) => (error ? reject(error) : resolve(value)), options));
	},
};
Object.defineProperty(pipeline, Symbol.for("nodejs.util.promisify.custom"), { value: promises.pipeline });
Object.defineProperty(finished, Symbol.for("nodejs.util.promisify.custom"), { value: promises.finished });

export const addAbortSignal = (signal, stream) => {
	const onAbort = () => stream.destroy(abortError(signal.reason));
	if (signal.aborted) onAbort();
	else signal.addEventListener("abort", onAbort, { once: true });
	return stream;
};
export const compose = (...parts) => {
	const [first] = parts;
	const last = parts.at(-1);
	const outer = new Duplex({
		objectMode: true,
		write: (chunk, encoding, callback) => (first.write(chunk, encoding) ? callback() : first.once("drain", callback)),
		final: (callback) => first.end(callback),
		read: () => last.resume(),
	});
	if (parts.length > 1) connect(parts, (error) => error && outer.destroy(error), {});
	last.on("data", (chunk) => outer.push(chunk) || last.pause());
	last.on("end", () => outer.push(null));
	return outer;
};
export const isReadable = (stream) => stream?.readable === true;
export const isErrored = (stream) => Boolean(stream?.errored);
export const isDisturbed = (stream) => Boolean(stream?.readableDidRead || stream?.readableAborted);
export const isDestroyed = (stream) => Boolean(stream?.destroyed);
export const destroy = (stream, error) => stream.destroy(error);
export const _isUint8Array = (value) => value instanceof Uint8Array;
export const _uint8ArrayToBuffer = (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength);

Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished, promises, addAbortSignal, compose, isReadable, isErrored, isDisturbed, isDestroyed, destroy, getDefaultHighWaterMark, setDefaultHighWaterMark, _isUint8Array, _uint8ArrayToBuffer });
// The base class pipes like the streams of old Node releases.
Stream.prototype.pipe ??= Readable.prototype.pipe;
export default Stream;
