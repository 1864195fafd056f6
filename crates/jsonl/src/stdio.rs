//! Exclusive ownership of standard output, and the wait for standard input.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::time::Duration;

/// Longest wait for the first byte of standard input where a program can do without it.
pub const FIRST_BYTE: Duration = Duration::from_millis(500);

/// Reports whether standard input has data, or has ended, within `patience`.
pub fn is_readable(patience: Duration) -> bool {
    let mut poll = libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd, which lives across the call.
    let ready = unsafe { libc::poll(&mut poll, 1, patience.as_millis() as libc::c_int) };
    ready > 0
}

/// Moves descriptor 1 to a private descriptor and points 1 at standard error.
///
/// Afterwards no library, child process or extension can write into the protocol: their output goes
/// to standard error. Call it once, before anything is spawned.
///
/// Dropping the file does not close standard output: a second descriptor stays open until the process ends. A client that
/// reads the end of the output then finds the reason on standard error and the exit code without waiting.
pub fn claim_stdout() -> io::Result<File> {
    // SAFETY: plain descriptor calls on this process's own descriptors; the result of
    // F_DUPFD_CLOEXEC is a fresh descriptor with no other owner.
    unsafe {
        let private = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if private < 0 {
            return Err(io::Error::last_os_error());
        }
        // Without a free descriptor the output closes with the file, which is early but not wrong.
        libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if libc::dup2(2, 1) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(private))
    }
}
