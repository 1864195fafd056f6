//! Scripts as the engine last compiled them, kept on disk.
//!
//! A file is named after the source, its path and our version, so a change of any of them is simply
//! another file. It begins with a checksum of the rest: what does not match is ignored. A cache that
//! cannot be written is no error.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pinion_files::Replace;
use sha2::{Digest as _, Sha256};

use super::transform::Facts;

/// Changes whenever what is kept changes its meaning.
const VERSION: &str = concat!("pinion ", env!("CARGO_PKG_VERSION"), " script 4");
const MAGIC: &[u8] = b"pinion-script-1\n";
const CHECKSUM: usize = 32;

/// How much is kept before the oldest goes.
const MOST_BYTES: u64 = 64 << 20;

/// A directory of compiled scripts.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    directory: PathBuf,
}

/// What was kept of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) facts: Facts,
    /// Bytecode of a module, the text of anything else.
    pub(crate) code: Vec<u8>,
}

impl Cache {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The name under which what becomes of `source` is kept.
    pub(crate) fn key(path: &Path, source: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(VERSION);
        hash.update([0]);
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(source);
        hex(&hash.finalize())
    }

    /// What was kept as `key`, if it is whole.
    pub(crate) fn get(&self, key: &str) -> Option<Kept> {
        let bytes = pinion_files::read(&self.place(key), MOST_BYTES).ok()?;
        let rest = bytes.strip_prefix(MAGIC)?;
        let (checksum, rest) = rest.split_at_checked(CHECKSUM)?;
        if Sha256::digest(rest).as_slice() != checksum {
            return None;
        }
        let (length, rest) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (facts, code) = rest.split_at_checked(length)?;
        Some(Kept {
            facts: serde_json::from_slice(facts).ok()?,
            code: code.to_vec(),
        })
    }

    /// Keeps `code` as `key`.
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
        // Only ever a speed-up: whoever cannot write goes without.
        let _ = self.write(key, &rest);
    }

    fn write(&self, key: &str, rest: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let content = [MAGIC, &Sha256::digest(rest), rest].concat();
        // A file that a crash of the machine damages does not match its checksum.
        let options = Replace {
            sync: false,
            ..Replace::PRIVATE
        };
        pinion_files::replace(&self.place(key), &content, options)
    }

    fn place(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.script"))
    }

    /// Removes the oldest files until what remains is within bounds.
    pub(crate) fn trim(&self) {
        self.trim_to(MOST_BYTES);
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::transform::Kind;

    fn facts() -> Facts {
        Facts {
            kind: Kind::Module,
            imports: vec![("node:fs".into(), vec!["readFileSync".into()])],
            uses_require: false,
            exports: vec!["default".to_owned()],
            stars: Vec::new(),
            requests: Vec::new(),
            awaits: false,
        }
    }

    #[test]
    fn what_is_kept_comes_back_unless_it_was_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("scripts"));
        let key = Cache::key(Path::new("/a.ts"), b"source");
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &facts(), b"code");
        let kept = cache.get(&key).unwrap();
        assert_eq!(
            (kept.facts, kept.code.as_slice()),
            (facts(), b"code".as_slice())
        );

        let file = cache.place(&key);
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
        let fifo = cache.place("key");
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
    fn a_full_cache_loses_its_oldest() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned());
        for key in ["old", "new"] {
            cache.put(key, &facts(), &[0; 1000]);
            let age = if key == "old" { 1_000 } else { 2_000 };
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age);
            fs::File::options()
                .write(true)
                .open(cache.place(key))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        cache.trim_to(1500);
        assert_eq!(cache.get("old"), None);
        assert!(cache.get("new").is_some());
    }
}
