//! Putting a file's new content on disk: all of it or none of it, one writer per file at a time.
//!
//! A regular file is replaced by renaming a finished copy over it. Where that would lose something (other
//! hard links, a foreign owner, a device, a directory we may not write to) the file is written in place.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::{ToolError, fault};

type Locks = Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>;
static LOCKS: LazyLock<Locks> = LazyLock::new(Locks::default);

/// Keeps every other call of this process from changing a file.
#[derive(Debug)]
pub struct FileLock(#[allow(dead_code)] OwnedMutexGuard<()>);

/// Waits until no other call of this process changes the file at `path`, in the order of asking.
pub async fn lock_file(path: &Path) -> FileLock {
    FileLock(lock(path).await)
}

/// Waits until no other call of this process changes the file at `path`.
pub(crate) async fn lock(path: &Path) -> OwnedMutexGuard<()> {
    let lock = {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        let slot = locks.entry(real(path)).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let lock = Arc::default();
            *slot = Arc::downgrade(&lock);
            lock
        })
    };
    lock.lock_owned().await
}

/// The path with links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// Makes `content` the whole content of the file at `path`. Links are followed.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), ToolError> {
    let replaced = match replaceable(path) {
        Some((target, mode)) => rename_over(&target, content, mode),
        None => Err(io::ErrorKind::Unsupported.into()),
    };
    // Whatever stood in the way of a rename, plain writing either works or tells why not.
    replaced
        .or_else(|_| in_place(path, content))
        .map_err(|error| fault::at(&error, "open", path))
}

/// The file to rename over and its permissions; `None` where a rename would lose something.
fn replaceable(path: &Path) -> Option<(PathBuf, Option<u32>)> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some((path.to_owned(), None));
        }
        Err(_) => return None,
        Ok(_) => {}
    }
    let target = path.canonicalize().ok()?;
    let existing = target.metadata().ok()?;
    let ours = existing.uid() == nix::unistd::geteuid().as_raw()
        && existing.gid() == nix::unistd::getegid().as_raw();
    let writable = existing.permissions().mode() & 0o200 != 0;
    (existing.is_file() && existing.nlink() == 1 && ours && writable)
        .then(|| (target, Some(existing.mode() & 0o7777)))
}

fn rename_over(target: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut copy_name = std::ffi::OsString::from(".");
    copy_name.push(name);
    copy_name.push(format!(".{:08x}.tmp", uuid::Uuid::new_v4().as_fields().0));
    let copy = target.with_file_name(copy_name);
    let written = fill(&copy, content, mode).and_then(|()| fs::rename(&copy, target));
    if written.is_err() {
        // It may not have been created at all; there is nothing more to do about it.
        let _ = fs::remove_file(&copy);
    }
    written
}

fn fill(copy: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o666)
        .open(copy)?;
    file.write_all(content)?;
    match mode {
        Some(mode) => file.set_permissions(fs::Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

fn in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn permissions_links_and_neighbours_survive() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, twin) = (
            dir.path().join("script"),
            dir.path().join("link"),
            dir.path().join("twin"),
        );
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o754)).unwrap();
        std::os::unix::fs::symlink("script", &link).unwrap();

        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(mode(&file), 0o754);

        fs::hard_link(&file, &twin).unwrap();
        replace(&file, b"shared").unwrap();
        assert_eq!(fs::read(&twin).unwrap(), b"shared");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            3,
            "no copy is left behind"
        );
    }

    #[test]
    fn a_dangling_link_creates_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("target", &link).unwrap();
        replace(&link, b"x").unwrap();
        assert_eq!(fs::read(dir.path().join("target")).unwrap(), b"x");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn directories_and_read_only_files_are_refused_in_nodes_words() {
        let dir = tempfile::tempdir().unwrap();
        let error = replace(dir.path(), b"x").unwrap_err();
        let path = dir.path().display();
        assert_eq!(
            error.0,
            format!("EISDIR: illegal operation on a directory, open '{path}'")
        );
        let below = dir.path().join("file");
        fs::write(&below, "").unwrap();
        let error = replace(&below.join("child"), b"x").unwrap_err();
        assert!(
            error.0.starts_with("ENOTDIR: not a directory, open '"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn one_file_has_one_writer_under_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let held = lock(&dir.path().join("a")).await;
        let path = dir.path().join("b");
        let mut second = Box::pin(lock(&path));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(held);
        second.await;
    }
}
