// node:events

import { abortError, coded, invalidArgType } from "pinion:node/internal_errors";

export const errorMonitor = Symbol("events.errorMonitor");
export const captureRejectionSymbol = Symbol.for("nodejs.rejection");
const bare = Symbol("bare");
let defaultLimit = 10;

function checkListener(listener) {
	if (typeof listener !== "function") throw invalidArgType("listener", "function", listener);
}

const lists = (emitter) => {
	if (emitter._events === undefined || emitter._events === Object.getPrototypeOf(emitter)._events) {
		emitter._events = Object.create(null);
		emitter._eventsCount = 0;
	}
	return emitter._events;
};

function add(emitter, name, listener, first) {
	checkListener(listener);
	const events = lists(emitter);
	if (events.newListener !== undefined) emitter.emit("newListener", name, listener[bare] ?? listener);
	const list = emitter._events[name];
	if (list === undefined) {
		emitter._events[name] = [listener];
		emitter._eventsCount++;
		return emitter;
	}
	// A new list, because an emit in progress iterates over the old one.
	const longer = first ? [listener, ...list] : [...list, listener];
	longer.warned = list.warned;
	emitter._events[name] = longer;
	const limit = emitter.getMaxListeners();
	if (limit > 0 && longer.length > limit && !longer.warned) {
		longer.warned = true;
		const warning = `Possible EventEmitter memory leak detected. ${longer.length} ${String(name)} listeners added to ${emitter.constructor?.name ?? "EventEmitter"}. Use emitter.setMaxListeners() to increase limit`;
		globalThis.process?.emitWarning?.(warning, "MaxListenersExceededWarning");
	}
	return emitter;
}

function onceWrapper(emitter, name, listener) {
	checkListener(listener);
	let fired = false;
	const wrapper = function (...args) {
		if (fired) return;
		fired = true;
		emitter.removeListener(name, wrapper);
		return listener.apply(emitter, args);
	};
	wrapper.listener = listener;
	wrapper[bare] = listener;
	return wrapper;
}

export function EventEmitter(options) {
	EventEmitter.init.call(this, options);
}

EventEmitter.init = function () {
	lists(this);
	this._maxListeners ??= undefined;
};

Object.assign(EventEmitter.prototype, {
	_events: undefined,
	_eventsCount: 0,
	_maxListeners: undefined,
	setMaxListeners(count) {
		if (typeof count !== "number" || count < 0 || Number.isNaN(count)) throw coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "setMaxListeners" is out of range. It must be a non-negative number. Received ${String(count)}`);
		this._maxListeners = count;
		return this;
	},
	getMaxListeners() {
		return this._maxListeners ?? defaultLimit;
	},
	emit(name, ...args) {
		const events = lists(this);
		if (name === "error") {
			if (events[errorMonitor] !== undefined) this.emit(errorMonitor, ...args);
			if (events.error === undefined) {
				const error = args[0];
				if (error instanceof Error) throw error;
				const wrapped = coded(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${typeof error === "string" ? `'${error}'` : String(error)})`);
				wrapped.context = error;
				throw wrapped;
			}
		}
		const list = events[name];
		if (list === undefined) return false;
		for (const listener of list) listener.apply(this, args);
		return true;
	},
	addListener(name, listener) {
		return add(this, name, listener, false);
	},
	on(name, listener) {
		return add(this, name, listener, false);
	},
	prependListener(name, listener) {
		return add(this, name, listener, true);
	},
	once(name, listener) {
		return this.on(name, onceWrapper(this, name, listener));
	},
	prependOnceListener(name, listener) {
		return this.prependListener(name, onceWrapper(this, name, listener));
	},
	removeListener(name, listener) {
		checkListener(listener);
		const events = lists(this);
		const list = events[name];
		if (list === undefined) return this;
		const at = list.findLastIndex((entry) => entry === listener || entry[bare] === listener);
		if (at < 0) return this;
		if (list.length === 1) {
			delete events[name];
			this._eventsCount--;
		} else {
			const shorter = list.toSpliced(at, 1);
			shorter.warned = list.warned;
			events[name] = shorter;
		}
		if (events.removeListener !== undefined) this.emit("removeListener", name, listener[bare] ?? listener);
		return this;
	},
	off(name, listener) {
		return this.removeListener(name, listener);
	},
	removeAllListeners(name) {
		const events = lists(this);
		if (events.removeListener === undefined) {
			if (name === undefined) {
				this._events = Object.create(null);
				this._eventsCount = 0;
			} else if (events[name] !== undefined) {
				delete events[name];
				this._eventsCount--;
			}
			return this;
		}
		const names = name === undefined ? Reflect.ownKeys(events).filter((key) => key !== "removeListener") : [name];
		for (const key of names) for (const listener of [...(events[key] ?? [])].reverse()) this.removeListener(key, listener);
		if (name === undefined) {
			this._events = Object.create(null);
			this._eventsCount = 0;
		}
		return this;
	},
	listeners(name) {
		return (lists(this)[name] ?? []).map((listener) => listener[bare] ?? listener);
	},
	rawListeners(name) {
		return [...(lists(this)[name] ?? [])];
	},
	listenerCount(name, listener) {
		const list = lists(this)[name] ?? [];
		return listener === undefined ? list.length : list.filter((entry) => entry === listener || entry[bare] === listener).length;
	},
	eventNames() {
		return Reflect.ownKeys(lists(this));
	},
});
for (const name of Object.keys(EventEmitter.prototype)) Object.defineProperty(EventEmitter.prototype, name, { enumerable: false });

export const defaultMaxListeners = defaultLimit;
export const captureRejections = false;

export function getEventListeners(target, name) {
	if (typeof target.listeners === "function") return target.listeners(name);
	return target[Symbol.for("pinion.listeners")]?.(name) ?? [];
}

export function getMaxListeners(target) {
	return typeof target.getMaxListeners === "function" ? target.getMaxListeners() : defaultLimit;
}

export function setMaxListeners(count = defaultLimit, ...targets) {
	if (targets.length === 0) defaultLimit = count;
	for (const target of targets) target.setMaxListeners?.(count);
}

export function listenerCount(emitter, name) {
	return emitter.listenerCount(name);
}

export function addAbortListener(signal, listener) {
	if (signal.aborted) queueMicrotask(() => listener());
	else signal.addEventListener("abort", listener, { once: true });
	const remove = () => signal.removeEventListener("abort", listener);
	return { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]: remove };
}

const isTarget = (emitter) => typeof emitter.on !== "function" && typeof emitter.addEventListener === "function";

/** Resolves with the arguments of the next event. */
export function once(emitter, name, options = {}) {
	const { signal } = options;
	if (signal?.aborted) return Promise.reject(abortError(signal.reason));
	return new Promise((resolve, reject) => {
		const listen = (event, listener) => (isTarget(emitter) ? emitter.addEventListener(event, listener, { once: true }) : emitter.once(event, listener));
		const unlisten = (event, listener) => (isTarget(emitter) ? emitter.removeEventListener(event, listener) : emitter.removeListener(event, listener));
		const done = () => {
			unlisten(name, onEvent);
			if (name !== "error" && !isTarget(emitter)) unlisten("error", onError);
			signal?.removeEventListener("abort", onAbort);
		};
		const onEvent = (...args) => (done(), resolve(args));
		const onError = (error) => (done(), reject(error));
		const onAbort = () => (done(), reject(abortError(signal.reason)));
		listen(name, onEvent);
		if (name !== "error" && !isTarget(emitter)) listen("error", onError);
		signal?.addEventListener("abort", onAbort, { once: true });
	});
}

/** Returns an endless iterator over the arguments of every event. */
export function on(emitter, name, options = {}) {
	const { signal, close = [] } = options;
	const ready = [];
	const waiting = [];
	let failure;
	let ended = false;
	const onEvent = (...args) => {
		const waiter = waiting.shift();
		if (waiter) waiter.resolve({ value: args, done: false });
		else ready.push(args);
	};
	const stop = () => {
		ended = true;
		if (isTarget(emitter)) emitter.removeEventListener(name, onEvent);
		else {
			emitter.removeListener(name, onEvent);
			emitter.removeListener("error", onError);
			for (const event of close) emitter.removeListener(event, stop);
		}
		signal?.removeEventListener("abort", onAbort);
		for (const waiter of waiting.splice(0)) waiter.resolve({ value: undefined, done: true });
	};
	const onError = (error) => {
		const waiter = waiting.shift();
		if (waiter) waiter.reject(error);
		else failure = { error };
		stop();
	};
	const onAbort = () => onError(abortError(signal.reason));
	if (isTarget(emitter)) emitter.addEventListener(name, onEvent);
	else {
		emitter.on(name, onEvent);
		if (name !== "error") emitter.on("error", onError);
		for (const event of close) emitter.on(event, stop);
	}
	if (signal?.aborted) throw abortError(signal.reason);
	signal?.addEventListener("abort", onAbort, { once: true });
	return {
		next() {
			if (ready.length > 0) return Promise.resolve({ value: ready.shift(), done: false });
			if (failure) {
				const { error } = failure;
				failure = undefined;
				return Promise.reject(error);
			}
			if (ended) return Promise.resolve({ value: undefined, done: true });
			return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
		},
		return() {
			stop();
			return Promise.resolve({ value: undefined, done: true });
		},
		throw(error) {
			onError(error);
			return Promise.resolve({ value: undefined, done: true });
		},
		[Symbol.asyncIterator]() {
			return this;
		},
	};
}

export class EventEmitterAsyncResource extends EventEmitter {}

Object.assign(EventEmitter, {
	EventEmitter,
	EventEmitterAsyncResource,
	errorMonitor,
	captureRejectionSymbol,
	captureRejections,
	usingDomains: false,
	once,
	on,
	getEventListeners,
	getMaxListeners,
	setMaxListeners,
	listenerCount,
	addAbortListener,
});
Object.defineProperty(EventEmitter, "defaultMaxListeners", {
	enumerable: true,
	get: () => defaultLimit,
	set: (count) => {
		defaultLimit = count;
	},
});

export default EventEmitter;
