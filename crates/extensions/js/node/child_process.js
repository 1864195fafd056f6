// node:child_process

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { abortError, coded, missing } from "pinion:node/internal_errors";
import { normalize, startError, stdioOf } from "pinion:node/internal_child";
import { execFileSync, execSync, spawnSync } from "pinion:node/internal_child_sync";
import { Readable } from "pinion:node/internal_readable";
import { Duplex, Writable } from "pinion:node/internal_writable";
import { signalName, signalNumber } from "pinion:node/internal_signals";

const native = ops.child;
export { execFileSync, execSync, spawnSync };

function reader(id, which) {
	return new Readable({
		read() {
			native.read(id, which).then(
				(piece) => this.push(piece === null || piece === undefined ? null : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)),
				(error) => this.destroy(error),
			);
		},
		destroy(error, callback) {
			native.closeOutput(id, which);
			callback(error);
		},
	});
}

const writing = (id, which) => ({
	write(chunk, _encoding, callback) {
		native.write(id, which, chunk).then(() => callback(), callback);
	},
	final(callback) {
		native.closeInput(id, which).then(() => callback(), callback);
	},
	destroy(error, callback) {
		native.closeInput(id, which).then(() => callback(error), () => callback(error));
	},
});
const writer = (id) => new Writable(writing(id, 0));

/** A pipe beyond standard error, which works in both directions. */
function duplex(id, index) {
	const { write, final, destroy } = writing(id, index - 2);
	return new Duplex({
		write,
		final,
		read() {
			native.read(id, index - 1).then(
				(piece) => this.push(piece === null || piece === undefined ? null : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)),
				(error) => this.destroy(error),
			);
		},
		destroy(error, callback) {
			native.closeOutput(id, index - 1);
			destroy(error, callback);
		},
	});
}

export class ChildProcess extends EventEmitter {
	#id;
	#closing = 0;
	constructor() {
		super();
		Object.assign(this, { pid: undefined, stdin: null, stdout: null, stderr: null, stdio: [null, null, null], exitCode: null, signalCode: null, killed: false, connected: false, spawnfile: undefined, spawnargs: [] });
	}
	/** Starts the child. A failure is reported by an event, like that of a missing program. */
	_start({ file, words, settings, spec }) {
		this.spawnfile = file;
		this.spawnargs = [settings.argv0 ?? file, ...words];
		spec.stdio = stdioOf(settings.stdio, "pipe");
		let started;
		try {
			started = native.spawn(JSON.stringify(spec));
		} catch (error) {
			if (error.code === undefined) throw error;
			const failure = startError(error, "spawn", file, words);
			this._streams((index) => (index === 0 ? new Writable({ write: (_chunk, _encoding, callback) => callback() }) : Readable.from([])), spec.stdio);
			this.exitCode = error.errno;
			setImmediate(() => {
				this.emit("error", failure);
				this.stdout?.resume();
				this.stderr?.resume();
				this.emit("close", error.errno, null);
			});
			return this;
		}
		[this.#id, this.pid] = started;
		this._streams((index) => (index === 0 ? writer(this.#id) : index > 2 ? duplex(this.#id, index) : reader(this.#id, index - 1)), spec.stdio);
		queueMicrotask(() => this.emit("spawn"));
		this.#follow();
		return this;
	}
	_streams(make, stdio) {
		this.stdio = stdio.map((kind, index) => (kind === "pipe" ? make(index) : null));
		[this.stdin, this.stdout, this.stderr] = this.stdio;
		// A child may exit without reading its input; its exit is reported separately.
		this.stdin?.on("error", () => {});
		for (const extra of this.stdio.slice(3)) extra?.on("error", () => {});
	}
	async #follow() {
		const outputs = [this.stdout, this.stderr].filter(Boolean);
		this.#closing = outputs.length + 1;
		for (const output of outputs) output.once("close", () => this.#closed());
		const [code, signal] = await native.wait(this.#id);
		this.exitCode = code ?? null;
		this.signalCode = signalName(signal);
		if (this.stdin && !this.stdin.destroyed) this.stdin.destroy();
		// Outside the promise, so that an error of a listener is an uncaught error.
		setImmediate(() => {
			try {
				this.emit("exit", this.exitCode, this.signalCode);
			} finally {
				// Unread output must not prevent the `close` event.
				for (const output of outputs) if (output.readableFlowing === null && !output._readableState.readableListening) output.resume();
				this.#closed();
			}
		});
	}
	#closed() {
		if (--this.#closing > 0) return;
		native.forget(this.#id);
		this.emit("close", this.exitCode, this.signalCode);
	}
	kill(signal) {
		const number = signal === 0 ? 0 : signalNumber(signal);
		if (this.#id === undefined || this.exitCode !== null || this.signalCode !== null) return false;
		const sent = native.kill(this.#id, number);
		if (sent && number !== 0) this.killed = true;
		return sent;
	}
	ref() {}
	unref() {}
	disconnect() {}
	send() {
		throw coded(Error, "ERR_IPC_CHANNEL_CLOSED", "Channel closed");
	}
	[Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
		this.kill();
	}
}

export function spawn(file, args, options) {
	const prepared = normalize(file, args, options);
	const { settings } = prepared;
	const child = new ChildProcess()._start(prepared);
	if (settings.timeout > 0) {
		const timer = setTimeout(() => child.kill(settings.killSignal), settings.timeout);
		child.once("exit", () => clearTimeout(timer));
	}
	if (settings.signal) {
		const { signal } = settings;
		const onAbort = () => {
			if (child.kill(settings.killSignal) || child.pid === undefined) child.emit("error", abortError(signal.reason));
		};
		if (signal.aborted) setImmediate(onAbort);
		else {
			signal.addEventListener("abort", onAbort, { once: true });
			child.once("exit", () => signal.removeEventListener("abort", onAbort));
		}
	}
	return child;
}

/** Collects output up to a limit, as text or bytes. */
function gather(stream, encoding, limit, overflow) {
	const state = { chunks: [], size: 0 };
	const asText = encoding && encoding !== "buffer" && Buffer.isEncoding(encoding);
	if (asText) stream?.setEncoding(encoding);
	stream?.on("data", (chunk) => {
		const room = limit - state.size;
		state.size += chunk.length;
		state.chunks.push(chunk.length > room ? chunk.slice(0, room) : chunk);
		if (chunk.length > room) overflow();
	});
	return () => (asText ? state.chunks.join("") : Buffer.concat(state.chunks));
}

export function execFile(file, args, options, callback) {
	if (typeof args === "function") [callback, args, options] = [args, [], {}];
	else if (!Array.isArray(args) && args !== null && typeof args === "object") [callback, options, args] = [typeof options === "function" ? options : callback, args, []];
	else if (typeof options === "function") [callback, options] = [options, {}];
	const settings = { encoding: "utf8", timeout: 0, maxBuffer: 1024 * 1024, killSignal: "SIGTERM", ...options };
	const { timeout, signal } = settings;
	const child = spawn(file, args ?? [], { ...settings, timeout: undefined, signal: undefined, stdio: settings.stdio ?? "pipe" });
	const command = settings.command ?? [file, ...(args ?? [])].join(" ");
	let failure;
	let timer;
	const stop = (error) => {
		failure ??= error;
		child.stdout?.destroy();
		child.stderr?.destroy();
		child.kill(settings.killSignal);
	};
	const overflow = (name) => () => stop(coded(RangeError, "ERR_CHILD_PROCESS_STDIO_MAXBUFFER", `${name} maxBuffer length exceeded`));
	const stdout = gather(child.stdout, settings.encoding, settings.maxBuffer, overflow("stdout"));
	const stderr = gather(child.stderr, settings.encoding, settings.maxBuffer, overflow("stderr"));
	const onAbort = () => stop(abortError(signal.reason));
	if (timeout > 0) timer = setTimeout(() => stop(undefined), timeout);
	if (signal?.aborted) setImmediate(onAbort);
	else signal?.addEventListener("abort", onAbort, { once: true });
	let done = false;
	const finish = (code, ended) => {
		if (done) return;
		done = true;
		clearTimeout(timer);
		signal?.removeEventListener("abort", onAbort);
		if (!callback) return;
		const [out, err] = [stdout(), stderr()];
		if (!failure && code === 0 && ended === null) return callback(null, out, err);
		const error = failure ?? Object.assign(new Error(`Command failed: ${command}\n${err}`), { code, killed: child.killed, signal: ended });
		error.cmd ??= command;
		callback(error, out, err);
	};
	child.on("close", finish);
	child.on("error", (error) => {
		failure ??= error;
		child.stdout?.destroy();
		child.stderr?.destroy();
		finish();
	});
	return child;
}

export function exec(command, options, callback) {
	if (typeof options === "function") [callback, options] = [options, {}];
	const settings = { ...options, shell: typeof options?.shell === "string" ? options.shell : true, command };
	return execFile(command, [], settings, callback);
}

const promised = (start) => (...args) => {
	let child;
	const promise = new Promise((resolve, reject) => {
		child = start(...args, (error, stdout, stderr) => (error ? reject(Object.assign(error, { stdout, stderr })) : resolve({ stdout, stderr })));
	});
	promise.child = child;
	return promise;
};
const custom = Symbol.for("nodejs.util.promisify.custom");
Object.defineProperty(exec, custom, { value: promised(exec) });
Object.defineProperty(execFile, custom, { value: promised(execFile) });

export const fork = missing("child_process", "fork");
export const _forkChild = missing("child_process", "_forkChild");

const child_process = { ChildProcess, spawn, spawnSync, exec, execSync, execFile, execFileSync, fork };
export default child_process;
