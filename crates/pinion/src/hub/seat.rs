//! The file that says which process is the hub of a directory.
//!
//! `pinixd.pid` holds `{"pid":…,"port":…,"startedAt":"…","hubURL":"…"}`. The hub holds a lock on it for as long as it runs, so that a
//! file left behind is known for what it is even where its number has gone to another process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::Failure;

/// The name of the file in the hub's directory.
const PID_FILE: &str = "pinixd.pid";
/// Locked beside it, so that one directory has one hub wherever the file is.
const LOCK: &str = "hub.lock";

/// Somebody who only looks whether a hub is there holds the lock for a moment.
const LOOKS: usize = 5;
const LOOK: Duration = Duration::from_millis(20);
/// The largest file that says who holds a seat, in bytes.
const HOLDER_LIMIT: u64 = 64 << 10;

/// The place of the file, unless another is asked for.
pub(crate) fn pid_file(root: &Path) -> PathBuf {
    root.join(PID_FILE)
}

/// That this process is the hub of a directory. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    path: PathBuf,
    file: File,
    _root: File,
}

impl Seat {
    /// Takes the seat; fails if a hub is running.
    pub fn take(root: &Path, path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(root).map_err(|error| cannot(root, &error))?;
        let lock = root.join(LOCK);
        let root = open(&lock).map_err(|error| cannot(&lock, &error))?;
        lock_or_say(&root, path)?;
        loop {
            let file = open(path).map_err(|error| cannot(path, &error))?;
            lock_or_say(&file, path)?;
            // Its former owner may have removed it between the two.
            if is_at(&file, path) {
                return Ok(Self {
                    path: path.to_owned(),
                    file,
                    _root: root,
                });
            }
        }
    }

    /// Says where the hub is to be found.
    pub fn tell(&mut self, port: u16, url: &str) -> io::Result<()> {
        self.write(&json!({
            "pid": std::process::id(),
            "port": port,
            "startedAt": jiff::Timestamp::now().to_string(),
            "hubURL": url,
        }))
    }

    /// Says that there is no hub here, but clips that are offered to the one at `url`. Nobody is to call that one because of this.
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
            // Left behind, it would be seen to be stale.
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

/// Whether `file` is still the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |(one, other): (std::fs::Metadata, std::fs::Metadata)| {
        one.ino() == other.ino() && one.dev() == other.dev()
    };
    file.metadata()
        .ok()
        .zip(std::fs::metadata(path).ok())
        .is_some_and(same)
}

/// What the holder of a seat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A hub.
    Hub,
    /// It offers clips to a hub elsewhere.
    Runtime,
}

/// Who holds a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// What it is.
    pub role: Role,
    /// Its process.
    pub pid: u32,
    /// Where it is to be found, or the hub it has joined.
    pub url: String,
    /// Since when.
    pub started: String,
}

impl Holder {
    /// The hub that holds the seat at `path`. A file that nobody holds says nothing.
    pub fn at(path: &Path) -> Option<Self> {
        Self::anyone_at(path).filter(|holder| holder.role == Role::Hub)
    }

    /// The same, also if it is no hub.
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
