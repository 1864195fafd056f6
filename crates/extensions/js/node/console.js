// node:console

const console = globalThis.console;
export class Console {
	constructor(stdout, stderr) {
		const options = typeof stdout?.write === "function" ? { stdout, stderr } : stdout ?? {};
		const out = options.stdout;
		const err = options.stderr ?? out;
		const { format } = console;
		const line = (stream) => (...args) => void stream.write(`${format ? format(...args) : args.join(" ")}\n`);
		Object.assign(this, Object.create(console), { log: line(out), info: line(out), debug: line(out), error: line(err), warn: line(err), trace: line(err) });
	}
}
export const { log, info, debug, error, warn, trace, dir, table, time, timeEnd, timeLog, group, groupEnd, groupCollapsed, count, countReset, assert, clear } = console;
export default console;
