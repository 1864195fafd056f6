// The array-like methods of Readable, and the creation of a Readable from an iterable.

import { coded, invalidArgType } from "pinion:node/internal_errors";
import { Readable, define } from "pinion:node/internal_readable";

const made = (name, generate) => ({
	[name](...args) {
		return Readable.from(generate(this, ...args), { objectMode: true });
	},
});

define(Readable.prototype, {
	[Symbol.asyncIterator]() {
		return iterate(this, {});
	},
	iterator(options) {
		return iterate(this, options ?? {});
	},
	...made("map", async function* (stream, change, options) {
		for await (const chunk of stream) yield change(chunk, options ?? {});
	}),
	...made("filter", async function* (stream, keep, options) {
		for await (const chunk of stream) if (await keep(chunk, options ?? {})) yield chunk;
	}),
	...made("flatMap", async function* (stream, change, options) {
		for await (const chunk of stream) yield* await change(chunk, options ?? {});
	}),
	...made("take", async function* (stream, count) {
		if (count <= 0) return;
		for await (const chunk of stream) {
			yield chunk;
			if (--count <= 0) return;
		}
	}),
	...made("drop", async function* (stream, count) {
		for await (const chunk of stream) if (count-- <= 0) yield chunk;
	}),
	async toArray() {
		return Array.fromAsync(this);
	},
	async forEach(visit) {
		for await (const chunk of this) await visit(chunk, {});
	},
	async some(test) {
		for await (const chunk of this) if (await test(chunk, {})) return true;
		return false;
	},
	async every(test) {
		return !(await this.some(async (chunk) => !(await test(chunk, {}))));
	},
	async find(test) {
		for await (const chunk of this) if (await test(chunk, {})) return chunk;
		return undefined;
	},
	async reduce(join, ...start) {
		let sum = start[0];
		let first = start.length === 0;
		for await (const chunk of this) {
			sum = first ? chunk : await join(sum, chunk, {});
			first = false;
		}
		if (first) throw new TypeError("Reduce of an empty stream requires an initial value");
		return sum;
	},
});

async function* iterate(stream, { destroyOnReturn = true }) {
	let wake = () => {};
	let failure;
	let over = false;
	const onReadable = () => wake();
	const onError = (error) => {
		failure = { error };
		wake();
	};
	const onEnd = () => {
		over = true;
		wake();
	};
	const onClose = () => {
		if (!stream._readableState.endEmitted && !failure && !over) failure = { error: stream._readableState.errored ?? coded(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close") };
		wake();
	};
	stream.on("readable", onReadable);
	stream.on("error", onError);
	stream.on("end", onEnd);
	stream.on("close", onClose);
	if (stream._readableState.endEmitted) over = true;
	else if (stream.destroyed) onClose();
	let complete = false;
	try {
		for (;;) {
			const chunk = stream.destroyed ? null : stream.read();
			if (chunk !== null) {
				yield chunk;
				continue;
			}
			if (failure) throw failure.error;
			if (over || stream._readableState.endEmitted) break;
			await new Promise((resolve) => {
				wake = resolve;
			});
		}
		complete = true;
	} finally {
		for (const [name, listener] of [["readable", onReadable], ["error", onError], ["end", onEnd], ["close", onClose]]) stream.removeListener(name, listener);
		if (!complete && destroyOnReturn && !stream.destroyed) {
			stream.on("error", () => {});
			stream.destroy();
		}
	}
}

/** Creates a stream over an iterable. */
Readable.from = function (source, options) {
	if (source === null || source === undefined) throw invalidArgType("iterable", "Iterable", source);
	const whole = typeof source === "string" || source instanceof Uint8Array;
	const iterator = whole ? [source][Symbol.iterator]() : (source[Symbol.asyncIterator] ?? source[Symbol.iterator])?.call(source);
	if (!iterator) throw invalidArgType("iterable", "Iterable", source);
	let busy = false;
	const stream = new Readable({
		objectMode: true,
		highWaterMark: 1,
		...options,
		read() {
			if (!busy) advance();
		},
		destroy(error, callback) {
			Promise.resolve(iterator.return?.()).then(() => callback(error), callback);
		},
	});
	async function advance() {
		busy = true;
		try {
			for (;;) {
				const { value, done } = await iterator.next();
				if (done) {
					stream.push(null);
					return;
				}
				const chunk = await value;
				if (chunk === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
				if (!stream.push(chunk)) break;
			}
			busy = false;
		} catch (error) {
			stream.destroy(error);
		}
	}
	return stream;
};

Readable.fromWeb = function (web, options) {
	const reader = web.getReader();
	return new Readable({
		...options,
		async read() {
			try {
				const { value, done } = await reader.read();
				this.push(done ? null : value);
			} catch (error) {
				this.destroy(error);
			}
		},
		destroy(error, callback) {
			Promise.resolve(error ? reader.cancel(error) : undefined).then(() => callback(error), () => callback(error));
		},
	});
};

Readable.toWeb = function (stream) {
	const iterator = stream[Symbol.asyncIterator]();
	return new ReadableStream({
		async pull(controller) {
			const { value, done } = await iterator.next();
			if (done) controller.close();
			else controller.enqueue(typeof value === "string" || stream.readableObjectMode ? value : new Uint8Array(value));
		},
		cancel: () => iterator.return(),
	});
};
