// node:fs/promises

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { abortError, coded } from "pinion:node/internal_errors";
import { bytesOf, constants, copyError, decoded, entriesOf, fdOf, flagsOf, joined, modeOf, named, optionsOf, pathOf, removalError, secondsOf, statsOf } from "pinion:node/internal_fs";
import { ReadStream, WriteStream } from "pinion:node/internal_fs_streams";
import { watchIterator } from "pinion:node/internal_fs_watch";
import { globToRegExp } from "pinion:node/path";
import { createInterface } from "pinion:node/readline";

const { fs } = ops;
export { constants };

const checkSignal = (options) => {
	if (options?.signal?.aborted) throw abortError(options.signal.reason);
};

export class FileHandle extends EventEmitter {
	#fd;
	#closing;
	constructor(fd) {
		super();
		this.#fd = fd;
	}
	get fd() {
		return this.#fd;
	}
	async appendFile(data, options) {
		await this.writeFile(data, options);
	}
	async chmod(mode) {
		await fs.fchmodAsync(this.#fd, modeOf(mode));
	}
	async chown(uid, gid) {
		await fs.fchownAsync(this.#fd, uid, gid);
	}
	close() {
		if (this.#fd === -1) return Promise.resolve();
		this.#closing ??= fs.closeAsync(this.#fd).finally(() => {
			this.#fd = -1;
			this.emit("close");
		});
		return this.#closing;
	}
	async datasync() {
		await fs.fdatasyncAsync(this.#fd);
	}
	async sync() {
		await fs.fsyncAsync(this.#fd);
	}
	async stat(options) {
		return statsOf(await fs.fstatAsync(this.#fd), options);
	}
	async truncate(length = 0) {
		await fs.ftruncateAsync(this.#fd, length);
	}
	async utimes(atime, mtime) {
		await fs.futimesAsync(this.#fd, secondsOf(atime), secondsOf(mtime));
	}
	async read(target, offset, length, position) {
		if (target === undefined || !ArrayBuffer.isView(target)) {
			const options = target ?? {};
			target = options.buffer ?? Buffer.alloc(16384);
			({ offset, length, position } = options);
		} else if (offset !== null && typeof offset === "object") ({ offset, length, position } = offset);
		offset ??= 0;
		length ??= target.byteLength - offset;
		const bytes = await fs.readAsync(this.#fd, length, Number(position ?? -1));
		new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes, offset);
		return { bytesRead: bytes.length, buffer: target };
	}
	async readFile(options) {
		const { encoding } = optionsOf(options);
		return decoded(await fs.readAllAsync(this.#fd), encoding);
	}
	readLines(options) {
		return createInterface({ input: this.createReadStream(options), crlfDelay: Number.POSITIVE_INFINITY });
	}
	async write(data, offset, length, position) {
		if (typeof data === "string") {
			const bytes = Buffer.from(data, typeof length === "string" ? length : "utf8");
			return { bytesWritten: await fs.writeAsync(this.#fd, bytes, typeof offset === "number" ? offset : -1), buffer: data };
		}
		if (offset !== null && typeof offset === "object") ({ offset, length, position } = offset);
		const bytes = bytesOf(data, undefined, "buffer");
		const part = bytes.subarray(offset ?? 0, length === undefined || length === null ? undefined : (offset ?? 0) + length);
		return { bytesWritten: await fs.writeAsync(this.#fd, part, typeof position === "number" ? position : -1), buffer: data };
	}
	async writev(buffers, position) {
		let bytesWritten = 0;
		for (const part of buffers) bytesWritten += (await this.write(part, 0, part.byteLength, typeof position === "number" ? position + bytesWritten : null)).bytesWritten;
		return { bytesWritten, buffers };
	}
	async readv(buffers, position) {
		let bytesRead = 0;
		for (const part of buffers) bytesRead += (await this.read(part, 0, part.byteLength, typeof position === "number" ? position + bytesRead : null)).bytesRead;
		return { bytesRead, buffers };
	}
	async writeFile(data, options) {
		const { encoding } = optionsOf(options);
		for await (const part of partsOf(data)) await fs.writeAsync(this.#fd, bytesOf(part, encoding), -1);
	}
	createReadStream(options) {
		return new ReadStream(undefined, { ...options, fd: this.#fd, handle: this });
	}
	createWriteStream(options) {
		return new WriteStream(undefined, { ...options, fd: this.#fd, handle: this });
	}
	readableWebStream() {
		return ReadStream.toWeb(this.createReadStream());
	}
	[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
		return this.close();
	}
}

async function* partsOf(data) {
	if (typeof data === "string" || ArrayBuffer.isView(data)) yield data;
	else if (data?.[Symbol.asyncIterator] || data?.[Symbol.iterator]) yield* data;
	else yield data;
}

export async function open(path, flags, mode) {
	return new FileHandle(await fs.openAsync(pathOf(path), flagsOf(flags), modeOf(mode, 0o666)));
}
export async function readFile(path, options) {
	const settings = optionsOf(options);
	checkSignal(settings);
	if (path instanceof FileHandle) return path.readFile(settings);
	const bytes = await fs.readFileAsync(pathOf(path), flagsOf(settings.flag));
	checkSignal(settings);
	return decoded(bytes, settings.encoding);
}
export async function writeFile(path, data, options) {
	const settings = optionsOf(options);
	checkSignal(settings);
	if (path instanceof FileHandle) return path.writeFile(data, settings);
	if (typeof data !== "string" && !ArrayBuffer.isView(data) && (data?.[Symbol.asyncIterator] || data?.[Symbol.iterator])) {
		const handle = await open(path, settings.flag ?? "w", settings.mode);
		try {
			await handle.writeFile(data, settings);
		} finally {
			await handle.close();
		}
		return;
	}
	await fs.writeFileAsync(pathOf(path), bytesOf(data, settings.encoding), flagsOf(settings.flag, "w"), modeOf(settings.mode, 0o666));
}
export async function appendFile(path, data, options) {
	await writeFile(path, data, { flag: "a", ...optionsOf(options) });
}
export async function access(path, mode = 0) {
	await fs.accessAsync(pathOf(path), mode);
}
export async function stat(path, options) {
	return statsOf(await fs.statAsync(pathOf(path)), options);
}
export async function lstat(path, options) {
	return statsOf(await fs.lstatAsync(pathOf(path)), options);
}
export async function statfs(path) {
	const [type, bsize, blocks, bfree, bavail, files, ffree] = await fs.statfsAsync(pathOf(path));
	return { type, bsize, blocks, bfree, bavail, files, ffree };
}
export async function mkdir(path, options) {
	const settings = typeof options === "number" || typeof options === "string" ? { mode: options } : options ?? {};
	return (await fs.mkdirAsync(pathOf(path), Boolean(settings.recursive), modeOf(settings.mode, 0o777))) ?? undefined;
}
export async function mkdtemp(prefix, options) {
	return named(await fs.mkdtempAsync(pathOf(prefix, "prefix")), optionsOf(options).encoding);
}
export async function readdir(path, options) {
	const settings = optionsOf(options);
	const top = pathOf(path);
	if (!settings.recursive) return entriesOf(await fs.readdirAsync(top), top, settings);
	const found = [];
	const pending = [""];
	while (pending.length > 0) {
		const below = pending.shift();
		const directory = below === "" ? top : joined(top, below);
		for (const entry of await fs.readdirAsync(directory)) {
			const inner = below === "" ? entry.slice(1) : joined(below, entry.slice(1));
			found.push(settings.withFileTypes ? entriesOf([entry], directory, settings)[0] : named(inner, settings.encoding));
			if (entry[0] === "2") pending.push(inner);
		}
	}
	return found;
}
export async function rmdir(path, options) {
	if (options?.recursive) await fs.rmAsync(pathOf(path), true, false);
	else await fs.rmdirAsync(pathOf(path));
}
export async function rm(path, options) {
	await fs.rmAsync(pathOf(path), Boolean(options?.recursive), Boolean(options?.force)).catch((error) => {
		throw removalError(error, pathOf(path));
	});
}
export async function unlink(path) {
	await fs.unlinkAsync(pathOf(path));
}
export async function rename(from, to) {
	await fs.renameAsync(pathOf(from, "oldPath"), pathOf(to, "newPath"));
}
export async function copyFile(from, to, mode = 0) {
	await fs.copyFileAsync(pathOf(from, "src"), pathOf(to, "dest"), mode);
}
export async function link(from, to) {
	await fs.linkAsync(pathOf(from, "existingPath"), pathOf(to, "newPath"));
}
export async function symlink(target, path) {
	await fs.symlinkAsync(pathOf(target, "target"), pathOf(path));
}
export async function readlink(path, options) {
	return named(await fs.readlinkAsync(pathOf(path)), optionsOf(options).encoding);
}
export async function realpath(path, options) {
	return named(await fs.realpathAsync(pathOf(path)), optionsOf(options).encoding);
}
export async function chmod(path, mode) {
	await fs.chmodAsync(pathOf(path), modeOf(mode));
}
export async function lchmod(path, mode) {
	await chmod(path, mode);
}
export async function chown(path, uid, gid) {
	await fs.chownAsync(pathOf(path), uid, gid);
}
export async function lchown(path, uid, gid) {
	await fs.lchownAsync(pathOf(path), uid, gid);
}
export async function utimes(path, atime, mtime) {
	await fs.utimesAsync(pathOf(path), secondsOf(atime), secondsOf(mtime));
}
export async function lutimes(path, atime, mtime) {
	await fs.lutimesAsync(pathOf(path), secondsOf(atime), secondsOf(mtime));
}
export async function truncate(path, length = 0) {
	await fs.truncateAsync(pathOf(path), length);
}

export async function cp(from, to, options = {}) {
	const source = pathOf(from, "src");
	const target = pathOf(to, "dest");
	if (options.filter && !(await options.filter(source, target))) return;
	const kind = options.dereference ? await stat(source) : await lstat(source);
	const there = await lstat(target).catch(() => undefined);
	if (kind.isDirectory()) {
		if (!options.recursive) throw copyError("ERR_FS_EISDIR", source, `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${source} is a directory (not copied)) ${source}`);
		if (there && !there.isDirectory()) throw copyError("ERR_FS_CP_DIR_TO_NON_DIR", target, `Cannot overwrite non-directory with directory: ${target}`);
		await mkdir(target, { recursive: true, mode: kind.mode & 0o777 });
		for (const name of await readdir(source)) await cp(joined(source, name), joined(target, name), options);
	} else {
		if (there && options.force === false) {
			if (options.errorOnExist) throw copyError("ERR_FS_CP_EEXIST", target, `Target already exists: cp returned EEXIST (${target} already exists) ${target}`);
			return;
		}
		const slash = target.lastIndexOf("/");
		if (slash > 0) await mkdir(target.slice(0, slash), { recursive: true });
		if (kind.isSymbolicLink()) {
			if (there) await rm(target, { force: true, recursive: true });
			await symlink(await readlink(source), target);
		} else await copyFile(source, target, options.mode ?? 0);
		if (options.preserveTimestamps) await utimes(target, kind.atime, kind.mtime);
	}
}

export class Dir {
	#entries;
	#closed = false;
	constructor(path, entries) {
		this.path = path;
		this.#entries = entries;
	}
	readSync() {
		if (this.#closed) throw coded(Error, "ERR_DIR_CLOSED", "Directory handle was closed");
		return this.#entries.shift() ?? null;
	}
	read(callback) {
		if (!callback) return Promise.resolve().then(() => this.readSync());
		queueMicrotask(() => callback(null, this.readSync()));
	}
	closeSync() {
		if (this.#closed) throw coded(Error, "ERR_DIR_CLOSED", "Directory handle was closed");
		this.#closed = true;
	}
	close(callback) {
		if (!callback) return Promise.resolve().then(() => this.closeSync());
		this.closeSync();
		queueMicrotask(() => callback(null));
	}
	async *[Symbol.asyncIterator]() {
		for (let entry = this.readSync(); entry !== null; entry = this.readSync()) yield entry;
		this.#closed = true;
	}
}

export async function opendir(path, options) {
	try {
		return new Dir(pathOf(path), await readdir(path, { ...options, withFileTypes: true }));
	} catch (error) {
		throw renamed(error);
	}
}

/** Makes an error name `opendir`, which the script called, instead of the operation behind it. */
export function renamed(error) {
	if (error.syscall === "scandir") {
		error.message = error.message.replace(", scandir ", ", opendir ");
		error.syscall = "opendir";
	}
	return error;
}

export async function* glob(patterns, options = {}) {
	const tests = [patterns].flat().map(globToRegExp);
	const cwd = options.cwd === undefined ? ops.process.cwd() : pathOf(options.cwd);
	for (const name of await readdir(cwd, { recursive: true })) if (tests.some((test) => test.test(name)) && !options.exclude?.(name)) yield name;
}

export function watch(path, options) {
	return watchIterator(pathOf(path), optionsOf(options));
}

const promises = { constants, access, appendFile, chmod, chown, copyFile, cp, glob, lchmod, lchown, link, lstat, lutimes, mkdir, mkdtemp, open, opendir, readFile, readdir, readlink, realpath, rename, rm, rmdir, stat, statfs, symlink, truncate, unlink, utimes, watch, writeFile };
export default promises;
