// node:diagnostics_channel

const channels = new Map();

export class Channel {
	#listeners = [];
	constructor(name) {
		this.name = name;
	}
	get hasSubscribers() {
		return this.#listeners.length > 0;
	}
	subscribe(listener) {
		this.#listeners = [...this.#listeners, listener];
	}
	unsubscribe(listener) {
		const before = this.#listeners.length;
		this.#listeners = this.#listeners.filter((entry) => entry !== listener);
		return this.#listeners.length < before;
	}
	publish(message) {
		for (const listener of this.#listeners) {
			try {
				listener(message, this.name);
			} catch (error) {
				queueMicrotask(() => {
					throw error;
				});
			}
		}
	}
	bindStore() {}
	unbindStore() {}
	runStores(_context, work, self, ...args) {
		return work.apply(self, args);
	}
}

export const channel = (name) => {
	if (!channels.has(name)) channels.set(name, new Channel(name));
	return channels.get(name);
};
export const hasSubscribers = (name) => channels.get(name)?.hasSubscribers ?? false;
export const subscribe = (name, listener) => channel(name).subscribe(listener);
export const unsubscribe = (name, listener) => channel(name).unsubscribe(listener);

export const tracingChannel = (name) => {
	const parts = Object.fromEntries(["start", "end", "asyncStart", "asyncEnd", "error"].map((part) => [part, typeof name === "string" ? channel(`tracing:${name}:${part}`) : name[part]]));
	return {
		...parts,
		get hasSubscribers() {
			return Object.values(parts).some((part) => part.hasSubscribers);
		},
		subscribe: (listeners) => Object.entries(listeners).forEach(([part, listener]) => parts[part].subscribe(listener)),
		unsubscribe: (listeners) => Object.entries(listeners).every(([part, listener]) => parts[part].unsubscribe(listener)),
		traceSync(work, context = {}, self, ...args) {
			parts.start.publish(context);
			try {
				context.result = work.apply(self, args);
				return context.result;
			} catch (error) {
				context.error = error;
				parts.error.publish(context);
				throw error;
			} finally {
				parts.end.publish(context);
			}
		},
		tracePromise: (work, _context, self, ...args) => Promise.resolve(work.apply(self, args)),
		traceCallback: (work, _position, _context, self, ...args) => work.apply(self, args),
	};
};
export default { Channel, channel, hasSubscribers, subscribe, unsubscribe, tracingChannel };
