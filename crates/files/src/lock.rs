//! Locks between processes, with an end to every wait.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The delay between two attempts of a waiting process.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time after which a process that took over a stale lock checks that it alone did.
const TAKEOVER_DELAY: Duration = Duration::from_millis(20);

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
///
/// Its time of modification is the holder's sign of life: a holder that works for longer than a moment calls
/// [`LockDirectory::touch`], and checks [`LockDirectory::is_held`] before it writes.
#[derive(Debug)]
pub struct LockDirectory {
    path: PathBuf,
    /// Device and inode of the directory, and the time that this holder gave it last.
    mark: Mutex<Mark>,
}

/// Identifies the directory of one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: (u64, u64),
    modified: (i64, i64),
}

impl Mark {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            inode: (metadata.dev(), metadata.ino()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

impl LockDirectory {
    /// Creates the directory for `file`. A directory older than `stale` was left by a process that died and is removed.
    ///
    /// Fails with `TimedOut` if another process holds the lock for longer than `wait`.
    pub fn take(file: &Path, wait: Duration, stale: Duration) -> io::Result<Self> {
        retry(wait, || Self::try_take(file, stale))
    }

    /// Creates the directory for `file`; `None` if another process holds the lock. Does not wait.
    pub fn try_take(file: &Path, stale: Duration) -> io::Result<Option<Self>> {
        let path = crate::beside(file, ".lock");
        // A stale directory is removed once; the process that creates the next one holds the lock.
        for attempt in 0..2 {
            match fs::create_dir(&path) {
                Ok(()) => {
                    let mark = Mutex::new(Mark::of(&path)?);
                    let lock = Self { path, mark };
                    if attempt > 0 {
                        // A process that saw the same stale directory may remove this one in its place.
                        thread::sleep(TAKEOVER_DELAY);
                    }
                    return Ok(Some(lock).filter(Self::is_held));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if !is_older(&path, stale) {
                        return Ok(None);
                    }
                    // Another process may have removed it.
                    let _ = fs::remove_dir(&path);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Shows other processes that this holder is alive. Returns `false` if another process took the lock over.
    pub fn touch(&self) -> io::Result<bool> {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        if Mark::of(&self.path).ok() != Some(*mark) {
            return Ok(false);
        }
        File::open(&self.path)?.set_modified(SystemTime::now())?;
        *mark = Mark::of(&self.path)?;
        Ok(true)
    }

    /// Reports whether this holder still has the lock. A process that found the lock stale has taken it over.
    pub fn is_held(&self) -> bool {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        Mark::of(&self.path).ok() == Some(*mark)
    }
}

impl Drop for LockDirectory {
    fn drop(&mut self) {
        // The directory of a process that took the lock over stays.
        if self.is_held() {
            let _ = fs::remove_dir(&self.path);
        }
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

    #[test]
    fn a_holder_notices_that_its_lock_was_taken_over_and_leaves_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        let directory = dir.path().join("a.json.lock");
        let stale = Duration::from_secs(30);
        let first = LockDirectory::try_take(&file, stale).unwrap().unwrap();
        assert!(LockDirectory::try_take(&file, stale).unwrap().is_none());
        assert!(first.is_held() && first.touch().unwrap() && first.is_held());

        let old = SystemTime::now() - Duration::from_secs(60);
        File::open(&directory).unwrap().set_modified(old).unwrap();
        let second = LockDirectory::try_take(&file, stale).unwrap().unwrap();
        assert!(second.is_held() && !first.is_held() && !first.touch().unwrap());
        drop(first);
        assert!(directory.exists(), "the lock belongs to the second holder");
        drop(second);
        assert!(!directory.exists());
    }
}
