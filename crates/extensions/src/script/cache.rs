//! A cache of compiled scripts on disk.
//!
//! The name of a file is a hash of the source, its path and pinion's version, so a change of any of them leads to
//! another file. The file begins with a checksum of the rest; a file that does not match is ignored. A cache that
//! cannot be written is not an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pinion_files::{Durability, Replace};
use pinion_text::hex;
use sha2::{Digest as _, Sha256};

use super::transform::Facts;

/// Changes whenever the meaning of the stored data changes.
const VERSION: &str = concat!("pinion ", env!("CARGO_PKG_VERSION"), " script 4");
const MAGIC: &[u8] = b"pinion-script-1\n";
const CHECKSUM: usize = 32;

/// The most bytes in the cache. Beyond them the oldest files are removed.
const CACHE_LIMIT: u64 = 64 << 20;

/// A directory of compiled scripts.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    directory: PathBuf,
}

/// A cache entry of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheEntry {
    pub(crate) facts: Facts,
    /// Bytecode of a module, or the text of any other file.
    pub(crate) code: Vec<u8>,
}

impl Cache {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the name of the entry for `source`.
    pub(crate) fn key(path: &Path, source: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(VERSION);
        hash.update([0]);
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(source);
        hex::encode(&hash.finalize())
    }

    /// Returns the entry `key` if it is complete.
    pub(crate) fn get(&self, key: &str) -> Option<CacheEntry> {
        let bytes = pinion_files::read(&self.entry_path(key), CACHE_LIMIT).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (checksum, rest) = rest.split_at_checked(CHECKSUM)?;
        if Sha256::digest(rest).as_slice() != checksum {
            return None;
        }
        let (length, rest) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (facts, code) = rest.split_at_checked(length)?;
        Some(CacheEntry {
            facts: serde_json::from_slice(facts).ok()?,
            code: code.to_vec(),
        })
    }

    /// Stores `code` as `key`.
    pub(crate) fn put(&self, key: &str, facts: &Facts, code: &[u8]) {
        let Ok(facts) = serde_json::to_vec(facts) else {
            return;
        };
        let Ok(length) = u32::try_from(facts.len()) else {
            return;
        };
        let mut rest = Vec::with_capacity(4 + facts.len() + code.len());
        rest.extend_from_slice(&length.to_le_bytes());
        rest.extend_from_slice(&facts);
        rest.extend_from_slice(code);
        // The cache only saves time: a failed write is ignored.
        let _ = self.write(key, &rest);
    }

    fn write(&self, key: &str, rest: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let content = [MAGIC, &Sha256::digest(rest), rest].concat();
        // A file that was damaged by a crash of the machine does not match its checksum.
        let options = Replace {
            durability: Durability::Process,
            ..Replace::PRIVATE
        };
        pinion_files::replace(&self.entry_path(key), &content, options)
    }

    fn entry_path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.script"))
    }

    /// Removes the oldest files until the rest fits [`CACHE_LIMIT`].
    pub(crate) fn trim(&self) {
        self.trim_to(CACHE_LIMIT);
    }

    fn trim_to(&self, most: u64) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let data = entry.metadata().ok()?;
                Some((data.modified().ok()?, data.len(), entry.path()))
            })
            .collect();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        files.sort();
        for (_, size, path) in files {
            if total <= most {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::transform::SourceKind;

    fn facts() -> Facts {
        Facts {
            kind: SourceKind::Module,
            imports: vec![("node:fs".into(), vec!["readFileSync".into()])],
            uses_require: false,
            exports: vec!["default".to_owned()],
            stars: Vec::new(),
            requests: Vec::new(),
            awaits: false,
        }
    }

    #[test]
    fn stored_entries_are_returned_unless_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("scripts"));
        let key = Cache::key(Path::new("/a.ts"), b"source");
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &facts(), b"code");
        let entry = cache.get(&key).unwrap();
        assert_eq!(
            (entry.facts, entry.code.as_slice()),
            (facts(), b"code".as_slice())
        );

        let file = cache.entry_path(&key);
        let whole = fs::read(&file).unwrap();
        for damage in [0, MAGIC.len() + 3, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[damage] ^= 1;
            fs::write(&file, bytes).unwrap();
            assert_eq!(cache.get(&key), None, "byte {damage}");
        }
        fs::write(&file, &whole[..whole.len() - 2]).unwrap();
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn only_a_regular_file_is_replaced() {
        use std::os::unix::fs::FileTypeExt;

        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned());
        let fifo = cache.entry_path("key");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        cache.put("key", &facts(), b"code");
        assert!(fs::symlink_metadata(fifo).unwrap().file_type().is_fifo());
        assert_eq!(cache.get("key"), None);
    }

    #[test]
    fn another_path_or_source_is_another_key() {
        let keys = [
            Cache::key(Path::new("/a.ts"), b"source"),
            Cache::key(Path::new("/b.ts"), b"source"),
            Cache::key(Path::new("/a.ts"), b"sourcf"),
        ];
        assert_ne!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
    }

    #[test]
    fn a_full_cache_removes_its_oldest_files() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned());
        for key in ["old", "new"] {
            cache.put(key, &facts(), &[0; 1000]);
            let age = if key == "old" { 1_000 } else { 2_000 };
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age);
            fs::File::options()
                .write(true)
                .open(cache.entry_path(key))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        cache.trim_to(1500);
        assert_eq!(cache.get("old"), None);
        assert!(cache.get("new").is_some());
    }
}
