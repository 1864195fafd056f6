//! Waits for changes in a clip's directory while its author works on it. The caller decides what to do then, such as
//! installing the clip again.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two looks at the directory. A change is complete when two looks in a row find the same.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Not watched: the history, and the dependencies that are installed anew.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];
/// Watching stops at this number of files; a package has fewer.
const MAX_ENTRIES: usize = 50_000;

/// Watches a directory or an archive.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// The fingerprint that was last reported.
    seen: Option<u64>,
}

impl Watch {
    /// Watches `path` for changes from now on. Blocks.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let seen = fingerprint(&path).ok();
        Self { path, seen }
    }

    /// Waits until something has changed and the change is complete. While the path cannot be read, it continues to
    /// wait.
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

/// Returns a number that changes when a file is added, removed, renamed or written.
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
    async fn a_change_is_reported_when_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.ts");
        fs::write(&file, "one").unwrap();
        let mut watch = Watch::new(place.path());
        fs::write(&file, "longer").unwrap();
        watch.changed().await;
        let again = tokio::time::timeout(POLL_INTERVAL * 4, watch.changed()).await;
        assert!(again.is_err(), "a change is reported once");
        fs::remove_file(&file).unwrap();
        watch.changed().await;
    }
}
