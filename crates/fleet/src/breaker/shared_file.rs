//! The file with the breakers of all runs of a machine.
//!
//! ```json
//! {"version":1,"written":1763310000000,"models":{"anthropic/claude-opus-4-7":{"period":1,"state":"open","until":1763310120000}}}
//! ```
//!
//! A process holds a lock beside the file from reading it until its changes are written atomically. Times are
//! milliseconds since 1970, the only start that the clocks of several processes share. No failure here ends a run: a
//! damaged file is moved aside, and a run that cannot write continues without sharing (`run_breakers.rs`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_files::{Durability, Replace, beside};
use pinion_jsonl::explain_with_position;
use serde::{Deserialize, Serialize};

use super::process::ProcessIdentity;
use super::stored::{StoredBreaker, to_milliseconds};

const VERSION: u32 = 1;
/// The time to wait for a lock that another process holds. Transactions take milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest file that pinion reads, in bytes; it never writes one of this size.
const MAX_SIZE: u64 = 4 * 1024 * 1024;
/// A time that is earlier than the last one by at most this much was measured before waiting for the lock. A larger
/// difference means that the clock was set back.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);
/// The time after which an unchanged breaker is removed.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct SharedFile {
    path: PathBuf,
}

/// The contents of the file while this process holds the lock.
#[derive(Debug)]
pub(super) struct LockedFile {
    path: PathBuf,
    _lock: File,
    /// The time of the last write, in milliseconds since 1970.
    written: u64,
    /// The breakers in the file, by model.
    pub models: BTreeMap<String, StoredBreaker>,
    /// The file has to be written even if no breaker changes.
    is_stale: bool,
    /// A message about a damaged file.
    pub warning: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FileContents {
    version: u32,
    /// The time of the write; if the clock shows less, it was set back.
    written: u64,
    models: BTreeMap<String, StoredBreaker>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl SharedFile {
    /// Uses the breakers in this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Locks and reads the file. Probes of processes that have ended are released.
    pub(super) fn open(&self, now: Duration) -> Result<LockedFile, String> {
        let lock = lock(&self.path)?;
        let now = to_milliseconds(now);
        let mut locked = LockedFile {
            path: self.path.clone(),
            _lock: lock,
            written: 0,
            models: BTreeMap::new(),
            is_stale: false,
            warning: None,
        };
        match read(&self.path) {
            Ok(Some(contents)) => locked.take(contents, now),
            Ok(None) => {}
            Err(Unreadable::Forbidden(why)) => return Err(why),
            Err(Unreadable::Damaged(why)) => locked.warning = Some(move_aside(&self.path, &why)?),
        }
        Ok(locked)
    }
}

impl LockedFile {
    fn take(&mut self, contents: FileContents, now: u64) {
        self.models = contents.models;
        let ahead = contents.written.saturating_sub(now);
        self.is_stale = ahead > to_milliseconds(CLOCK_TOLERANCE);
        self.written = if self.is_stale { now } else { contents.written };
        for stored in self.models.values_mut() {
            if ahead > to_milliseconds(CLOCK_TOLERANCE) {
                stored.shift_back(ahead);
            }
            if stored.prober().is_some_and(|prober| !prober.is_alive()) {
                stored.release_probe();
                self.is_stale = true;
            }
        }
    }

    /// Writes `models` to the file if they differ from its contents.
    pub fn save(
        self,
        mut models: BTreeMap<String, StoredBreaker>,
        now: Duration,
    ) -> Result<(), String> {
        let now = to_milliseconds(now);
        let mut differs = self.is_stale;
        for (model, stored) in &mut models {
            match self.models.get(model) {
                Some(found) if stored.is_same_state(found) => stored.changed = found.changed,
                None if stored.is_new() => {}
                _ => {
                    stored.changed = now;
                    differs = true;
                }
            }
        }
        if !differs {
            return Ok(());
        }
        let oldest = now.saturating_sub(to_milliseconds(RETENTION));
        models.retain(|_, stored| {
            !stored.is_new() && (stored.changed > oldest || !stored.is_at_rest(now))
        });
        let contents = FileContents {
            version: VERSION,
            written: now.max(self.written),
            models,
        };
        replace(&self.path, &contents)
            .map_err(|error| format!("\"{}\" cannot be written: {error}", self.path.display()))
    }

    /// Returns the process that probes a model: the one in the file, or `this_process` for a new probe.
    pub fn prober(&self, model: &str, this_process: ProcessIdentity) -> ProcessIdentity {
        let found = self.models.get(model).and_then(StoredBreaker::prober);
        found.unwrap_or(this_process)
    }
}

/// The reason why a file cannot be used.
enum Unreadable {
    /// The file must stay as it is.
    Forbidden(String),
    /// The file is not valid.
    Damaged(String),
}

fn read(path: &Path) -> Result<Option<FileContents>, Unreadable> {
    let forbidden = |error: &dyn std::fmt::Display| {
        Unreadable::Forbidden(format!("{}: {error}", path.display()))
    };
    let bytes = match pinion_files::read_if_present(path, MAX_SIZE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Err(Unreadable::Damaged("it is too large".into()));
        }
        Err(error) => return Err(forbidden(&error)),
    };
    let damaged = |error: serde_json::Error| Unreadable::Damaged(explain_with_position(&error));
    let head: Head = serde_json::from_slice(&bytes).map_err(damaged)?;
    if head.version > VERSION {
        return Err(forbidden(&"it was written by a newer pinion"));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// Waits for the lock and holds it until the file is dropped. The kernel releases the lock of a process that ends.
fn lock(path: &Path) -> Result<File, String> {
    let lock_path = beside(path, ".lock");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", lock_path.display());
    if let Some(parent) = path.parent() {
        pinion_files::create_private_directory(parent).map_err(|error| failed(&error))?;
    }
    pinion_files::lock(&lock_path, LOCK_TIMEOUT).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => failed(&format_args!(
            "another process has held the lock for {} s",
            LOCK_TIMEOUT.as_secs()
        )),
        _ => failed(&error),
    })
}

fn move_aside(path: &Path, why: &str) -> Result<String, String> {
    let aside = pinion_files::set_damaged_aside(path).map_err(|error| {
        format!(
            "{0} cannot be renamed to {0}.damaged: {error}",
            path.display()
        )
    })?;
    Ok(format!(
        "the shared breakers in \"{}\" could not be read ({why}) and were reset; the damaged file is now \"{}\"",
        path.display(),
        aside.display()
    ))
}

fn replace(path: &Path, contents: &FileContents) -> io::Result<()> {
    let mut text = serde_json::to_vec(contents)?;
    text.push(b'\n');
    let options = Replace {
        durability: Durability::Process,
        ..Replace::PRIVATE
    };
    pinion_files::replace(path, &text, options)
}
