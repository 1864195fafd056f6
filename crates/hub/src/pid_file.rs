//! The file that identifies the hub process of a directory, and the lock that a directory has one.
//!
//! `pinixd.pid` holds `{"pid":…,"port":…,"startedAt":"…","hubURL":"…"}`. The hub locks it while it runs, so that a file
//! left behind is recognized as stale even if another process has the same pid.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

/// The name of the file in the hub's directory.
const PID_FILE: &str = "pinixd.pid";
/// A second lock file, always in the hub's directory, so that a directory has one hub wherever the pid file is.
const LOCK_FILE: &str = "hub.lock";

/// Further attempts to lock a file: a process that only checks for a hub holds the lock for a moment.
const LOCK_RETRIES: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The largest pid file, in bytes.
const PID_FILE_LIMIT: u64 = 64 << 10;
/// Time that a process has to exit after SIGTERM: the grace period of calls, then that of clips.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the default path of the pid file.
pub fn pid_file(root: &Path) -> PathBuf {
    root.join(PID_FILE)
}

/// The lock of this process on a directory whose hub or runtime it is. Dropping it releases the directory.
#[derive(Debug)]
pub struct HubLock {
    path: PathBuf,
    file: File,
    _lock_file: File,
}

impl HubLock {
    /// Locks the directory `root`, with its pid file at `path`. Fails if a hub or a runtime is running in it.
    pub fn acquire(root: &Path, path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(root).map_err(|error| Failure::io(root.display(), &error))?;
        let lock_file = lock(&root.join(LOCK_FILE), path)?;
        loop {
            let file = lock(path, path)?;
            // The former owner may have removed the file between opening and locking.
            if is_at(&file, path) {
                return Ok(Self {
                    path: path.to_owned(),
                    file,
                    _lock_file: lock_file,
                });
            }
        }
    }

    /// Writes that this process is a hub, with its address.
    pub fn record_hub(&mut self, port: u16, url: &str) -> io::Result<()> {
        self.write(&json!({
            "pid": std::process::id(),
            "port": port,
            "startedAt": jiff::Timestamp::now().to_string(),
            "hubURL": url,
        }))
    }

    /// Writes that this process is a runtime that offers its clips to the hub at `url`. Commands ignore that address.
    pub fn record_runtime(&mut self, url: &str) -> io::Result<()> {
        self.write(&json!({
            "pid": std::process::id(),
            "startedAt": jiff::Timestamp::now().to_string(),
            "joinedURL": url,
        }))
    }

    fn write(&mut self, process: &Value) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(format!("{process}\n").as_bytes())
    }
}

impl Drop for HubLock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // If this fails, the file is recognized as stale.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens and locks a file. `pid_file` names the process that holds the lock, for the message.
fn lock(path: &Path, pid_file: &Path) -> Result<File, Failure> {
    let cannot = |error: &io::Error| Failure::io(path.display(), error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = pinion_files::open_with(&mut options, path).map_err(|error| cannot(&error))?;
    let mut locked = file.try_lock();
    for _ in 0..LOCK_RETRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(cannot(&error)),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            Code::FailedPrecondition,
            match HubProcess::at(pid_file) {
                Some(process) => {
                    let other = match process.role {
                        ProcessRole::Hub => "another --root is another hub",
                        ProcessRole::Runtime => "another --root has other clips",
                    };
                    format!("{process}. `pinion hub stop` ends it; {other}.")
                }
                None => {
                    "another hub is just starting or ending here. Try again in a moment.".into()
                }
            },
        )),
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

/// The kind of process that has locked a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    Hub,
    /// A runtime that offers clips to another hub.
    Runtime,
}

/// The process that has locked a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubProcess {
    pub role: ProcessRole,
    pub pid: u32,
    /// The hub's own address, or that of the hub which the runtime has joined.
    pub url: String,
    /// The start time in RFC 3339.
    pub started: String,
}

impl std::fmt::Display for HubProcess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, url, .. } = self;
        match self.role {
            ProcessRole::Hub => write!(formatter, "a hub is running already: {url}, process {pid}"),
            ProcessRole::Runtime => write!(
                formatter,
                "the clips here are offered to {url} already, by process {pid}"
            ),
        }
    }
}

impl HubProcess {
    /// Returns the process of a running hub as JSON, for programs.
    pub fn status_json(&self) -> Value {
        json!({
            "running": true,
            "pid": self.pid,
            "hubURL": self.url,
            "startedAt": self.started,
        })
    }

    /// Returns the hub that holds the lock of the pid file at `path`; `None` if it is a runtime or no process.
    pub fn hub_at(path: &Path) -> Option<Self> {
        Self::at(path).filter(|process| process.role == ProcessRole::Hub)
    }

    /// Returns the process that holds the lock of the pid file at `path`, hub or runtime.
    pub fn at(path: &Path) -> Option<Self> {
        let file = pinion_files::open(path).ok()?;
        if file.try_lock_shared().is_ok() {
            return None;
        }
        let mut text = String::new();
        file.take(PID_FILE_LIMIT).read_to_string(&mut text).ok()?;
        let process: Value = serde_json::from_str(&text).ok()?;
        let (role, url) = match process["hubURL"].as_str() {
            Some(url) => (ProcessRole::Hub, url),
            None => (ProcessRole::Runtime, process["joinedURL"].as_str()?),
        };
        Some(Self {
            role,
            pid: process["pid"].as_u64()?.try_into().ok()?,
            url: url.to_owned(),
            started: process["startedAt"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Stops the process, whose pid file is at `path`, and waits until it has exited. One that has not after
    /// [`STOP_TIMEOUT`] is killed; `before_kill` is called then.
    pub fn stop(&self, path: &Path, before_kill: impl FnOnce()) -> Result<(), Failure> {
        self.signal(Some(Signal::SIGTERM)).map_err(|error| {
            let message = format!("process {} cannot be stopped: {error}", self.pid);
            Failure::new(Code::FailedPrecondition, message)
        })?;
        if !self.has_exited_within(STOP_TIMEOUT, path) {
            before_kill();
            let _ = self.signal(Some(Signal::SIGKILL));
            self.has_exited_within(STOP_TIMEOUT, path);
        }
        Ok(())
    }

    fn has_exited_within(&self, timeout: Duration, path: &Path) -> bool {
        let start = Instant::now();
        while start.elapsed() < timeout {
            // The pid file is released a moment before the process exits.
            let holds_lock = Self::at(path).is_some_and(|now| now.pid == self.pid);
            if !holds_lock && self.has_exited() {
                return true;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Reports whether the process has exited, even if its parent has not collected its status.
    fn has_exited(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default();
        state.trim_start().starts_with('Z') || self.signal(None).is_err()
    }

    fn signal(&self, signal: Option<Signal>) -> io::Result<()> {
        // Zero and negative pids mean process groups.
        match i32::try_from(self.pid) {
            Ok(pid) if pid > 0 => Ok(kill(Pid::from_raw(pid), signal)?),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_locked_once_and_names_its_hub() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let mut lock = HubLock::acquire(root.path(), &path).unwrap();
        lock.record_hub(9, "http://127.0.0.1:9").unwrap();
        let process = HubProcess::hub_at(&path).unwrap();
        assert_eq!(process.pid, std::process::id());
        assert_eq!(process.url, "http://127.0.0.1:9");
        let refused = HubLock::acquire(root.path(), &path)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("http://127.0.0.1:9"), "{refused}");
        let elsewhere = root.path().join("other.pid");
        assert!(HubLock::acquire(root.path(), &elsewhere).is_err());
        drop(lock);
        assert!(!path.exists());
        HubLock::acquire(root.path(), &path).unwrap();
    }

    #[test]
    fn a_runtime_is_not_a_hub() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let mut lock = HubLock::acquire(root.path(), &path).unwrap();
        lock.record_runtime("http://127.0.0.1:9").unwrap();
        assert_eq!(HubProcess::hub_at(&path), None);
        let process = HubProcess::at(&path).unwrap();
        assert_eq!(
            (process.role, process.url.as_str()),
            (ProcessRole::Runtime, "http://127.0.0.1:9")
        );
        let refused = HubLock::acquire(root.path(), &path)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("offered to http://127.0.0.1:9"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_without_a_lock_names_no_process() {
        let root = tempfile::tempdir().unwrap();
        let path = pid_file(root.path());
        let stale = json!({"pid": std::process::id(), "hubURL": "http://127.0.0.1:1"});
        for left in [stale.to_string(), String::new(), "{".into()] {
            std::fs::write(&path, left).unwrap();
            assert_eq!(HubProcess::hub_at(&path), None);
            HubLock::acquire(root.path(), &path).unwrap();
        }
    }
}
