//! Small JSON files of the hub, written whole or not at all.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use pinion_files::Replace;
use serde::Serialize;

/// Replaces a file with `content` as indented JSON that only its owner may read (mode 0600).
pub fn replace(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_with_mode(path, content, 0o600)
}

/// Replaces a file with `content` as indented JSON that every user may read (mode 0644).
pub(crate) fn replace_for_all(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_with_mode(path, content, 0o644)
}

fn replace_with_mode(path: &Path, content: &impl Serialize, mode: u32) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    let options = Replace {
        mode,
        force_mode: true,
        ..Replace::PRIVATE
    };
    pinion_files::replace(path, &text, options)
}

/// The largest file that is read, in bytes.
const LIMIT: u64 = 64 << 20;

/// Reads a file. `None` if it does not exist.
pub fn read_if_present(path: &Path) -> io::Result<Option<Vec<u8>>> {
    pinion_files::read_if_present(path, LIMIT)
}

/// Time to wait for another process that holds a lock.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Locks the file `path` until the result is dropped. Fails if another process holds it for ten seconds.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    pinion_files::lock(path, LOCK_WAIT).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            let message = format!("{error}. Try again when that process has ended, or stop it");
            io::Error::new(error.kind(), message)
        }
        _ => error,
    })
}
