//! One writer per session file.
//!
//! The lock is `flock` on the session file itself: nothing is left behind, the kernel releases it
//! when we die, and programs that do not lock (pi) are not disturbed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::SessionError;

/// What became of an attempt to lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// We are the writer.
    Held,
    /// The file system has no locks; we go on without.
    Unsupported,
    /// The path now names another file; open it again.
    Moved,
}

/// Tries to become the one writer of `file`, which was opened at `path`.
pub(crate) fn acquire(file: &File, path: &Path) -> Result<Lock, SessionError> {
    match file.try_lock() {
        Ok(()) if same_file(file, path).unwrap_or(true) => Ok(Lock::Held),
        Ok(()) => {
            drop(file.unlock());
            Ok(Lock::Moved)
        }
        Err(TryLockError::WouldBlock) => {
            let pid = file
                .metadata()
                .ok()
                .and_then(|metadata| holder(metadata.ino()));
            Err(SessionError::Locked {
                path: path.to_owned(),
                pid,
            })
        }
        Err(TryLockError::Error(_)) => Ok(Lock::Unsupported),
    }
}

pub(crate) fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    let (ours, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

/// The process that holds a lock on this inode, where `/proc/locks` tells.
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
