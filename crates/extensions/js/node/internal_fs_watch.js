// fs.watch through inotify, and fs.watchFile by polling.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { abortError } from "pinion:node/internal_errors";
import { Stats, joined, statsOf } from "pinion:node/internal_fs";

const { fs } = ops;

export class FSWatcher extends EventEmitter {
	#ids = new Map();
	#closed = false;
	constructor(path, options, listener) {
		super();
		this.encoding = options.encoding;
		if (listener) this.on("change", listener);
		this.#open(path, "");
		if (options.recursive) this.#openBelow(path, "");
		if (options.signal?.aborted) queueMicrotask(() => this.close());
		else options.signal?.addEventListener("abort", () => this.close(), { once: true });
	}
	#open(path, below) {
		const id = fs.watchOpen(path);
		this.#ids.set(below, id);
		this.#follow(id, path, below);
	}
	#openBelow(path, below) {
		let list = [];
		try {
			list = fs.readdir(path);
		} catch {
			return;
		}
		for (const entry of list) if (entry[0] === "2") this.#adopt(joined(path, entry.slice(1)), below === "" ? entry.slice(1) : joined(below, entry.slice(1)));
	}
	#adopt(path, below) {
		if (this.#ids.has(below)) return;
		try {
			this.#open(path, below);
		} catch {
			return;
		}
		this.recursive = true;
		this.#openBelow(path, below);
	}
	async #follow(id, path, below) {
		for (;;) {
			const events = await fs.watchNext(id);
			if (events === null || events === undefined || this.#closed) break;
			for (const event of events) {
				if (this.#closed) return;
				const name = event.slice(1);
				const shown = below === "" ? name : joined(below, name);
				if (event[0] === "r" && this.recursive) this.#adopt(joined(path, name), shown);
				this.emit("change", event[0] === "c" ? "change" : "rename", this.encoding === "buffer" ? Buffer.from(shown) : shown);
			}
		}
		if (this.#ids.get(below) === id) this.#ids.delete(below);
		fs.watchClose(id);
	}
	close() {
		if (this.#closed) return;
		this.#closed = true;
		for (const id of this.#ids.values()) fs.watchClose(id);
		this.#ids.clear();
		queueMicrotask(() => this.emit("close"));
	}
	ref() {
		return this;
	}
	unref() {
		return this;
	}
}

export async function* watchIterator(path, options) {
	if (options.signal?.aborted) throw abortError(options.signal.reason);
	const ready = [];
	let wake = () => {};
	const watcher = new FSWatcher(path, { ...options, signal: undefined }, (eventType, filename) => {
		ready.push({ eventType, filename });
		wake();
	});
	const onAbort = () => wake();
	options.signal?.addEventListener("abort", onAbort, { once: true });
	try {
		for (;;) {
			if (options.signal?.aborted) throw abortError(options.signal.reason);
			if (ready.length > 0) yield ready.shift();
			else
				await new Promise((resolve) => {
					wake = resolve;
				});
		}
	} finally {
		options.signal?.removeEventListener("abort", onAbort);
		watcher.close();
	}
}

const watched = new Map();
const NOTHING = new Array(18).fill(0);

const look = (path, options) => {
	try {
		return statsOf(fs.stat(path), options);
	} catch {
		return statsOf(NOTHING, options);
	}
};

export class StatWatcher extends EventEmitter {
	constructor(path, options) {
		super();
		this.path = path;
		this.last = look(path, options);
		this.timer = setInterval(() => {
			const now = look(path, options);
			if (now.mtimeMs === this.last.mtimeMs && now.size === this.last.size && now.ino === this.last.ino && now.ctimeMs === this.last.ctimeMs) return;
			const before = this.last;
			this.last = now;
			this.emit("change", now, before);
		}, options.interval ?? 5007);
		this.timer.unref?.();
		if (this.last.nlink === 0) queueMicrotask(() => this.emit("change", this.last, this.last));
	}
	stop() {
		clearInterval(this.timer);
		this.emit("stop");
	}
	ref() {
		return this;
	}
	unref() {
		return this;
	}
}

export function watchFile(path, options, listener) {
	let watcher = watched.get(path);
	if (!watcher) watched.set(path, (watcher = new StatWatcher(path, options)));
	watcher.on("change", listener);
	return watcher;
}

export function unwatchFile(path, listener) {
	const watcher = watched.get(path);
	if (!watcher) return;
	if (listener) watcher.removeListener("change", listener);
	else watcher.removeAllListeners("change");
	if (watcher.listenerCount("change") > 0) return;
	watcher.stop();
	watched.delete(path);
}

export { Stats };
