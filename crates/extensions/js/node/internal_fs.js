// Arguments, flags, Stats and Dirent, for all of node:fs.

import { coded, invalidArgType, outOfRange } from "pinion:node/internal_errors";
import { lazy } from "pinion:runtime/lazy";

/** `Buffer` is loaded only when bytes are needed; most scripts read and write text. */
export const buffers = () => lazy("node/buffer").Buffer;

export const constants = {
	UV_FS_SYMLINK_DIR: 1, UV_FS_SYMLINK_JUNCTION: 2,
	O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2,
	UV_DIRENT_UNKNOWN: 0, UV_DIRENT_FILE: 1, UV_DIRENT_DIR: 2, UV_DIRENT_LINK: 3, UV_DIRENT_FIFO: 4, UV_DIRENT_SOCKET: 5, UV_DIRENT_CHAR: 6, UV_DIRENT_BLOCK: 7,
	S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFCHR: 0o020000, S_IFBLK: 0o060000, S_IFIFO: 0o010000, S_IFLNK: 0o120000, S_IFSOCK: 0o140000,
	O_CREAT: 0o100, O_EXCL: 0o200, UV_FS_O_FILEMAP: 0, O_NOCTTY: 0o400, O_TRUNC: 0o1000, O_APPEND: 0o2000, O_DIRECTORY: 0o200000, O_NOATIME: 0o1000000, O_NOFOLLOW: 0o400000, O_SYNC: 0o4010000, O_DSYNC: 0o10000, O_DIRECT: 0o40000, O_NONBLOCK: 0o4000,
	S_IRWXU: 0o700, S_IRUSR: 0o400, S_IWUSR: 0o200, S_IXUSR: 0o100, S_IRWXG: 0o70, S_IRGRP: 0o40, S_IWGRP: 0o20, S_IXGRP: 0o10, S_IRWXO: 0o7, S_IROTH: 0o4, S_IWOTH: 0o2, S_IXOTH: 0o1,
	F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1,
	UV_FS_COPYFILE_EXCL: 1, COPYFILE_EXCL: 1, UV_FS_COPYFILE_FICLONE: 2, COPYFILE_FICLONE: 2, UV_FS_COPYFILE_FICLONE_FORCE: 4, COPYFILE_FICLONE_FORCE: 4,
};

const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_SYNC, O_TRUNC, O_WRONLY } = constants;
const FLAGS = {
	r: O_RDONLY, rs: O_RDONLY | O_SYNC, sr: O_RDONLY | O_SYNC, "r+": O_RDWR, "rs+": O_RDWR | O_SYNC, "sr+": O_RDWR | O_SYNC,
	w: O_TRUNC | O_CREAT | O_WRONLY, wx: O_TRUNC | O_CREAT | O_WRONLY | O_EXCL, xw: O_TRUNC | O_CREAT | O_WRONLY | O_EXCL,
	"w+": O_TRUNC | O_CREAT | O_RDWR, "wx+": O_TRUNC | O_CREAT | O_RDWR | O_EXCL, "xw+": O_TRUNC | O_CREAT | O_RDWR | O_EXCL,
	a: O_APPEND | O_CREAT | O_WRONLY, ax: O_APPEND | O_CREAT | O_WRONLY | O_EXCL, xa: O_APPEND | O_CREAT | O_WRONLY | O_EXCL, as: O_APPEND | O_CREAT | O_WRONLY | O_SYNC, sa: O_APPEND | O_CREAT | O_WRONLY | O_SYNC,
	"a+": O_APPEND | O_CREAT | O_RDWR, "ax+": O_APPEND | O_CREAT | O_RDWR | O_EXCL, "xa+": O_APPEND | O_CREAT | O_RDWR | O_EXCL, "as+": O_APPEND | O_CREAT | O_RDWR | O_SYNC, "sa+": O_APPEND | O_CREAT | O_RDWR | O_SYNC,
};

export function flagsOf(flags, fallback = "r") {
	if (typeof flags === "number") return flags;
	const found = FLAGS[flags ?? fallback];
	if (found === undefined) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'flags' is invalid. Received '${flags}'`);
	return found;
}

export function modeOf(mode, fallback) {
	if (mode === undefined || mode === null) return fallback;
	if (typeof mode !== "string") return mode >>> 0;
	if (!/^[0-7]+$/.test(mode)) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'mode' must be a 32-bit unsigned integer or an octal string. Received '${mode}'`);
	return Number.parseInt(mode, 8);
}

/** Converts a path given as text, bytes or URL. */
export function pathOf(path, name = "path") {
	let text = path;
	if (path instanceof Uint8Array) text = buffers().from(path.buffer, path.byteOffset, path.byteLength).toString();
	else if (path !== null && typeof path === "object" && typeof path.href === "string") {
		if (path.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
		text = decodeURIComponent(path.pathname);
	}
	if (typeof text !== "string") throw coded(TypeError, "ERR_INVALID_ARG_TYPE", invalidArgType(name, ["string", "an instance of Buffer or URL"], path).message.replace("one of type string or an", "of type string or an"));
	if (text.includes("\0")) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument '${name}' must be a string, Uint8Array, or URL without null bytes. Received '${text.replaceAll("\0", "\\x00")}'`);
	return text;
}

export function fdOf(fd) {
	if (typeof fd !== "number") throw invalidArgType("fd", "number", fd);
	if (!Number.isInteger(fd) || fd < 0 || fd > 2147483647) throw outOfRange("fd", ">= 0 && <= 2147483647", fd);
	return fd;
}

export const optionsOf = (options, defaults) => (typeof options === "string" ? { ...defaults, encoding: options } : { ...defaults, ...options });

/** Converts bytes to the form that the caller requested. */
export function decoded(bytes, encoding) {
	const buffer = buffers().from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
}

export const named = (name, encoding) => (encoding === "buffer" ? buffers().from(name) : encoding && encoding !== "utf8" && encoding !== "utf-8" ? buffers().from(name).toString(encoding) : name);

/** Converts the content to be written to bytes. */
export function bytesOf(data, encoding, name = "data") {
	if (typeof data === "string") return buffers().from(data, encoding === "buffer" ? "utf8" : encoding ?? "utf8");
	if (data instanceof Uint8Array) return data;
	if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === undefined ? "undefined" : data === null ? "null" : typeof data === "object" ? `an instance of ${data.constructor?.name}` : `type ${typeof data} (${String(data)})`}`);
}

export const secondsOf = (time) => {
	if (time instanceof Date) return time.getTime() / 1000;
	const number = Number(time);
	return Number.isFinite(number) ? number : Date.now() / 1000;
};

export class Stats {
	constructor(dev, mode, nlink, uid, gid, rdev, blksize, ino, size, blocks, atimeMs, mtimeMs, ctimeMs, birthtimeMs) {
		Object.assign(this, { dev, mode, nlink, uid, gid, rdev, blksize, ino, size, blocks, atimeMs, mtimeMs, ctimeMs, birthtimeMs });
		for (const name of ["atime", "mtime", "ctime", "birthtime"]) this[name] = new Date(Math.round(Number(this[`${name}Ms`])));
	}
	isFile() {
		return kindOf(this) === constants.S_IFREG;
	}
	isDirectory() {
		return kindOf(this) === constants.S_IFDIR;
	}
	isSymbolicLink() {
		return kindOf(this) === constants.S_IFLNK;
	}
	isBlockDevice() {
		return kindOf(this) === constants.S_IFBLK;
	}
	isCharacterDevice() {
		return kindOf(this) === constants.S_IFCHR;
	}
	isFIFO() {
		return kindOf(this) === constants.S_IFIFO;
	}
	isSocket() {
		return kindOf(this) === constants.S_IFSOCK;
	}
}
export class BigIntStats extends Stats {}

const kindOf = (stats) => Number(stats.mode) & constants.S_IFMT;

export function statsOf(numbers, options) {
	const times = [10, 12, 14, 16].map((at) => [numbers[at], numbers[at + 1]]);
	if (options?.bigint) {
		const nanos = times.map(([seconds, nano]) => BigInt(seconds) * 1000000000n + BigInt(nano));
		const stats = new BigIntStats(...numbers.slice(0, 10).map(BigInt), ...nanos.map((nano) => nano / 1000000n));
		return Object.assign(stats, { atimeNs: nanos[0], mtimeNs: nanos[1], ctimeNs: nanos[2], birthtimeNs: nanos[3] });
	}
	return new Stats(...numbers.slice(0, 10), ...times.map(([seconds, nano]) => seconds * 1000 + nano / 1e6));
}

export class Dirent {
	#kind;
	constructor(name, kind, parentPath) {
		this.name = name;
		this.parentPath = parentPath;
		this.path = parentPath;
		this.#kind = kind;
	}
	isFile() {
		return this.#kind === 1;
	}
	isDirectory() {
		return this.#kind === 2;
	}
	isSymbolicLink() {
		return this.#kind === 3;
	}
	isFIFO() {
		return this.#kind === 4;
	}
	isSocket() {
		return this.#kind === 5;
	}
	isCharacterDevice() {
		return this.#kind === 6;
	}
	isBlockDevice() {
		return this.#kind === 7;
	}
}

/** Parses the entries of a directory from `<kind digit><name>`. */
export function entriesOf(list, directory, options) {
	return list.map((entry) => {
		const name = named(entry.slice(1), options?.encoding);
		return options?.withFileTypes ? new Dirent(name, Number(entry[0]), directory) : name;
	});
}

export const joined = (directory, name) => (directory.endsWith("/") ? directory + name : `${directory}/${name}`);

/** Returns the special error for `rm` of a directory without `recursive`. */
export function removalError(error, path) {
	if (error.code !== "EISDIR") return error;
	const told = coded(Error, "ERR_FS_EISDIR", `Path is a directory: rm returned EISDIR (is a directory) ${path}`);
	return Object.assign(told, { info: { code: "EISDIR", message: "is a directory", path, syscall: "rm", errno: 21 }, errno: 21, syscall: "rm", path });
}

export const copyError = (code, path, message) => Object.assign(coded(Error, code, message), { path, syscall: "cp" });
