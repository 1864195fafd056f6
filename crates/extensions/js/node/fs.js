// node:fs: re-exports everything by name, so that the loader can import from the defining modules directly.

import fs from "pinion:node/internal_fs_object";

export { default } from "pinion:node/internal_fs_object";
export { BigIntStats, Dirent, Stats, constants } from "pinion:node/internal_fs";
export { ReadStream, WriteStream, ReadStream as FileReadStream, WriteStream as FileWriteStream } from "pinion:node/internal_fs_streams";
export { FSWatcher } from "pinion:node/internal_fs_watch";
export { Dir, default as promises } from "pinion:node/fs_promises";
export {
	accessSync, appendFileSync, chmodSync, chownSync, closeSync, copyFileSync, cpSync, existsSync, fchmodSync,
	fchownSync, fdatasyncSync, fstatSync, fsyncSync, ftruncateSync, futimesSync, globSync, lchmodSync, lchownSync,
	linkSync, lstatSync, lutimesSync, mkdirSync, mkdtempSync, openSync, opendirSync, readFileSync, readSync,
	readdirSync, readlinkSync, readvSync, realpathSync, renameSync, rmSync, rmdirSync, statSync, statfsSync,
	symlinkSync, truncateSync, unlinkSync, utimesSync, writeFileSync, writeSync, writevSync,
} from "pinion:node/internal_fs_sync";
export const {
	F_OK, R_OK, W_OK, X_OK, access, appendFile, chmod, chown, close, copyFile, cp, createReadStream, createWriteStream,
	exists, fchmod, fchown, fdatasync, fstat, fsync, ftruncate, futimes, glob, lchmod, lchown, link, lstat, lutimes,
	mkdir, mkdtemp, open, opendir, read, readFile, readdir, readlink, readv, realpath, rename, rm, rmdir, stat, statfs,
	symlink, truncate, unlink, unwatchFile, utimes, watch, watchFile, write, writeFile, writev,
} = fs;
