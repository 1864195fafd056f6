//! Operating system errors in Node's form, because models and clients expect it.

use std::io;
use std::path::Path;

use crate::ToolError;

/// An error of the system about a file, as Node prints it: `CODE: words, syscall 'path'`.
///
/// A file that `pinion-files` refuses has no such code; its error follows the path, as in `/x is a
/// FIFO`.
pub fn node_error_text(error: &io::Error, syscall: &str, path: &Path) -> String {
    match known(error) {
        None if error.get_ref().is_some() => format!("{} {error}", path.display()),
        _ => format!("{} '{}'", text(error, syscall), path.display()),
    }
}

pub(crate) fn at(error: &io::Error, syscall: &str, path: &Path) -> ToolError {
    ToolError(node_error_text(error, syscall, path))
}

/// `CODE: words, syscall`.
pub(crate) fn plain(error: &io::Error, syscall: &str) -> ToolError {
    ToolError(text(error, syscall))
}

fn text(error: &io::Error, syscall: &str) -> String {
    match known(error) {
        Some((code, words)) => format!("{code}: {words}, {syscall}"),
        None => format!("{error}, {syscall}"),
    }
}

fn known(error: &io::Error) -> Option<(&'static str, &'static str)> {
    match error.kind() {
        io::ErrorKind::IsADirectory => describe(libc::EISDIR),
        _ => error.raw_os_error().and_then(describe),
    }
}

/// The symbolic name of an error, such as `ENOENT`.
pub(crate) fn code(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => describe(number).map_or_else(
            || format!("{:?}", nix::Error::from_raw(number)),
            |(code, _)| code.into(),
        ),
        None => error.to_string(),
    }
}

fn describe(number: i32) -> Option<(&'static str, &'static str)> {
    Some(match number {
        libc::ENOENT => ("ENOENT", "no such file or directory"),
        libc::EACCES => ("EACCES", "permission denied"),
        libc::EISDIR => ("EISDIR", "illegal operation on a directory"),
        libc::ENOTDIR => ("ENOTDIR", "not a directory"),
        libc::EEXIST => ("EEXIST", "file already exists"),
        libc::EPERM => ("EPERM", "operation not permitted"),
        libc::EROFS => ("EROFS", "read-only file system"),
        libc::ENOSPC => ("ENOSPC", "no space left on device"),
        libc::ELOOP => ("ELOOP", "too many symbolic links encountered"),
        libc::ENAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        libc::EMFILE => ("EMFILE", "too many open files"),
        libc::EBUSY => ("EBUSY", "resource busy or locked"),
        libc::ETXTBSY => ("ETXTBSY", "text file is busy"),
        libc::E2BIG => ("E2BIG", "argument list too long"),
        libc::EINVAL => ("EINVAL", "invalid argument"),
        libc::EIO => ("EIO", "i/o error"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_like_nodes() {
        let fault = |number| io::Error::from_raw_os_error(number);
        assert_eq!(
            at(&fault(libc::ENOENT), "access", Path::new("/w/a")).0,
            "ENOENT: no such file or directory, access '/w/a'"
        );
        assert_eq!(
            plain(&fault(libc::EISDIR), "read").0,
            "EISDIR: illegal operation on a directory, read"
        );
        assert_eq!(code(&fault(libc::EACCES)), "EACCES");
        assert_eq!(code(&fault(libc::EPIPE)), "EPIPE");
    }
}
