//! Files with secrets: only their owner can read them, they are replaced atomically, and one process writes at a time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use pinion_files::{Replace, beside};
use pinion_status::{Code, Failure};

/// Time for which a writer waits for another.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest file that is read, in bytes. The files of this crate are much smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The bytes of a file, and the stamp that changes when they are replaced.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: Stamp,
    mode: u32,
}

/// The identity and state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns the state of the file at `path`; `None` if it does not exist.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Content {
    /// Rejects a file that others than its owner can read or write.
    pub(crate) fn must_be_private(&self, path: &Path) -> Result<(), Failure> {
        if self.mode & 0o077 == 0 {
            return Ok(());
        }
        Err(Failure::new(
            Code::FailedPrecondition,
            format!(
                "{} contains secrets and other users can read or change it (mode {:03o}): run chmod 600 {}, and replace its tokens if \
                 other users may have read them",
                path.display(),
                self.mode & 0o777,
                path.display()
            ),
        ))
    }
}

/// Reads the file at `path`; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Content>, Failure> {
    let wrong = |error: io::Error| Failure::io(path.display(), &error);
    let file = match pinion_files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    let metadata = file.metadata().map_err(wrong)?;
    if metadata.size() > MAX_FILE_BYTES {
        let message = format!(
            "{} is not a regular file of pinion; move it away",
            path.display()
        );
        return Err(Failure::new(Code::FailedPrecondition, message));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    Ok(Some(Content {
        bytes,
        stamp: Stamp::of(&metadata),
        mode: metadata.mode(),
    }))
}

/// Reads the file at `path`, which only its owner may read; `None` if it does not exist.
pub(crate) fn read_private(path: &Path) -> Result<Option<Content>, Failure> {
    let content = read(path)?;
    if let Some(content) = &content {
        content.must_be_private(path)?;
    }
    Ok(content)
}

/// Atomically replaces the file at `path` by `bytes`. Only its owner can read it.
///
/// The caller must hold the [`Lock`] of `path`.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<Stamp, Failure> {
    let put = pinion_files::replace(path, bytes, Replace::PRIVATE)
        .and_then(|()| fs::metadata(path))
        .map(|metadata| Stamp::of(&metadata));
    put.map_err(|error| Failure::io(format_args!("{} cannot be written", path.display()), &error))
}

/// Creates a directory that only its owner can read, unless it exists.
pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    let made = pinion_files::create_private_directory(path);
    made.map_err(|error| Failure::io(format_args!("{} cannot be created", path.display()), &error))
}

/// The right to replace one file. The kernel releases it when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: File,
}

impl Lock {
    /// Waits until no other process replaces the file at `path`.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let place = beside(path, ".lock");
        make_directory(directory(path))?;
        match pinion_files::lock(&place, LOCK_TIMEOUT) {
            Ok(file) => Ok(Self { _held: file }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let message = format!(
                    "another process has been changing {} for {} s: try again, or end it",
                    path.display(),
                    LOCK_TIMEOUT.as_secs()
                );
                Err(Failure::new(Code::Unavailable, message))
            }
            Err(error) => Err(Failure::io(place.display(), &error)),
        }
    }
}

/// The failure for a file with invalid content.
pub(crate) fn damaged(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(
        Code::DataLoss,
        format!(
            "{} is damaged: {why}. Repair it or move it away",
            path.display()
        ),
    )
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_instead_of_a_file_neither_blocks_nor_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokens.json");
        for fifo in [&path, &beside(&path, ".lock")] {
            nix::unistd::mkfifo(fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        for failure in [
            read(&path).map(drop).unwrap_err(),
            replace(&path, b"x").map(drop).unwrap_err(),
            Lock::of(&path).map(drop).unwrap_err(),
        ] {
            let message = failure.message;
            assert!(
                message.contains("is a FIFO, not a regular file"),
                "{message}"
            );
        }
        assert!(!path.is_file());
    }
}
