//! What scripts may do to the machine: the native functions behind `pinion:ops`, one file per group.
//!
//! A group is an object: `ops.fs.readFile(…)`. Synchronous operations are plain functions;
//! asynchronous ones give a promise and run on the thread of the engine, with blocking work moved
//! off it. An operation that may wait for long ends when `Shared::closed` is cancelled.

mod api;
mod buffer;
mod bytes;
mod child;
mod core;
mod crypto;
mod display;
mod fault;
mod fs;
mod http;
mod intl;
mod llm;
mod modules;
mod net;
mod os;
mod process;
mod text;
mod timers;
mod tools;
mod url;
mod zlib;

pub(crate) use process::environment;
pub use process::environment_changes;

use std::io;

use rquickjs::{Ctx, Error, Exception, Object, Result};

use crate::script::Shared;
pub(crate) use crate::script::raw::bytes_of;

/// Every operation, for one generation.
pub(crate) fn all<'js>(ctx: &Ctx<'js>, host: &Shared) -> Result<Object<'js>> {
    let ops = Object::new(ctx.clone())?;
    api::install(ctx, &ops, host)?;
    core::install(ctx, &ops, host)?;
    modules::install(ctx, &ops, host)?;
    timers::install(ctx, &ops, host)?;
    url::install(ctx, &ops, host)?;
    text::install(ctx, &ops, host)?;
    intl::install(ctx, &ops, host)?;
    http::install(ctx, &ops, host)?;
    display::install(ctx, &ops, host)?;
    llm::install(ctx, &ops, host)?;
    tools::install(ctx, &ops, host)?;
    buffer::install(ctx, &ops)?;
    child::install(ctx, &ops, host)?;
    crypto::install(ctx, &ops)?;
    fs::install(ctx, &ops, host)?;
    net::install(ctx, &ops, host)?;
    os::install(ctx, &ops)?;
    process::install(ctx, &ops)?;
    zlib::install(ctx, &ops)?;
    Ok(ops)
}

/// Lets go of everything that belongs to the engine of this thread; for before it ends.
pub(crate) fn forget() {
    api::forget();
}

/// A new group of operations called `name`.
pub(crate) fn group<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, name: &str) -> Result<Object<'js>> {
    let group = Object::new(ctx.clone())?;
    ops.set(name, group.clone())?;
    Ok(group)
}

/// Throws what the operating system refused, with the members Node's errors have.
pub(crate) fn throw_os(
    ctx: &Ctx<'_>,
    error: &io::Error,
    syscall: &str,
    path: Option<&str>,
) -> Error {
    let (code, words) = os_words(error);
    let message = match path {
        Some(path) => format!("{code}: {words}, {syscall} '{path}'"),
        None => format!("{code}: {words}, {syscall}"),
    };
    let made = Exception::from_message(ctx.clone(), &message).and_then(|exception| {
        let members = exception.as_object();
        members.set("code", code)?;
        members.set("errno", -error.raw_os_error().unwrap_or(0))?;
        members.set("syscall", syscall)?;
        if let Some(path) = path {
            members.set("path", path)?;
        }
        Ok(exception)
    });
    match made {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

/// The name of an operating system error, and what it means.
pub(crate) fn os_words(error: &io::Error) -> (&'static str, String) {
    let known = error.raw_os_error().and_then(|number| {
        OS_ERRORS
            .iter()
            .find(|(known, ..)| *known == number)
            .map(|(_, code, words)| (*code, *words))
    });
    match known {
        Some((code, words)) => (code, words.to_owned()),
        None => match error.kind() {
            io::ErrorKind::NotFound => ("ENOENT", "no such file or directory".to_owned()),
            io::ErrorKind::PermissionDenied => ("EACCES", "permission denied".to_owned()),
            io::ErrorKind::AlreadyExists => ("EEXIST", "file already exists".to_owned()),
            io::ErrorKind::TimedOut => ("ETIMEDOUT", "connection timed out".to_owned()),
            _ => ("EIO", error.to_string()),
        },
    }
}

const OS_ERRORS: &[(i32, &str, &str)] = &[
    (libc::EPERM, "EPERM", "operation not permitted"),
    (libc::ENOENT, "ENOENT", "no such file or directory"),
    (libc::ESRCH, "ESRCH", "no such process"),
    (libc::EINTR, "EINTR", "interrupted system call"),
    (libc::EIO, "EIO", "i/o error"),
    (libc::E2BIG, "E2BIG", "argument list too long"),
    (libc::EBADF, "EBADF", "bad file descriptor"),
    (libc::EAGAIN, "EAGAIN", "resource temporarily unavailable"),
    (libc::ENOMEM, "ENOMEM", "not enough memory"),
    (libc::EACCES, "EACCES", "permission denied"),
    (libc::EBUSY, "EBUSY", "resource busy or locked"),
    (libc::EEXIST, "EEXIST", "file already exists"),
    (libc::EXDEV, "EXDEV", "cross-device link not permitted"),
    (libc::ENOTDIR, "ENOTDIR", "not a directory"),
    (libc::EISDIR, "EISDIR", "illegal operation on a directory"),
    (libc::EINVAL, "EINVAL", "invalid argument"),
    (libc::ENFILE, "ENFILE", "file table overflow"),
    (libc::EMFILE, "EMFILE", "too many open files"),
    (libc::ETXTBSY, "ETXTBSY", "text file is busy"),
    (libc::EFBIG, "EFBIG", "file too large"),
    (libc::ENOSPC, "ENOSPC", "no space left on device"),
    (libc::ESPIPE, "ESPIPE", "invalid seek"),
    (libc::EROFS, "EROFS", "read-only file system"),
    (libc::EMLINK, "EMLINK", "too many links"),
    (libc::EPIPE, "EPIPE", "broken pipe"),
    (libc::ENAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (libc::ENOSYS, "ENOSYS", "function not implemented"),
    (libc::ENOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (libc::ELOOP, "ELOOP", "too many symbolic links encountered"),
    (
        libc::ENOTSUP,
        "ENOTSUP",
        "operation not supported on socket",
    ),
    (libc::EADDRINUSE, "EADDRINUSE", "address already in use"),
    (
        libc::EADDRNOTAVAIL,
        "EADDRNOTAVAIL",
        "address not available",
    ),
    (
        libc::ECONNABORTED,
        "ECONNABORTED",
        "software caused connection abort",
    ),
    (libc::ECONNREFUSED, "ECONNREFUSED", "connection refused"),
    (libc::ECONNRESET, "ECONNRESET", "connection reset by peer"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH", "host is unreachable"),
    (libc::ENETUNREACH, "ENETUNREACH", "network is unreachable"),
    (libc::ETIMEDOUT, "ETIMEDOUT", "connection timed out"),
];
