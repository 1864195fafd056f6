//! Changes files: one writer per file at a time, and all of the new content or none of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pinion_files::Replace;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::{ToolError, blocking, node_error};

/// Held while a call waits for or changes a file, by the path it was given, so that calls run in
/// the order in which they arrived.
static NAMES: Locks = Locks::new();
/// Held while a file is changed, by the path without links, so that calls with different names of a
/// file exclude each other.
static FILES: Locks = Locks::new();

struct Locks(Mutex<Option<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>>);

impl Locks {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    async fn lock(&self, path: PathBuf) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let locks = locks.get_or_insert_default();
            locks.retain(|_, lock| lock.strong_count() > 0);
            let slot = locks.entry(path).or_default();
            slot.upgrade().unwrap_or_else(|| {
                let lock = Arc::default();
                *slot = Arc::downgrade(&lock);
                lock
            })
        };
        lock.lock_owned().await
    }
}

/// Prevents every other call of this process from changing a file.
#[derive(Debug)]
pub struct FileLock {
    _file: OwnedMutexGuard<()>,
    _name: OwnedMutexGuard<()>,
}

/// Waits until no other call of this process changes the file at `path`, in order of arrival.
pub async fn lock_file(path: &Path) -> FileLock {
    let name = NAMES.lock(path.to_owned()).await;
    let spelled = path.to_owned();
    // Dropping this future ends the wait, so nothing else has to cancel it.
    let real = blocking::run_blocking(&CancellationToken::new(), move || real(&spelled)).await;
    FileLock {
        _file: FILES.lock(real.unwrap_or_else(|_| path.to_owned())).await,
        _name: name,
    }
}

/// Waits for the calls of this process that change the file at `path` and began before this one.
pub(crate) async fn changed_before(path: &Path) {
    drop(NAMES.lock(path.to_owned()).await);
}

/// Runs `change` with the file at `path` locked. The lock is held until the work ends, even after a cancel.
pub(crate) async fn change<T: Send + 'static>(
    path: &Path,
    cancel: &CancellationToken,
    change: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let held = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError::aborted()),
        held = lock_file(path) => held,
    };
    blocking::run(cancel, move || {
        let _held = held;
        change()
    })
    .await
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

/// Makes `content` the whole content of the file at `path`, unless the call was cancelled before.
///
/// The old content is replaced by one rename, so a cancel that comes later finds the file whole.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    pinion_files::replace(path, content, Replace::USER)
        .map_err(|error| node_error::at(&error, "open", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_and_files_below_files_are_refused_in_nodes_words() {
        let dir = tempfile::tempdir().unwrap();
        let never = CancellationToken::new();
        let error = replace(dir.path(), b"x", &never).unwrap_err();
        let path = dir.path().display();
        assert_eq!(
            error.0,
            format!("EISDIR: illegal operation on a directory, open '{path}'")
        );
        let below = dir.path().join("file");
        fs::write(&below, "").unwrap();
        let error = replace(&below.join("child"), b"x", &never).unwrap_err();
        assert!(
            error.0.starts_with("ENOTDIR: not a directory, open '"),
            "{error}"
        );
    }

    #[test]
    fn a_cancelled_call_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "old").unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(replace(&file, b"new", &cancel), Err(ToolError::aborted()));
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }

    #[tokio::test]
    async fn one_file_has_one_writer_under_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let held = lock_file(&dir.path().join("a")).await;
        let other = dir.path().join("b");
        let waits = tokio::time::timeout(std::time::Duration::from_millis(50), lock_file(&other));
        waits.await.unwrap_err();
        drop(held);
        lock_file(&other).await;
    }

    #[tokio::test]
    async fn calls_for_one_path_come_in_the_order_of_asking() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let order = Arc::new(Mutex::new(Vec::new()));
        let never = CancellationToken::new();
        let calls = (0..50).map(|number| {
            let order = order.clone();
            change(&path, &never, move || {
                order.lock().unwrap().push(number);
                Ok(())
            })
        });
        futures_util::future::join_all(calls).await;
        assert!(order.lock().unwrap().is_sorted());
    }
}
