//! ETags of files: the SHA-256 of all bytes, computed once for as long as the file stays the same.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use pinion_text::hex;
use sha2::{Digest, Sha256};

/// The most sums in memory; when there are more, all are dropped.
const REMEMBERED: usize = 4096;
/// A file that changed within this time may change again without a difference in its timestamps.
const SETTLED: Duration = Duration::from_secs(2);
const PIECE: usize = 128 * 1024;

/// The metadata that identifies a file and shows whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs() as i64;
        now.saturating_sub(self.changed.0) > SETTLED.as_secs() as i64
    }
}

/// The sums of the files that were requested.
#[derive(Debug, Default)]
pub(super) struct Etags {
    known: Mutex<HashMap<Identity, [u8; 32]>>,
}

impl Etags {
    fn known(&self) -> MutexGuard<'_, HashMap<Identity, [u8; 32]>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ETag of a file, in quotes. If it is not known, the whole file is read in pieces.
    pub(super) fn of(&self, file: &File, metadata: &Metadata) -> io::Result<String> {
        let identity = Identity::of(metadata);
        let known = self.known().get(&identity).copied();
        let sum = match known {
            Some(sum) => sum,
            None => {
                let sum = sum(file)?;
                if identity.is_settled() {
                    let mut known = self.known();
                    if known.len() >= REMEMBERED {
                        known.clear();
                    }
                    known.insert(identity, sum);
                }
                sum
            }
        };
        Ok(format!("\"{}\"", hex::encode(&sum)))
    }
}

fn sum(file: &File) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        match file.read_at(&mut buffer, offset) {
            Ok(0) => return Ok(digest.finalize().into()),
            Ok(count) => {
                digest.update(&buffer[..count]);
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reports whether `If-None-Match` names this ETag: in a list, weak or strong, or as `*`.
pub(super) fn matches(if_none_match: &str, etag: &str) -> bool {
    if_none_match.split(',').map(str::trim).any(|known| {
        let known = known.strip_prefix("W/").unwrap_or(known);
        known == "*" || known == etag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_the_star_match() {
        for matching in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", " \"b\" ,W/\"a\" ", "*"] {
            assert!(matches(matching, "\"a\""), "{matching}");
        }
        for other in ["", "a", "\"b\"", "\"aa\"", ",", "w/\"a\""] {
            assert!(!matches(other, "\"a\""), "{other}");
        }
    }

    #[test]
    fn a_file_that_just_changed_is_not_remembered() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        std::fs::write(&path, "a").unwrap();
        let file = File::open(&path).unwrap();
        let etags = Etags::default();
        let first = etags.of(&file, &file.metadata().unwrap()).unwrap();
        assert!(etags.known.lock().unwrap().is_empty());
        let mut old = Identity::of(&file.metadata().unwrap());
        old.changed.0 -= 10;
        assert!(old.is_settled());
        std::fs::write(&path, "b").unwrap();
        let second = etags.of(&file, &file.metadata().unwrap()).unwrap();
        assert_ne!(first, second);
    }
}
