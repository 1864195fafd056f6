// The synchronous functions of node:fs.

import { ops } from "pinion:ops";
import { buffers, bytesOf, copyError, decoded, entriesOf, fdOf, flagsOf, joined, modeOf, named, optionsOf, pathOf, removalError, secondsOf, statsOf } from "pinion:node/internal_fs";
import { outOfRange } from "pinion:node/internal_errors";
import { lazy } from "pinion:runtime/lazy";

const { fs } = ops;

export function existsSync(path) {
	try {
		fs.access(pathOf(path), 0);
		return true;
	} catch {
		return false;
	}
}
export const accessSync = (path, mode = 0) => fs.access(pathOf(path), mode);
export const openSync = (path, flags, mode) => fs.open(pathOf(path), flagsOf(flags), modeOf(mode, 0o666));
export const closeSync = (fd) => fs.close(fdOf(fd));
export const fsyncSync = (fd) => fs.fsync(fdOf(fd));
export const fdatasyncSync = (fd) => fs.fdatasync(fdOf(fd));
export const ftruncateSync = (fd, length = 0) => fs.ftruncate(fdOf(fd), length ?? 0);
export const truncateSync = (path, length = 0) => (typeof path === "number" ? ftruncateSync(path, length) : fs.truncate(pathOf(path), length ?? 0));

/** Returns offset, length and position of a read from any form of the arguments. */
export function readArguments(target, offset, length, position) {
	if (offset !== null && typeof offset === "object") ({ offset = 0, length, position = null } = offset);
	offset ??= 0;
	length ??= target.byteLength - offset;
	if (!(length >= 0 && length <= target.byteLength - offset)) throw outOfRange("length", `>= 0 && <= ${target.byteLength - offset}`, length);
	return { offset, length, position: position === null || position === undefined ? -1 : Number(position) };
}
export function readSync(fd, target, ...rest) {
	const { offset, length, position } = readArguments(target, ...rest);
	const bytes = fs.read(fdOf(fd), length, position);
	new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes, offset);
	return bytes.length;
}
/** Returns the content and the position of a write from either form of the arguments. */
export function writeArguments(data, first, second, third) {
	if (typeof data === "string") return { bytes: buffers().from(data, typeof second === "string" ? second : "utf8"), position: typeof first === "number" ? first : -1 };
	let [offset, length, position] = [first, second, third];
	if (first !== null && typeof first === "object") ({ offset = 0, length, position = null } = first);
	const bytes = bytesOf(data, undefined, "buffer");
	offset ??= 0;
	return { bytes: bytes.subarray(offset, length === undefined || length === null ? undefined : offset + length), position: typeof position === "number" ? position : -1 };
}
export function writeSync(fd, data, ...rest) {
	const { bytes, position } = writeArguments(data, ...rest);
	return fs.write(fdOf(fd), bytes, position);
}
export const writevSync = (fd, buffers, position) => buffers.reduce((sum, part) => sum + writeSync(fd, part, 0, part.byteLength, typeof position === "number" ? position + sum : null), 0);
export const readvSync = (fd, buffers, position) => buffers.reduce((sum, part) => sum + readSync(fd, part, 0, part.byteLength, typeof position === "number" ? position + sum : null), 0);
export function readFileSync(path, options) {
	const { encoding, flag } = optionsOf(options);
	const bytes = typeof path === "number" ? fs.readAll(path) : fs.readFile(pathOf(path), flagsOf(flag));
	return decoded(bytes, encoding);
}
export function writeFileSync(path, data, options) {
	const { encoding, flag, mode } = optionsOf(options);
	const bytes = bytesOf(data, encoding);
	if (typeof path === "number") fs.write(path, bytes, -1);
	else fs.writeFile(pathOf(path), bytes, flagsOf(flag, "w"), modeOf(mode, 0o666));
}
export const appendFileSync = (path, data, options) => writeFileSync(path, data, { flag: "a", ...optionsOf(options) });

const looked = (look) => (path, options) => {
	try {
		return statsOf(look(pathOf(path)), options);
	} catch (error) {
		if (options?.throwIfNoEntry === false && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
		throw error;
	}
};
export const statSync = looked((path) => fs.stat(path));
export const lstatSync = looked((path) => fs.lstat(path));
export const fstatSync = (fd, options) => statsOf(fs.fstat(fdOf(fd)), options);
export function statfsSync(path) {
	const [type, bsize, blocks, bfree, bavail, files, ffree] = fs.statfs(pathOf(path));
	return { type, bsize, blocks, bfree, bavail, files, ffree };
}
export function mkdirSync(path, options) {
	const settings = typeof options === "number" || typeof options === "string" ? { mode: options } : options ?? {};
	return fs.mkdir(pathOf(path), Boolean(settings.recursive), modeOf(settings.mode, 0o777)) ?? undefined;
}
export const mkdtempSync = (prefix, options) => named(fs.mkdtemp(pathOf(prefix, "prefix")), optionsOf(options).encoding);
export function readdirSync(path, options) {
	const settings = optionsOf(options);
	const top = pathOf(path);
	if (!settings.recursive) return entriesOf(fs.readdir(top), top, settings);
	const found = [];
	const pending = [""];
	while (pending.length > 0) {
		const below = pending.shift();
		const directory = below === "" ? top : joined(top, below);
		for (const entry of fs.readdir(directory)) {
			const inner = below === "" ? entry.slice(1) : joined(below, entry.slice(1));
			found.push(settings.withFileTypes ? entriesOf([entry], directory, settings)[0] : named(inner, settings.encoding));
			if (entry[0] === "2") pending.push(inner);
		}
	}
	return found;
}
export function opendirSync(path, options) {
	const { Dir, renamed } = lazy("node/fs_promises");
	try {
		return new Dir(pathOf(path), readdirSync(path, { ...options, withFileTypes: true }));
	} catch (error) {
		throw renamed(error);
	}
}
export const rmdirSync = (path, options) => (options?.recursive ? fs.rm(pathOf(path), true, false) : fs.rmdir(pathOf(path)));
export function rmSync(path, options) {
	try {
		fs.rm(pathOf(path), Boolean(options?.recursive), Boolean(options?.force));
	} catch (error) {
		throw removalError(error, pathOf(path));
	}
}
export const unlinkSync = (path) => fs.unlink(pathOf(path));
export const renameSync = (from, to) => fs.rename(pathOf(from, "oldPath"), pathOf(to, "newPath"));
export const copyFileSync = (from, to, mode = 0) => fs.copyFile(pathOf(from, "src"), pathOf(to, "dest"), mode ?? 0);
export const linkSync = (from, to) => fs.link(pathOf(from, "existingPath"), pathOf(to, "newPath"));
export const symlinkSync = (target, path) => fs.symlink(pathOf(target, "target"), pathOf(path));
export const readlinkSync = (path, options) => named(fs.readlink(pathOf(path)), optionsOf(options).encoding);
/** Converts a failure of `realpath` to that of the part of the path that fails. */
export function walkedError(error, path) {
	if (error.syscall !== "realpath") return error;
	let at = "";
	for (const part of (path.startsWith("/") ? path : `${ops.process.cwd()}/${path}`).split("/").slice(1)) {
		at += `/${part}`;
		try {
			fs.lstat(at);
		} catch (missing) {
			return missing;
		}
	}
	return error;
}
export function realpathSync(path, options) {
	try {
		return named(fs.realpath(pathOf(path)), optionsOf(options).encoding);
	} catch (error) {
		throw walkedError(error, pathOf(path));
	}
}
realpathSync.native = (path, options) => named(fs.realpath(pathOf(path)), optionsOf(options).encoding);
export const chmodSync = (path, mode) => fs.chmod(pathOf(path), modeOf(mode));
export const lchmodSync = chmodSync;
export const fchmodSync = (fd, mode) => fs.fchmod(fdOf(fd), modeOf(mode));
export const chownSync = (path, uid, gid) => fs.chown(pathOf(path), uid, gid);
export const lchownSync = (path, uid, gid) => fs.lchown(pathOf(path), uid, gid);
export const fchownSync = (fd, uid, gid) => fs.fchown(fdOf(fd), uid, gid);
export const utimesSync = (path, atime, mtime) => fs.utimes(pathOf(path), secondsOf(atime), secondsOf(mtime));
export const lutimesSync = (path, atime, mtime) => fs.lutimes(pathOf(path), secondsOf(atime), secondsOf(mtime));
export const futimesSync = (fd, atime, mtime) => fs.futimes(fdOf(fd), secondsOf(atime), secondsOf(mtime));
export function globSync(patterns, options = {}) {
	const tests = [patterns].flat().map(lazy("node/path").globToRegExp);
	const cwd = options.cwd === undefined ? ops.process.cwd() : pathOf(options.cwd);
	return readdirSync(cwd, { recursive: true }).filter((name) => tests.some((test) => test.test(name)) && !options.exclude?.(name));
}
export function cpSync(from, to, options = {}) {
	const source = pathOf(from, "src");
	const target = pathOf(to, "dest");
	if (options.filter && !options.filter(source, target)) return;
	const kind = options.dereference ? statSync(source) : lstatSync(source);
	const there = lstatSync(target, { throwIfNoEntry: false });
	if (kind.isDirectory()) {
		if (!options.recursive) throw copyError("ERR_FS_EISDIR", source, `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${source} is a directory (not copied)) ${source}`);
		if (there && !there.isDirectory()) throw copyError("ERR_FS_CP_DIR_TO_NON_DIR", target, `Cannot overwrite non-directory with directory: ${target}`);
		mkdirSync(target, { recursive: true, mode: kind.mode & 0o777 });
		for (const name of readdirSync(source)) cpSync(joined(source, name), joined(target, name), options);
		return;
	}
	if (there && options.force === false) {
		if (options.errorOnExist) throw copyError("ERR_FS_CP_EEXIST", target, `Target already exists: cp returned EEXIST (${target} already exists) ${target}`);
		return;
	}
	const slash = target.lastIndexOf("/");
	if (slash > 0) mkdirSync(target.slice(0, slash), { recursive: true });
	if (kind.isSymbolicLink()) {
		if (there) rmSync(target, { force: true, recursive: true });
		symlinkSync(readlinkSync(source), target);
	} else copyFileSync(source, target, options.mode ?? 0);
	if (options.preserveTimestamps) utimesSync(target, kind.atime, kind.mtime);
}
