// node:timers/promises

import { abortError } from "pinion:node/internal_errors";

const wait = (start, stop, value, options) =>
	new Promise((resolve, reject) => {
		const { signal } = options ?? {};
		if (signal?.aborted) return reject(abortError(signal.reason));
		const onAbort = () => {
			stop(timer);
			reject(abortError(signal.reason));
		};
		const timer = start(() => {
			signal?.removeEventListener("abort", onAbort);
			resolve(value);
		});
		if (options?.ref === false) timer?.unref?.();
		signal?.addEventListener("abort", onAbort, { once: true });
	});

const later = (delay, value, options) => wait((done) => globalThis.setTimeout(done, delay), globalThis.clearTimeout, value, options);
const soon = (value, options) => wait((done) => globalThis.setImmediate(done), globalThis.clearImmediate, value, options);

async function* every(delay, value, options) {
	for (;;) {
		await later(delay, undefined, options);
		yield value;
	}
}

export { later as setTimeout, soon as setImmediate, every as setInterval };
export const scheduler = { wait: (delay, options) => later(delay, undefined, options), yield: () => soon() };
export default { setTimeout: later, setImmediate: soon, setInterval: every, scheduler };
