//! Files, for `node:fs`. Every operation exists twice: synchronous, and as a promise under `<name>Async`, which runs on
//! a thread that may block.

mod files;
mod meta;
mod tree;
mod watch;

use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Object};

use super::bytes::Bytes;
use super::syscall_error::{Outcome, SyscallError};
use crate::script::Host;

pub(crate) use files::{duplicate, open_file};

/// Runs `work` on a thread that may block.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(SyscallError::new(std::io::Error::other(error), "thread")),
    }
}

macro_rules! file_op {
    ($group:ident, $name:literal, $function:path, ($($argument:ident : $type:ty),*)) => {
        $group.set($name, Func::from(|ctx: Ctx<'js>, $($argument: $type),*| {
            $function($($argument),*).map_err(|syscall_error| syscall_error.throw(&ctx))
        }))?;
        $group.set(concat!($name, "Async"), Func::from(Async(|ctx: Ctx<'js>, $($argument: $type),*| async move {
            let outcome = run_blocking(move || $function($($argument),*)).await;
            outcome.map_err(|syscall_error| syscall_error.throw(&ctx))
        })))?;
    };
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> rquickjs::Result<()> {
    let fs = super::group(ctx, ops, "fs")?;
    file_op!(fs, "open", files::open, (path: String, flags: i32, mode: u32));
    file_op!(fs, "close", files::close, (fd: i32));
    file_op!(fs, "read", files::read, (fd: i32, length: usize, position: f64));
    file_op!(fs, "write", files::write, (fd: i32, bytes: Bytes, position: f64));
    file_op!(fs, "fsync", files::fsync, (fd: i32));
    file_op!(fs, "fdatasync", files::fdatasync, (fd: i32));
    file_op!(fs, "ftruncate", files::ftruncate, (fd: i32, length: f64));
    file_op!(fs, "readFile", files::read_file, (path: String, flags: i32));
    file_op!(fs, "readAll", files::read_all, (fd: i32));
    file_op!(fs, "writeFile", files::write_file, (path: String, bytes: Bytes, flags: i32, mode: u32));
    file_op!(fs, "truncate", files::truncate, (path: String, length: f64));

    file_op!(fs, "stat", meta::stat, (path: String));
    file_op!(fs, "lstat", meta::lstat, (path: String));
    file_op!(fs, "fstat", meta::fstat, (fd: i32));
    file_op!(fs, "statfs", meta::statfs, (path: String));
    file_op!(fs, "access", meta::access, (path: String, mode: i32));
    file_op!(fs, "chmod", meta::chmod, (path: String, mode: u32));
    file_op!(fs, "fchmod", meta::fchmod, (fd: i32, mode: u32));
    file_op!(fs, "chown", meta::chown, (path: String, uid: f64, gid: f64));
    file_op!(fs, "lchown", meta::lchown, (path: String, uid: f64, gid: f64));
    file_op!(fs, "fchown", meta::fchown, (fd: i32, uid: f64, gid: f64));
    file_op!(fs, "utimes", meta::utimes, (path: String, atime: f64, mtime: f64));
    file_op!(fs, "lutimes", meta::lutimes, (path: String, atime: f64, mtime: f64));
    file_op!(fs, "futimes", meta::futimes, (fd: i32, atime: f64, mtime: f64));

    file_op!(fs, "mkdir", tree::mkdir, (path: String, recursive: bool, mode: u32));
    file_op!(fs, "mkdtemp", tree::mkdtemp, (prefix: String));
    file_op!(fs, "readdir", tree::readdir, (path: String));
    file_op!(fs, "rmdir", tree::rmdir, (path: String));
    file_op!(fs, "rm", tree::rm, (path: String, recursive: bool, force: bool));
    file_op!(fs, "unlink", tree::unlink, (path: String));
    file_op!(fs, "rename", tree::rename, (from: String, to: String));
    file_op!(fs, "copyFile", tree::copy_file, (from: String, to: String, mode: i32));
    file_op!(fs, "link", tree::link, (from: String, to: String));
    file_op!(fs, "symlink", tree::symlink, (target: String, path: String));
    file_op!(fs, "readlink", tree::readlink, (path: String));
    file_op!(fs, "realpath", tree::realpath, (path: String));
    watch::install(&fs, host)
}
