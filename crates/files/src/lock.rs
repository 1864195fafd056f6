//! Locks between processes, with an end to every wait.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The delay between two attempts of a waiting process.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Locks the file at `path` for this process alone and creates it, with mode 0600, if it does not exist.
///
/// The lock ends when the returned file is dropped or the process ends. Fails with `TimedOut` if another process holds it
/// for longer than `wait`.
pub fn lock(path: &Path, wait: Duration) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = crate::open_with(options.write(true).create(true).mode(0o600), path)?;
    lock_file(&file, wait)?;
    Ok(file)
}

/// Locks an open file for this process alone. The lock ends when the file is dropped or the process ends.
///
/// Fails with `TimedOut` if another process holds it for longer than `wait`, and with another error if the file system
/// has no locks.
pub fn lock_file(file: &File, wait: Duration) -> io::Result<()> {
    retry(wait, || match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    })
}

/// Reports whether another process has locked the open `file`.
pub fn is_locked(file: &File) -> bool {
    let locked = file.try_lock_shared();
    if locked.is_ok() {
        // An error leaves the lock until the file is closed, which the caller does soon.
        let _ = file.unlock();
    }
    matches!(locked, Err(TryLockError::WouldBlock))
}

/// Reports whether `path` leads to the open `file` and not to one that replaced it.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// The directory `FILE.lock`, which pi creates while it changes FILE. Dropping it removes the directory.
#[derive(Debug)]
pub struct LockDirectory(PathBuf);

impl LockDirectory {
    /// Creates the directory for `file`. A directory older than `stale` was left by a process that died and is removed.
    ///
    /// Fails with `TimedOut` if another process holds the lock for longer than `wait`.
    pub fn take(file: &Path, wait: Duration, stale: Duration) -> io::Result<Self> {
        let directory = crate::beside(file, ".lock");
        retry(wait, || match fs::create_dir(&directory) {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if is_older(&directory, stale) {
                    // Removing it gains nothing: every waiting process tries to create it again.
                    let _ = fs::remove_dir(&directory);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        })?;
        Ok(Self(directory))
    }
}

impl Drop for LockDirectory {
    fn drop(&mut self) {
        // A process that considered this lock stale may have removed it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A time in the future means a living holder, whose clock or precision differs.
fn is_older(directory: &Path, stale: Duration) -> bool {
    fs::symlink_metadata(directory)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > stale))
}

fn retry<T>(wait: Duration, mut attempt: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        if start.elapsed() >= wait {
            let message = match wait.as_secs() {
                0 => "is locked by another process".to_owned(),
                seconds => format!("has been locked by another process for {seconds} s"),
            };
            return Err(io::Error::new(ErrorKind::TimedOut, message));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_held_lock_ends_the_wait_with_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = lock(&path, Duration::ZERO).unwrap();
        let error = lock(&path, Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "is locked by another process");
        let open = File::open(&path).unwrap();
        assert!(is_locked(&open) && is_at(&held, &path).unwrap());
        drop(held);
        assert!(!is_locked(&open));
        lock(&path, Duration::ZERO).unwrap();

        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = lock(&fifo, Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "is a FIFO, not a regular file");
    }

    #[test]
    fn a_stale_directory_is_taken_over_and_a_fresh_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        let directory = dir.path().join("a.json.lock");
        let stale = Duration::from_secs(10);
        fs::create_dir(&directory).unwrap();
        let error = LockDirectory::take(&file, Duration::from_millis(30), stale).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(directory.exists());

        let old = SystemTime::now() - Duration::from_secs(60);
        File::open(&directory).unwrap().set_modified(old).unwrap();
        let held = LockDirectory::take(&file, Duration::from_secs(5), stale).unwrap();
        assert!(directory.exists());
        drop(held);
        assert!(!directory.exists());
    }
}
