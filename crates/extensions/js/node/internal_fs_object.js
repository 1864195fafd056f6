// The default export of `node:fs`: the synchronous and the callback functions. Promises, streams and watchers are
// loaded when they are first used.

import { ops } from "pinion:ops";
import { invalidArgType } from "pinion:node/internal_errors";
import { BigIntStats, Dirent, Stats, buffers, constants, decoded, fdOf, flagsOf, modeOf, optionsOf, pathOf, secondsOf, statsOf, bytesOf } from "pinion:node/internal_fs";
import * as sync from "pinion:node/internal_fs_sync";
import { lazy } from "pinion:runtime/lazy";

const native = ops.fs;
const promises = () => lazy("node/fs_promises").default;
const streams = () => lazy("node/internal_fs_streams");
const watching = () => lazy("node/internal_fs_watch");

/** Calls back with the result of a promise. An error of the callback does not become a rejection of the promise. */
function settle(promise, callback, spread) {
	promise.then(
		(value) => setImmediate(() => (spread ? spread(value) : value === undefined ? callback(null) : callback(null, value))),
		(error) => setImmediate(() => callback(error)),
	);
}

const callbackOf = (args) => {
	const callback = args.pop();
	if (typeof callback !== "function") throw invalidArgType("cb", "function", callback);
	return callback;
};

const called = (work) =>
	function (...args) {
		const callback = callbackOf(args);
		settle(work(...args), callback);
	};

const fs = {
	...Object.fromEntries(Object.entries(sync).filter(([name]) => name.endsWith("Sync"))),
	constants,
	F_OK: constants.F_OK,
	R_OK: constants.R_OK,
	W_OK: constants.W_OK,
	X_OK: constants.X_OK,
	Stats,
	BigIntStats,
	Dirent,
	createReadStream: (path, options) => new fs.ReadStream(path, options),
	createWriteStream: (path, options) => new fs.WriteStream(path, options),
	watch(path, options, listener) {
		if (typeof options === "function") [listener, options] = [options, {}];
		return new (watching().FSWatcher)(pathOf(path, "filename"), optionsOf(options), listener);
	},
	watchFile(path, options, listener) {
		if (typeof options === "function") [listener, options] = [options, {}];
		return watching().watchFile(pathOf(path, "filename"), options ?? {}, listener);
	},
	unwatchFile: (path, listener) => watching().unwatchFile(pathOf(path, "filename"), listener),
	exists(path, callback) {
		const there = sync.existsSync(path);
		setImmediate(() => callback(there));
	},
	read(fd, ...args) {
		const callback = callbackOf(args);
		let [target, ...rest] = args;
		if (!ArrayBuffer.isView(target)) {
			const options = target ?? {};
			target = options.buffer ?? buffers().alloc(16384);
			rest = [options];
		}
		const { offset, length, position } = sync.readArguments(target, ...rest);
		const reading = native.readAsync(fdOf(fd), length, position);
		settle(reading, callback, (bytes) => {
			new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes, offset);
			callback(null, bytes.length, target);
		});
	},
	write(fd, data, ...args) {
		const callback = callbackOf(args);
		const { bytes, position } = sync.writeArguments(data, ...args);
		settle(native.writeAsync(fdOf(fd), bytes, position), callback, (count) => callback(null, count, data));
	},
	readFile(path, ...args) {
		const callback = callbackOf(args);
		const settings = optionsOf(args[0]);
		settle(typeof path === "number" ? native.readAllAsync(path).then((bytes) => decoded(bytes, settings.encoding)) : promises().readFile(path, settings), callback);
	},
	writeFile(path, data, ...args) {
		const callback = callbackOf(args);
		const settings = optionsOf(args[0]);
		settle(typeof path === "number" ? native.writeAsync(path, bytesOf(data, settings.encoding), -1).then(() => undefined) : promises().writeFile(path, data, settings), callback);
	},
	appendFile(path, data, ...args) {
		const callback = callbackOf(args);
		fs.writeFile(path, data, { flag: "a", ...optionsOf(args[0]) }, callback);
	},
	realpath(path, ...args) {
		const callback = callbackOf(args);
		const fail = (error) => {
			throw sync.walkedError(error, pathOf(path));
		};
		settle(promises().realpath(path, args[0]).catch(fail), callback);
	},
	open: called((path, flags, mode) => native.openAsync(pathOf(path), flagsOf(typeof flags === "object" ? undefined : flags), modeOf(mode, 0o666))),
	close(fd, callback = () => {}) {
		settle(native.closeAsync(fdOf(fd)), callback);
	},
	fsync: called((fd) => native.fsyncAsync(fdOf(fd))),
	fdatasync: called((fd) => native.fdatasyncAsync(fdOf(fd))),
	ftruncate: called((fd, length = 0) => native.ftruncateAsync(fdOf(fd), length)),
	fstat: called(async (fd, options) => statsOf(await native.fstatAsync(fdOf(fd)), options)),
	fchmod: called((fd, mode) => native.fchmodAsync(fdOf(fd), modeOf(mode))),
	fchown: called((fd, uid, gid) => native.fchownAsync(fdOf(fd), uid, gid)),
	futimes: called((fd, atime, mtime) => native.futimesAsync(fdOf(fd), secondsOf(atime), secondsOf(mtime))),
	writev(fd, buffers, ...args) {
		const callback = callbackOf(args);
		settle(native.writeAsync(fdOf(fd), buffers().concat(buffers), typeof args[0] === "number" ? args[0] : -1), callback, (count) => callback(null, count, buffers));
	},
	readv(fd, buffers, ...args) {
		const callback = callbackOf(args);
		const count = sync.readvSync(fd, buffers, args[0]);
		setImmediate(() => callback(null, count, buffers));
	},
};
for (const [name, load] of Object.entries({
	promises,
	Dir: () => lazy("node/fs_promises").Dir,
	ReadStream: () => streams().ReadStream,
	WriteStream: () => streams().WriteStream,
	FileReadStream: () => streams().ReadStream,
	FileWriteStream: () => streams().WriteStream,
	FSWatcher: () => watching().FSWatcher,
})) {
	const keep = (value) => Object.defineProperty(fs, name, { value, configurable: true, enumerable: true, writable: true });
	Object.defineProperty(fs, name, { configurable: true, enumerable: true, get: () => keep(load())[name], set: keep });
}
for (const name of ["access", "chmod", "chown", "copyFile", "cp", "lchmod", "lchown", "link", "lstat", "lutimes", "mkdir", "mkdtemp", "opendir", "readdir", "readlink", "rename", "rm", "rmdir", "stat", "statfs", "symlink", "truncate", "unlink", "utimes"]) {
	fs[name] = called((...args) => promises()[name](...args));
	Object.defineProperty(fs[name], "name", { value: name });
}
fs.glob = (pattern, ...args) => {
	const callback = callbackOf(args);
	settle(Array.fromAsync(promises().glob(pattern, args[0])), callback);
};
fs.realpath.native = called((path, options) => promises().realpath(path, options));
const custom = Symbol.for("nodejs.util.promisify.custom");
fs.exists[custom] = (path) => Promise.resolve(sync.existsSync(path));
fs.read[custom] = (fd, ...args) => new Promise((resolve, reject) => fs.read(fd, ...args, (error, bytesRead, buffer) => (error ? reject(error) : resolve({ bytesRead, buffer }))));
fs.write[custom] = (fd, ...args) => new Promise((resolve, reject) => fs.write(fd, ...args, (error, bytesWritten, buffer) => (error ? reject(error) : resolve({ bytesWritten, buffer }))));

export default fs;
