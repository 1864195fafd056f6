// Arguments, environment and descriptors of children, for all functions that start one.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { coded, invalidArgType, unsupported } from "pinion:node/internal_errors";
import { pathOf } from "pinion:node/internal_fs";
import process from "pinion:node/process";

const NAMED = { pipe: "pipe", overlapped: "pipe", ignore: "ignore", inherit: "inherit" };

/** Returns one of the three descriptors: "pipe", "ignore", or a number. Children never get pinion's standard output. */
function descriptor(value, index) {
	if (value === null || value === undefined) return "pipe";
	if (typeof value === "string") {
		if (value === "ipc") throw unsupported("child_process", "spawn with stdio 'ipc'");
		const known = NAMED[value];
		if (known === undefined) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'stdio' is invalid. Received '${value}'`);
		return known === "inherit" ? (index === 0 ? "ignore" : 2) : known;
	}
	const number = typeof value === "number" ? value : value.fd ?? value._handle?.fd;
	if (typeof number !== "number") throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'stdio' is invalid.");
	if (number === 0) return "ignore";
	return number === 1 ? 2 : number;
}

export function stdioOf(stdio, fallback) {
	const list = Array.isArray(stdio) ? stdio : new Array(3).fill(stdio ?? fallback);
	const first = [0, 1, 2].map((index) => descriptor(list[index] ?? fallback, index));
	return [...first, ...list.slice(3).map((value, at) => descriptor(value ?? "ignore", at + 3))];
}

const exists = (path, mode) => {
	try {
		ops.fs.access(path, mode);
		return true;
	} catch {
		return false;
	}
};
const NODE_OPTION = /^--(?:experimental-|no-|max-|enable-|disable-|stack-|trace-|input-type|import=|require=|loader=)/;
const NODE_PAIR = ["--import", "--require", "-r", "--loader"];

/** Reports whether the arguments of the running program are those of Node: its options, then a script that exists. */
function runsScript(words, cwd) {
	let at = 0;
	while (at < words.length && (NODE_OPTION.test(words[at]) || NODE_PAIR.includes(words[at]))) at += NODE_PAIR.includes(words[at]) ? 2 : 1;
	const script = words[at];
	if (script === undefined || !/\.[cm]?[jt]s$/.test(script)) return false;
	return exists(script.startsWith("/") ? script : `${cwd === undefined || cwd === null ? process.cwd() : pathOf(cwd)}/${script}`, 4);
}

/** Returns the program that runs scripts: `process.execPath` is Node for pi, and pinion runs only extensions. */
function runtime(path) {
	for (const name of ["node", "bun"]) {
		for (const directory of path.split(":")) if (directory && exists(`${directory}/${name}`, 1)) return `${directory}/${name}`;
	}
	return "node";
}

/** Normalises the arguments (file, args?, options?). */
export function normalize(file, args, options) {
	if (typeof file !== "string") throw invalidArgType("file", "string", file);
	if (file === "") throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'file' cannot be empty. Received ''");
	let words = [];
	if (Array.isArray(args)) words = args.map((word) => {
		if (typeof word === "string" && word.includes("\0")) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'args' must be a string without null bytes.`);
		return String(word).toWellFormed();
	});
	else if (args !== null && args !== undefined) {
		if (typeof args !== "object") throw invalidArgType("args", "object", args);
		options = args;
	}
	if (options !== undefined && options !== null && typeof options !== "object") throw invalidArgType("options", "object", options);
	const settings = { ...options };
	if (settings.shell) {
		const command = [file, ...words].join(" ");
		file = typeof settings.shell === "string" ? settings.shell : "/bin/sh";
		words = ["-c", command];
	}
	const given = settings.env ?? process.env;
	if (file === process.execPath && runsScript(words, settings.cwd)) file = runtime(given.PATH ?? "");
	const env = [];
	for (const name in given) if (given[name] !== undefined) env.push([name, String(given[name]).toWellFormed()]);
	return {
		file,
		words,
		settings,
		spec: { file: file.toWellFormed(), args: words, cwd: settings.cwd === undefined || settings.cwd === null ? null : pathOf(settings.cwd, "options.cwd"), env },
	};
}

/** Returns the error of a child that did not start. */
export function startError(error, call, file, words) {
	const told = new Error(`${call} ${file} ${error.code ?? error.message}`);
	return Object.assign(told, { errno: error.errno, code: error.code, syscall: `${call} ${file}`, path: file, spawnargs: words });
}

export const encoded = (bytes, encoding) => {
	if (bytes === null || bytes === undefined) return null;
	const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
};
