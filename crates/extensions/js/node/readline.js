// node:readline

import { EventEmitter } from "pinion:node/events";
import { abortError, coded } from "pinion:node/internal_errors";
import { StringDecoder } from "pinion:node/string_decoder";

export class Interface extends EventEmitter {
	#decoder = new StringDecoder("utf8");
	#held = "";
	#afterReturn = false;
	#asked;
	constructor(input, output) {
		super();
		const options = typeof input?.on === "function" ? { input, output } : input ?? {};
		Object.assign(this, { input: options.input, output: options.output, terminal: false, line: "", cursor: 0, closed: false, history: [], paused: false });
		this.prompting = options.prompt ?? "> ";
		if (options.signal) {
			if (options.signal.aborted) queueMicrotask(() => this.close());
			else options.signal.addEventListener("abort", () => this.close(), { once: true });
		}
		this.onData = (chunk) => this.#take(typeof chunk === "string" ? chunk : this.#decoder.write(chunk));
		this.onEnd = () => {
			this.#take(this.#decoder.end());
			if (this.#held !== "") this.#tell(this.#held);
			this.#held = "";
			this.close();
		};
		this.input?.on("data", this.onData);
		this.input?.on("end", this.onEnd);
		this.input?.on("error", (error) => this.listenerCount("error") > 0 && this.emit("error", error));
		this.input?.resume?.();
	}
	#take(text) {
		if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1);
		if (text === "") return;
		this.#afterReturn = text.endsWith("\r");
		const lines = (this.#held + text).split(/\r\n|\n|\r/);
		this.#held = lines.pop();
		for (const line of lines) {
			if (this.closed) return;
			this.#tell(line);
		}
	}
	#tell(line) {
		const asked = this.#asked;
		this.#asked = undefined;
		if (asked) asked(line);
		else this.emit("line", line);
	}
	question(query, options, callback) {
		if (typeof options === "function") [callback, options] = [options, {}];
		if (this.closed) throw coded(Error, "ERR_USE_AFTER_CLOSE", "readline was closed");
		this.output?.write(query);
		this.#asked = callback;
		options?.signal?.addEventListener("abort", () => {
			if (this.#asked === callback) this.#asked = undefined;
		}, { once: true });
	}
	prompt() {
		this.output?.write(this.prompting);
	}
	setPrompt(prompt) {
		this.prompting = prompt;
	}
	getPrompt() {
		return this.prompting;
	}
	write(data) {
		if (data !== undefined && data !== null) this.#take(String(data));
	}
	pause() {
		if (!this.paused) {
			this.input?.pause?.();
			this.paused = true;
			this.emit("pause");
		}
		return this;
	}
	resume() {
		if (this.paused) {
			this.input?.resume?.();
			this.paused = false;
			this.emit("resume");
		}
		return this;
	}
	close() {
		if (this.closed) return;
		this.pause();
		this.closed = true;
		this.input?.removeListener("data", this.onData);
		this.input?.removeListener("end", this.onEnd);
		this.emit("close");
	}
	getCursorPos() {
		return { rows: 0, cols: 0 };
	}
	[Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
		this.close();
	}
	[Symbol.asyncIterator]() {
		const lines = [];
		const waiting = [];
		let over = this.closed;
		this.on("line", (line) => {
			const waiter = waiting.shift();
			if (waiter) waiter({ value: line, done: false });
			else lines.push(line);
		});
		this.once("close", () => {
			over = true;
			for (const waiter of waiting.splice(0)) waiter({ value: undefined, done: true });
		});
		return {
			next: () => {
				if (lines.length > 0) return Promise.resolve({ value: lines.shift(), done: false });
				if (over) return Promise.resolve({ value: undefined, done: true });
				return new Promise((resolve) => waiting.push(resolve));
			},
			return: () => {
				this.close();
				return Promise.resolve({ value: undefined, done: true });
			},
			[Symbol.asyncIterator]() {
				return this;
			},
		};
	}
}

Interface.prototype.question[Symbol.for("nodejs.util.promisify.custom")] = function (query, options) {
	return new Promise((resolve, reject) => {
		if (options?.signal?.aborted) return reject(abortError(options.signal.reason));
		options?.signal?.addEventListener("abort", () => reject(abortError(options.signal.reason)), { once: true });
		this.question(query, options ?? {}, resolve);
	});
};

export const createInterface = (input, output) => new Interface(input, output);
const written = (text) => (stream, ...rest) => {
	const callback = rest.find((item) => typeof item === "function");
	return stream?.write(text(...rest.filter((item) => typeof item !== "function")), callback) ?? true;
};
export const clearLine = written((direction) => (direction < 0 ? "\x1b[1K" : direction > 0 ? "\x1b[0K" : "\x1b[2K"));
export const clearScreenDown = written(() => "\x1b[0J");
export const cursorTo = written((x, y) => (typeof y === "number" ? `\x1b[${y + 1};${x + 1}H` : `\x1b[${x + 1}G`));
export const moveCursor = written((dx, dy) => `${dx < 0 ? `\x1b[${-dx}D` : dx > 0 ? `\x1b[${dx}C` : ""}${dy < 0 ? `\x1b[${-dy}A` : dy > 0 ? `\x1b[${dy}B` : ""}`);
export const emitKeypressEvents = () => {};

export class PromisesInterface extends Interface {
	question(query, options) {
		return new Promise((resolve, reject) => {
			if (options?.signal?.aborted) return reject(abortError(options.signal.reason));
			options?.signal?.addEventListener("abort", () => reject(abortError(options.signal.reason)), { once: true });
			super.question(query, options ?? {}, resolve);
		});
	}
}
export const promises = { Interface: PromisesInterface, createInterface: (input, output) => new PromisesInterface(input, output) };
const readline = { Interface, createInterface, clearLine, clearScreenDown, cursorTo, moveCursor, emitKeypressEvents, promises };
export default readline;
