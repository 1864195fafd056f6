//! Failed system calls in the form that Node reports them: `ENOENT: no such file or directory, open '<path>'`, with the
//! members `errno`, `code`, `syscall`, `path` and `dest`.

use std::io;

use nix::errno::Errno;
use rquickjs::{Ctx, Exception};

/// A system call that failed, with the files that it was about.
#[derive(Debug)]
pub(crate) struct SyscallError {
    error: io::Error,
    syscall: String,
    path: Option<String>,
    dest: Option<String>,
}

/// The result of an operation, or the call that failed.
pub(crate) type Outcome<T> = Result<T, SyscallError>;

impl SyscallError {
    pub(crate) fn new(error: impl Into<io::Error>, syscall: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            syscall: syscall.into(),
            path: None,
            dest: None,
        }
    }

    /// Adds the path of the file.
    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds the path of the second file.
    pub(crate) fn to(mut self, dest: impl Into<String>) -> Self {
        self.dest = Some(dest.into());
        self
    }

    fn number(&self) -> i32 {
        match self.error.raw_os_error() {
            Some(number) => number,
            None => match self.error.kind() {
                io::ErrorKind::NotFound => libc::ENOENT,
                io::ErrorKind::PermissionDenied => libc::EACCES,
                io::ErrorKind::AlreadyExists => libc::EEXIST,
                io::ErrorKind::TimedOut => libc::ETIMEDOUT,
                io::ErrorKind::FileTooLarge => libc::EFBIG,
                io::ErrorKind::InvalidInput => libc::EINVAL,
                _ => libc::EIO,
            },
        }
    }

    fn message(&self) -> String {
        let number = self.number();
        // Errors that pinion creates carry their own message.
        let message = match self.error.get_ref() {
            Some(own) if self.error.raw_os_error().is_none() => own.to_string(),
            _ => describe(number),
        };
        let mut message = format!("{}: {message}, {}", code(number), self.syscall);
        if let Some(path) = &self.path {
            message.push_str(&format!(" '{path}'"));
        }
        if let Some(dest) = &self.dest {
            message.push_str(&format!(" -> '{dest}'"));
        }
        message
    }

    /// Throws the error in `ctx`.
    pub(crate) fn throw(self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self.object(ctx) {
            Ok(exception) => ctx.throw(exception.into_value()),
            Err(error) => error,
        }
    }

    fn object<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Exception<'js>> {
        let exception = Exception::from_message(ctx.clone(), &self.message())?;
        let number = self.number();
        exception.set("errno", -number)?;
        exception.set("code", code(number))?;
        exception.set("syscall", self.syscall.as_str())?;
        if let Some(path) = &self.path {
            exception.set("path", path.as_str())?;
        }
        if let Some(dest) = &self.dest {
            exception.set("dest", dest.as_str())?;
        }
        Ok(exception)
    }
}

/// Returns the symbolic name of an error number.
pub(crate) fn code(number: i32) -> String {
    match Errno::from_raw(number) {
        Errno::UnknownErrno => format!("Unknown system error {number}"),
        errno => format!("{errno:?}"),
    }
}

/// Returns Node's message for an error number; it differs from that of the C library.
pub(crate) fn describe(number: i32) -> String {
    let message = match number {
        libc::E2BIG => "argument list too long",
        libc::EACCES => "permission denied",
        libc::EADDRINUSE => "address already in use",
        libc::EADDRNOTAVAIL => "address not available",
        libc::EAGAIN => "resource temporarily unavailable",
        libc::EBADF => "bad file descriptor",
        libc::EBUSY => "resource busy or locked",
        libc::ECANCELED => "operation canceled",
        libc::ECONNABORTED => "software caused connection abort",
        libc::ECONNREFUSED => "connection refused",
        libc::ECONNRESET => "connection reset by peer",
        libc::EEXIST => "file already exists",
        libc::EFAULT => "bad address in system call argument",
        libc::EFBIG => "file too large",
        libc::EHOSTUNREACH => "host is unreachable",
        libc::EINTR => "interrupted system call",
        libc::EINVAL => "invalid argument",
        libc::EIO => "i/o error",
        libc::EISDIR => "illegal operation on a directory",
        libc::ELOOP => "too many symbolic links encountered",
        libc::EMFILE => "too many open files",
        libc::EMLINK => "too many links",
        libc::ENAMETOOLONG => "name too long",
        libc::ENETUNREACH => "network is unreachable",
        libc::ENFILE => "file table overflow",
        libc::ENODEV => "no such device",
        libc::ENOENT => "no such file or directory",
        libc::ENOMEM => "not enough memory",
        libc::ENOSPC => "no space left on device",
        libc::ENOSYS => "function not implemented",
        libc::ENOTCONN => "socket is not connected",
        libc::ENOTDIR => "not a directory",
        libc::ENOTEMPTY => "directory not empty",
        libc::ENOTSOCK => "socket operation on non-socket",
        libc::ENOTSUP => "operation not supported on socket",
        libc::ENXIO => "no such device or address",
        libc::EPERM => "operation not permitted",
        libc::EPIPE => "broken pipe",
        libc::EROFS => "read-only file system",
        libc::ESPIPE => "invalid seek",
        libc::ESRCH => "no such process",
        libc::ETIMEDOUT => "connection timed out",
        libc::ETXTBSY => "text file is busy",
        libc::EXDEV => "cross-device link not permitted",
        _ => return io::Error::from_raw_os_error(number).to_string(),
    };
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_code_call_and_both_paths() {
        let syscall_error = SyscallError::new(io::Error::from_raw_os_error(libc::ENOENT), "rename")
            .at("/a")
            .to("/b");
        assert_eq!(
            syscall_error.message(),
            "ENOENT: no such file or directory, rename '/a' -> '/b'"
        );
    }
}
