//! The lock that permits one writer per session file.
//!
//! It is `flock` on the session file itself: it leaves no file behind, the kernel releases it when the process ends,
//! and programs that do not lock (pi) are not affected.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::SessionError;

/// The outcome of an attempt to lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LockOutcome {
    /// This process is the writer.
    Held,
    /// The file system has no locks; the caller continues without.
    Unsupported,
    /// The path now leads to another file; the caller must open it again.
    Moved,
}

/// Tries to lock `file`, which was opened at `path`.
pub(crate) fn acquire(file: &File, path: &Path) -> Result<LockOutcome, SessionError> {
    match pinion_files::lock_file(file, Duration::ZERO) {
        Ok(()) if pinion_files::is_at(file, path).unwrap_or(true) => Ok(LockOutcome::Held),
        Ok(()) => {
            drop(file.unlock());
            Ok(LockOutcome::Moved)
        }
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            let pid = file
                .metadata()
                .ok()
                .and_then(|metadata| holder(metadata.ino()));
            Err(SessionError::Locked {
                path: path.to_owned(),
                pid,
            })
        }
        Err(_) => Ok(LockOutcome::Unsupported),
    }
}

/// Finds the process that has a lock on this inode in `/proc/locks`.
fn holder(inode: u64) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let pid = fields.nth(2)?.parse().ok().filter(|&pid| pid > 0)?;
        let file = fields.next()?;
        (file.rsplit(':').next()?.parse() == Ok(inode)).then_some(pid)
    })
}
