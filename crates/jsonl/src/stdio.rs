//! Exclusive ownership of standard output.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// Moves descriptor 1 to a private descriptor and points 1 at standard error.
///
/// Afterwards no library, child process or extension can write into the protocol: their output goes
/// to standard error. Call it once, before anything is spawned.
pub fn claim_stdout() -> io::Result<File> {
    // SAFETY: plain descriptor calls on this process's own descriptors; the result of
    // F_DUPFD_CLOEXEC is a fresh descriptor with no other owner.
    unsafe {
        let private = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if private < 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::dup2(2, 1) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(private))
    }
}
