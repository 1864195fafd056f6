//! Waiting for a clip's directory to change while its author works on it.
//!
//! What to do then, install it anew for one, is left to others.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the directory is looked at. It is at rest when it looks the same twice.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Looked at no further: history, and what installing makes anew.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];
/// More files than this are not looked at; no package has as many.
const MAX_ENTRIES: usize = 50_000;

/// Looks at a directory, or at an archive, from time to time.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// How it looked when it was last told about.
    seen: Option<u64>,
}

impl Watch {
    /// Watches `path`, beginning with how it looks now. Blocks.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let seen = fingerprint(&path).ok();
        Self { path, seen }
    }

    /// Waits until something has changed and is at rest again. A directory that cannot be read is waited for.
    pub async fn changed(&mut self) {
        let mut before = self.seen;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let path = self.path.clone();
            let look = tokio::task::spawn_blocking(move || fingerprint(&path).ok());
            let now = look.await.ok().flatten();
            if now.is_some() && now == before && now != self.seen {
                self.seen = now;
                return;
            }
            before = now;
        }
    }
}

/// A number that is another when a file was added, removed, renamed or written.
fn fingerprint(path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut pending = vec![path.to_owned()];
    let mut entries = 0;
    while let Some(place) = pending.pop() {
        let metadata = fs::symlink_metadata(&place)?;
        place.hash(&mut hasher);
        (metadata.mode(), metadata.ino()).hash(&mut hasher);
        if !metadata.is_dir() {
            let times = (
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime_nsec(),
            );
            (metadata.len(), times).hash(&mut hasher);
            continue;
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&place)? {
            let entry = entry?;
            if !LEFT_OUT
                .iter()
                .any(|left_out| entry.file_name() == *left_out)
            {
                names.push(entry.path());
            }
        }
        entries += names.len();
        if entries > MAX_ENTRIES {
            break;
        }
        names.sort_unstable();
        pending.extend(names);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_but_of_what_is_left_out_shows() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("src")).unwrap();
        fs::create_dir_all(path("node_modules")).unwrap();
        fs::write(path("src/a.ts"), "one").unwrap();
        let mut last = fingerprint(place.path()).unwrap();
        fs::write(path("node_modules/x.js"), "x").unwrap();
        assert_eq!(fingerprint(place.path()).unwrap(), last);
        let mut changed = |what: &str| {
            let now = fingerprint(place.path()).unwrap();
            assert_ne!(now, last, "{what}");
            last = now;
        };
        fs::write(path("src/a.ts"), "longer").unwrap();
        changed("written");
        fs::write(path("src/b.ts"), "").unwrap();
        changed("added");
        fs::rename(path("src/b.ts"), path("src/c.ts")).unwrap();
        changed("renamed");
        fs::remove_file(path("src/c.ts")).unwrap();
        changed("removed");
        fs::remove_dir_all(place.path()).unwrap();
        assert!(fingerprint(place.path()).is_err());
    }

    #[tokio::test]
    async fn a_change_is_told_once_it_is_over() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.ts");
        fs::write(&file, "one").unwrap();
        let mut watch = Watch::new(place.path());
        fs::write(&file, "longer").unwrap();
        watch.changed().await;
        let again = tokio::time::timeout(POLL_INTERVAL * 4, watch.changed()).await;
        assert!(again.is_err(), "it was told once");
        fs::remove_file(&file).unwrap();
        watch.changed().await;
    }
}
