// The stores of AsyncLocalStorage.
//
// The engine does not report the context of an awaited continuation. While exactly one asynchronous run of a storage is
// pending, code after an await belongs to it; while several overlap, no store is returned, because it could be the
// wrong one.

let active = new Map();

/** Runs `work` with `storage` set to `store`. */
export function runWith(storage, store, work, args) {
	const before = active;
	active = new Map(before).set(storage, store);
	const mine = active;
	let result;
	try {
		result = work(...args);
	} finally {
		active = before;
	}
	if (typeof result?.then === "function") {
		const pending = (storage.pending ??= new Set());
		pending.add(mine);
		const done = () => pending.delete(mine);
		result.then(done, done);
	}
	return result;
}

export function storeOf(storage) {
	if (active.has(storage)) return active.get(storage);
	if (storage.pending?.size === 1) return [...storage.pending][0].get(storage);
	return undefined;
}

export function enter(storage, store) {
	active = new Map(active).set(storage, store);
}

export function leave(storage) {
	active = new Map(active);
	active.delete(storage);
	storage.pending?.clear();
}

/** Returns a function that runs `work` in the current context. */
export function bound(work) {
	const then = active;
	return function (...args) {
		const before = active;
		active = then;
		try {
			return work.apply(this, args);
		} finally {
			active = before;
		}
	};
}
