// node:async_hooks

import { bound, enter, leave, runWith, storeOf } from "pinion:node/internal_async_context";

export class AsyncLocalStorage {
	static bind(work) {
		return bound(work);
	}
	static snapshot() {
		return bound((work, ...args) => work(...args));
	}
	run(store, work, ...args) {
		return runWith(this, store, work, args);
	}
	exit(work, ...args) {
		return runWith(this, undefined, work, args);
	}
	getStore() {
		return storeOf(this);
	}
	enterWith(store) {
		enter(this, store);
	}
	disable() {
		leave(this);
	}
}

let count = 1;
export class AsyncResource {
	#id = ++count;
	#run = bound((work, self, args) => work.apply(self, args));
	constructor(type) {
		this.type = type;
	}
	static bind(work, type, self) {
		const resource = new AsyncResource(type ?? work.name);
		return resource.bind(work, self);
	}
	bind(work, self) {
		const resource = this;
		return function (...args) {
			return resource.runInAsyncScope(work, self ?? this, ...args);
		};
	}
	runInAsyncScope(work, self, ...args) {
		return this.#run(work, self, args);
	}
	emitDestroy() {
		return this;
	}
	asyncId() {
		return this.#id;
	}
	triggerAsyncId() {
		return 1;
	}
}

export const createHook = () => {
	const hook = { enable: () => hook, disable: () => hook };
	return hook;
};
export const executionAsyncId = () => 1;
export const triggerAsyncId = () => 0;
export const executionAsyncResource = () => ({});
export const asyncWrapProviders = {};
export default { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId, triggerAsyncId, executionAsyncResource, asyncWrapProviders };
