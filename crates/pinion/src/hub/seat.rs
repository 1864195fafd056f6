//! The file that identifies the hub process of a directory.
//!
//! `pinixd.pid` holds `{"pid":…,"port":…,"startedAt":"…","hubURL":"…"}`. The hub locks it while it runs, so that a file
//! left behind is recognized as stale even if another process has the same pid.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::Failure;

/// The name of the file in the hub's directory.
const PID_FILE: &str = "pinixd.pid";
/// A second lock file, always in the hub's directory, so that a directory has one hub wherever the pid file is.
const LOCK: &str = "hub.lock";

/// Further attempts to lock a file: a process that only checks for a hub holds the lock for a moment.
const LOOKS: usize = 5;
const LOOK: Duration = Duration::from_millis(20);
/// The largest pid file, in bytes.
const HOLDER_LIMIT: u64 = 64 << 10;

/// Returns the default path of the pid file.
pub(crate) fn pid_file(root: &Path) -> PathBuf {
    root.join(PID_FILE)
}

/// The claim of this process to be the hub, or the runtime, of a directory. Dropping it releases the directory.
#[derive(Debug)]
pub(crate) struct Seat {
    path: PathBuf,
    file: File,
    _root: File,
}

impl Seat {
    /// Claims the directory. Fails if a hub or a runtime is running in it.
    pub fn take(root: &Path, path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(root).map_err(|error| cannot(root, &error))?;
        let lock = root.join(LOCK);
        let root = open(&lock).map_err(|error| cannot(&lock, &error))?;
        lock_or_say(&root, path)?;
        loop {
            let file = open(path).map_err(|error| cannot(path, &error))?;
            lock_or_say(&file, path)?;
            // The former owner may have removed the file between opening and locking.
            if is_at(&file, path) {
                return Ok(Self {
                    path: path.to_owned(),
                    file,
                    _root: root,
                });
            }
        }
    }

    /// Writes the address of the hub to the file.
    pub fn tell(&mut self, port: u16, url: &str) -> io::Result<()> {
        self.write(&json!({
            "pid": std::process::id(),
            "port": port,
            "startedAt": jiff::Timestamp::now().to_string(),
            "hubURL": url,
        }))
    }

    /// Writes that this process is not a hub but offers its clips to the hub at `url`. Commands ignore that address.
    pub fn tell_joined(&mut self, url: &str) -> io::Result<()> {
        self.write(&json!({
            "pid": std::process::id(),
            "startedAt": jiff::Timestamp::now().to_string(),
            "joinedURL": url,
        }))
    }

    fn write(&mut self, holder: &Value) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(format!("{holder}\n").as_bytes())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // If this fails, the file is recognized as stale.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    pinion_files::open_with(&mut options, path)
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("Error: {}: {error}", path.display()))
}

fn lock_or_say(file: &File, path: &Path) -> Result<(), Failure> {
    let mut locked = file.try_lock();
    for _ in 0..LOOKS {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOOK);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(cannot(path, &error)),
        Err(TryLockError::WouldBlock) => Err(Failure::failed(match Holder::anyone_at(path) {
            Some(Holder {
                role: Role::Runtime,
                pid,
                url,
                ..
            }) => format!(
                "Error: the clips here are offered to {url} already, by process {pid}. `pinion hub stop` ends it; another --root has other clips."
            ),
            Some(Holder { pid, url, .. }) => format!(
                "Error: a hub is running already: {url}, process {pid}. `pinion hub stop` ends it; another --root is another hub."
            ),
            None => "Error: another hub is just starting or ending here. Try again in a moment."
                .to_owned(),
        })),
    }
}

/// Reports whether `file` is still the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |(one, other): (std::fs::Metadata, std::fs::Metadata)| {
        one.ino() == other.ino() && one.dev() == other.dev()
    };
    file.metadata()
        .ok()
        .zip(std::fs::metadata(path).ok())
        .is_some_and(same)
}

/// The kind of process that holds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Hub,
    /// A runtime that offers clips to another hub.
    Runtime,
}

/// The process that holds a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub role: Role,
    pub pid: u32,
    /// The hub's own address, or that of the hub which the runtime has joined.
    pub url: String,
    /// The start time in RFC 3339.
    pub started: String,
}

impl Holder {
    /// Returns the hub that holds the file at `path`; `None` if no process has locked it.
    pub fn at(path: &Path) -> Option<Self> {
        Self::anyone_at(path).filter(|holder| holder.role == Role::Hub)
    }

    /// Returns the process that holds the file at `path`, hub or runtime.
    pub fn anyone_at(path: &Path) -> Option<Self> {
        let file = pinion_files::open(path).ok()?;
        if file.try_lock_shared().is_ok() {
            return None;
        }
        let mut text = String::new();
        file.take(HOLDER_LIMIT).read_to_string(&mut text).ok()?;
        let holder: Value = serde_json::from_str(&text).ok()?;
        let (role, url) = match holder["hubURL"].as_str() {
            Some(url) => (Role::Hub, url),
            None => (Role::Runtime, holder["joinedURL"].as_str()?),
        };
        Some(Self {
            role,
            pid: holder["pid"].as_u64()?.try_into().ok()?,
            url: url.to_owned(),
            started: holder["startedAt"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_held_once_and_told_of_while_it_is() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let mut seat = Seat::take(root.path(), &path).unwrap();
        seat.tell(9, "http://127.0.0.1:9").unwrap();
        let holder = Holder::at(&path).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.url, "http://127.0.0.1:9");
        let refused = Seat::take(root.path(), &path).unwrap_err().to_string();
        assert!(refused.contains("http://127.0.0.1:9"), "{refused}");
        let elsewhere = root.path().join("other.pid");
        assert!(Seat::take(root.path(), &elsewhere).is_err());
        drop(seat);
        assert!(!path.exists());
        Seat::take(root.path(), &path).unwrap();
    }

    #[test]
    fn who_has_joined_a_hub_is_none() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let mut seat = Seat::take(root.path(), &path).unwrap();
        seat.tell_joined("http://127.0.0.1:9").unwrap();
        assert_eq!(Holder::at(&path), None);
        let holder = Holder::anyone_at(&path).unwrap();
        assert_eq!(
            (holder.role, holder.url.as_str()),
            (Role::Runtime, "http://127.0.0.1:9")
        );
        let refused = Seat::take(root.path(), &path).unwrap_err().to_string();
        assert!(
            refused.contains("offered to http://127.0.0.1:9"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_that_nobody_holds_says_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let stale = json!({"pid": std::process::id(), "hubURL": "http://127.0.0.1:1"});
        for left in [stale.to_string(), String::new(), "{".into()] {
            std::fs::write(&path, left).unwrap();
            assert_eq!(Holder::at(&path), None);
            Seat::take(root.path(), &path).unwrap();
        }
    }
}
