// spawnSync, execSync, execFileSync.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { encoded, normalize, startError, stdioOf } from "pinion:node/internal_child";
import { signalName, signalNumber } from "pinion:node/internal_signals";

const inputOf = (input, encoding) => {
	if (input === undefined || input === null) return null;
	if (typeof input === "string") return Buffer.from(input, encoding && encoding !== "buffer" ? encoding : "utf8");
	return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
};

function run(file, args, options, fallback) {
	const { file: program, words, settings, spec } = normalize(file, args, options);
	const stdio = stdioOf(settings.stdio, fallback);
	const input = inputOf(settings.input, settings.encoding);
	if (input !== null) stdio[0] = "pipe";
	Object.assign(spec, {
		stdio,
		timeout: settings.timeout ?? null,
		maxBuffer: settings.maxBuffer ?? 1024 * 1024,
		killSignal: signalNumber(settings.killSignal),
	});
	if (spec.maxBuffer === Number.POSITIVE_INFINITY) spec.maxBuffer = null;
	const encoding = settings.encoding;
	try {
		const done = ops.child.runSync(JSON.stringify(spec), input);
		const [stdout, stderr] = [encoded(done.stdout, encoding), encoded(done.stderr, encoding)];
		const result = { pid: done.pid, output: [null, stdout, stderr], stdout, stderr, status: done.status ?? null, signal: signalName(done.signal) };
		if (done.cut) result.error = startError({ code: done.cut, errno: done.cut === "ETIMEDOUT" ? -110 : -105 }, "spawnSync", program, words);
		return { result, program, words };
	} catch (error) {
		if (error.code === undefined) throw error;
		const failure = startError(error, "spawnSync", program, words);
		return { result: { pid: 0, output: null, stdout: null, stderr: null, status: null, signal: null, error: failure }, program, words };
	}
}

export function spawnSync(file, args, options) {
	return run(file, args, options, "pipe").result;
}

/** Returns the output or throws the failure. */
function checked({ result }, settings, command) {
	const piped = settings?.stdio === undefined || settings.stdio === "pipe";
	// The child's error output is shown, unless the caller handles it.
	if (settings?.stdio === undefined && result.stderr?.length > 0) ops.process.writeError(typeof result.stderr === "string" ? Buffer.from(result.stderr) : result.stderr);
	if (result.error) throw Object.assign(result.error, result, { error: undefined });
	if (result.status !== 0) {
		const complaint = piped && result.stderr?.length > 0 ? `\n${result.stderr.toString()}` : "";
		const { pid, output, stdout, stderr, status, signal } = result;
		throw Object.assign(new Error(`Command failed: ${command}${complaint}`), { status, signal, output, pid, stdout, stderr });
	}
	return result.stdout;
}

export function execSync(command, options) {
	const settings = { ...options, shell: typeof options?.shell === "string" ? options.shell : true };
	return checked(run(command, [], settings, "pipe"), options, command);
}

export function execFileSync(file, args, options) {
	const settings = Array.isArray(args) ? options : args ?? options;
	const words = Array.isArray(args) ? args : [];
	return checked(run(file, words, settings, "pipe"), settings, [file, ...words].join(" "));
}
