// node:process and the global `process`.

import { ops } from "pinion:ops";
import { EventEmitter } from "pinion:node/events";
import { coded, invalidArgType, missing } from "pinion:node/internal_errors";
import { signalNumber } from "pinion:node/internal_signals";
import { lazy } from "pinion:runtime/lazy";

const native = ops.process;
const buffers = () => lazy("node/buffer").Buffer;
const ARCHITECTURES = { x86_64: "x64", aarch64: "arm64", x86: "ia32", arm: "arm", riscv64: "riscv64", powerpc64: "ppc64", s390x: "s390x" };
// The Node release whose interfaces these modules follow.
const VERSION = "v22.12.0";

const text = (name) => (typeof name === "symbol" ? undefined : String(name));

/** Reads and writes change the environment that children get. */
const env = new Proxy(Object.create(Object.prototype), {
	get: (target, name) => (typeof name === "symbol" ? target[name] : native.variable(name) ?? (name in Object.prototype ? target[name] : undefined)),
	set(_target, name, value) {
		if (typeof name === "symbol" || typeof value === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
		native.setVariable(name, String(value).toWellFormed());
		return true;
	},
	has: (target, name) => (typeof name === "symbol" ? name in target : native.variable(name) !== undefined && native.variable(name) !== null),
	deleteProperty(_target, name) {
		if (text(name) !== undefined) native.removeVariable(name);
		return true;
	},
	ownKeys: () => Object.keys(native.environment()),
	getOwnPropertyDescriptor(_target, name) {
		const value = typeof name === "symbol" ? undefined : native.variable(name);
		return value === undefined || value === null ? undefined : { value, writable: true, enumerable: true, configurable: true };
	},
	defineProperty(_target, name, descriptor) {
		if ("value" in descriptor) native.setVariable(String(name), String(descriptor.value));
		return true;
	},
});

/** Descriptor 1 carries the protocol, so both outputs write to standard error. */
function output(fd) {
	let stream;
	return () => {
		if (stream) return stream;
		const { Writable } = lazy("node/internal_writable");
		stream = new Writable({
			decodeStrings: true,
			autoDestroy: false,
			write(chunk, _encoding, callback) {
				native.writeError(chunk);
				callback();
			},
		});
		const write = stream.write;
		stream.write = function (chunk, encoding, callback) {
			// Written immediately, so that nothing is lost if the program ends now.
			if (this._writableState.queue.length > 0 || this._writableState.ending) return write.call(this, chunk, encoding, callback);
			if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
			if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "chunk" argument must be of type string or an instance of Buffer or Uint8Array. Received ${chunk === null ? "null" : typeof chunk}`);
			native.writeError(typeof chunk === "string" ? buffers().from(chunk, encoding) : chunk);
			if (callback) queueMicrotask(() => callback(null));
			return true;
		};
		Object.assign(stream, { fd, isTTY: false, columns: undefined, rows: undefined, _type: "fs", hasColors: () => false, getColorDepth: () => 1, getWindowSize: () => [80, 24], cursorTo: () => true, moveCursor: () => true, clearLine: () => true, clearScreenDown: () => true });
		stream.destroySoon = stream.destroy = () => stream;
		return stream;
	};
}

let input;
const stdin = () => {
	// Standard input belongs to the client; extensions see it as ended.
	input ??= Object.assign(new (lazy("node/internal_readable").Readable)({ read() { this.push(null); } }), { fd: 0, isTTY: false, setRawMode() { return this; }, ref() { return this; }, unref() { return this; } });
	return input;
};

const elapsed = () => native.elapsed();
function hrtime(since) {
	let [seconds, nanos] = elapsed();
	if (since !== undefined) {
		if (!Array.isArray(since)) throw invalidArgType("time", "Array", since);
		seconds -= since[0];
		nanos -= since[1];
		if (nanos < 0) {
			seconds--;
			nanos += 1e9;
		}
	}
	return [seconds, nanos];
}
hrtime.bigint = () => {
	const [seconds, nanos] = elapsed();
	return BigInt(seconds) * 1000000000n + BigInt(nanos);
};

const rss = () => (ops.process.residentPages() ?? 0) * 4096;
function memoryUsage() {
	const used = ops.process.heap?.() ?? 0;
	return { rss: rss(), heapTotal: used, heapUsed: used, external: 0, arrayBuffers: 0 };
}
memoryUsage.rss = rss;

function Process() {
	EventEmitter.call(this);
}
Process.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Process, configurable: true, writable: true }, [Symbol.toStringTag]: { value: "process", configurable: true } });
Object.defineProperty(Process, "name", { value: "process" });

/** Requests the end of the program, and blocks the script until it has ended. */
function leave(code) {
	ops.core.exit(code);
	for (;;) {
		native.pause();
		// The engine checks for its end once in ten thousand steps.
		for (let i = 0; i < 10000; i++);
	}
}

const process = new Process();
const warned = new Set();
let exiting = false;

Object.assign(process, {
	version: VERSION,
	// `bun` goes with the script path in `argv`: together they identify a compiled pi, which is started without a script.
	versions: { node: VERSION.slice(1), bun: "1.3.0", pinion: ops.process.release ?? "0", uv: "1.49.1", zlib: "1.3.0", modules: "127", v8: "12.4.254.21" },
	arch: ARCHITECTURES[native.arch] ?? native.arch,
	platform: native.system === "macos" ? "darwin" : native.system,
	release: { name: "node", lts: "Jod" },
	// The second argument is the script path of a compiled pi. No such file exists, so an extension that starts the same
	// program again runs pinion itself.
	argv: [native.program, "/$bunfs/root/pi", ...native.arguments],
	argv0: native.program,
	execArgv: [],
	execPath: native.program,
	env,
	pid: native.pid,
	title: "pinion",
	exitCode: undefined,
	debugPort: 9229,
	config: { target_defaults: {}, variables: {} },
	features: { inspector: false, debug: false, uv: true, ipv6: true, tls_alpn: true, tls_sni: true, tls_ocsp: true, tls: true, cached_builtins: true, typescript: "transform" },
	allowedNodeEnvironmentFlags: new Set(),
	report: undefined,
	cwd: () => native.cwd(),
	chdir(directory) {
		if (typeof directory !== "string") throw invalidArgType("directory", "string", directory);
		native.chdir(directory);
	},
	exit(code) {
		if (code !== undefined) process.exitCode = code;
		const final = Number(process.exitCode ?? 0) || 0;
		if (!exiting) {
			exiting = true;
			process.emit("exit", final);
		}
		leave(Number(process.exitCode ?? 0) || 0);
	},
	reallyExit: (code) => leave(code ?? 0),
	abort: () => process.exit(134),
	kill(pid, signal) {
		if (typeof pid !== "number" && typeof pid !== "string") throw invalidArgType("pid", "number", pid);
		try {
			native.kill(Number(pid), signal === 0 ? 0 : signalNumber(signal));
		} catch (error) {
			if (error.syscall === "kill") error.message = `kill ${error.code}`;
			throw error;
		}
		return true;
	},
	nextTick(work, ...args) {
		if (typeof work !== "function") throw invalidArgType("callback", "function", work);
		queueMicrotask(args.length === 0 ? work : () => work(...args));
	},
	hrtime,
	memoryUsage,
	uptime: () => {
		const [seconds, nanos] = elapsed();
		return seconds + nanos / 1e9;
	},
	cpuUsage(since) {
		const [seconds, nanos] = elapsed();
		const user = Math.round(seconds * 1e6 + nanos / 1e3);
		return { user: user - (since?.user ?? 0), system: 0 };
	},
	resourceUsage: () => ({ userCPUTime: 0, systemCPUTime: 0, maxRSS: Math.round(rss() / 1024) }),
	constrainedMemory: () => 0,
	availableMemory: () => 0,
	umask(mask) {
		return native.umask(mask === undefined ? -1 : typeof mask === "string" ? Number.parseInt(mask, 8) : mask);
	},
	getuid: () => native.uid(),
	getgid: () => native.gid(),
	geteuid: () => native.euid(),
	getegid: () => native.egid(),
	getgroups: () => [native.gid()],
	emitWarning(warning, type, code) {
		const options = typeof type === "object" && type !== null ? type : { type, code };
		const error = warning instanceof Error ? warning : Object.assign(new Error(String(warning)), { name: options.type ?? "Warning" });
		if (options.code !== undefined) error.code = options.code;
		if (options.detail !== undefined) error.detail = options.detail;
		if (error.name === "DeprecationWarning" && process.noDeprecation) return;
		const line = `(pinion:${native.pid}) ${error.code ? `[${error.code}] ` : ""}${error.name}: ${error.message}\n${error.detail ? `${error.detail}\n` : ""}`;
		if (!warned.has(line)) {
			warned.add(line);
			native.writeError(buffers().from(line));
		}
		queueMicrotask(() => process.emit("warning", error));
	},
	binding: missing("process", "binding"),
	dlopen: missing("process", "dlopen"),
	setUncaughtExceptionCaptureCallback() {},
	hasUncaughtExceptionCaptureCallback: () => false,
	getActiveResourcesInfo: () => [],
	getBuiltinModule: (name) => ops.module?.builtin?.(name),
	loadEnvFile(path = ".env") {
		const content = buffers().from(ops.fs.readFile(path, 0)).toString();
		for (const [, name, value] of content.matchAll(/^\s*(?:export\s+)?([\w.-]+)\s*=\s*(.*)$/gm)) if (!(name in env)) env[name] = value.trim().replace(/^(["'])([\s\S]*)\1$/, "$2");
	},
	_events: Object.create(null),
});
process.assert = (value, message) => {
	if (!value) throw new Error(message ?? "assertion error");
};
// A listener for uncaught errors handles them.
const wanted = () => process.listenerCount("uncaughtException") + process.listenerCount("unhandledRejection") > 0;
const handler = (error, kind) => {
	if (process.listenerCount(kind) === 0) return false;
	process.emit(kind, error, kind === "unhandledRejection" ? undefined : kind);
	return true;
};
let handling = false;
process.on("newListener", (name) => {
	if (handling || (name !== "uncaughtException" && name !== "unhandledRejection")) return;
	handling = true;
	ops.core.setUncaughtHandler((error, kind) => wanted() && handler(error, kind));
});
for (const [name, get] of Object.entries({ stdout: output(1), stderr: output(2), stdin, ppid: () => native.ppid(), connected: () => false, channel: () => undefined }))
	Object.defineProperty(process, name, { get, enumerable: true, configurable: true });

export const { version, versions, arch, platform, release, argv, argv0, execArgv, execPath, pid, title, debugPort, config, features, allowedNodeEnvironmentFlags, cwd, chdir, exit, reallyExit, abort, kill, nextTick, uptime, cpuUsage, resourceUsage, umask, getuid, getgid, geteuid, getegid, getgroups, emitWarning, getBuiltinModule, loadEnvFile, binding } = process;
export { env, hrtime, memoryUsage };
export const on = process.on.bind(process);
export const once = process.once.bind(process);
export const off = process.off.bind(process);
export const emit = process.emit.bind(process);
export const addListener = on;
export const removeListener = off;
export const { stdout, stderr, ppid } = process;
const ended = process.stdin;
export { ended as stdin };
export default process;
