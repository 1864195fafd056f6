//! The breakers of all runs of a machine, in one file.
//!
//! ```json
//! {"version":1,"written":1763310000000,"models":{"anthropic/claude-opus-4-7":{"period":1,"state":"open","until":1763310120000}}}
//! ```
//!
//! Whoever looks at it holds a lock beside it until what is to be changed is in its place, in one piece. Times are
//! milliseconds since 1970, for clocks of processes have no other beginning in common. Nothing here ends a run: what
//! cannot be read is moved aside, and a run that cannot write goes on by itself (`board.rs`).

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_files::Replace;
use pinion_jsonl::explain_with_position;
use serde::{Deserialize, Serialize};

use super::kept::{Kept, to_milliseconds};
use super::process::Process;

const VERSION: u32 = 1;
/// How long somebody else may hold the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// A larger file is none of ours.
const MAX_SIZE: u64 = 4 * 1024 * 1024;
/// Times that are so much earlier than the last were only taken before waiting for the file.
const SLACK: Duration = Duration::from_secs(60);
/// What nobody has touched for so long is forgotten.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the breakers of all runs are.
#[derive(Debug)]
pub(crate) struct Commons {
    path: PathBuf,
}

/// The file, while nobody else has it.
#[derive(Debug)]
pub(super) struct Visit {
    path: PathBuf,
    _lock: File,
    /// When it was last written.
    written: u64,
    /// As they were found.
    pub models: BTreeMap<String, Kept>,
    /// What was found is not what has to be there.
    is_stale: bool,
    /// What somebody should know.
    pub warning: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    version: u32,
    /// When; a clock that says less was put back.
    written: u64,
    models: BTreeMap<String, Kept>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Commons {
    /// The breakers in this file, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Takes the file and reads it. Probes of the dead are given up.
    pub(super) fn visit(&self, now: Duration) -> Result<Visit, String> {
        let lock = lock(&self.path)?;
        let now = to_milliseconds(now);
        let mut visit = Visit {
            path: self.path.clone(),
            _lock: lock,
            written: 0,
            models: BTreeMap::new(),
            is_stale: false,
            warning: None,
        };
        match read(&self.path) {
            Ok(Some(contents)) => visit.take(contents, now),
            Ok(None) => {}
            Err(Unreadable::Forbidden(why)) => return Err(why),
            Err(Unreadable::Damaged(why)) => visit.warning = Some(move_aside(&self.path, &why)?),
        }
        Ok(visit)
    }
}

impl Visit {
    fn take(&mut self, contents: Contents, now: u64) {
        self.models = contents.models;
        let ahead = contents.written.saturating_sub(now);
        self.is_stale = ahead > to_milliseconds(SLACK);
        self.written = match self.is_stale {
            true => now,
            false => contents.written,
        };
        for kept in self.models.values_mut() {
            if ahead > to_milliseconds(SLACK) {
                kept.put_back(ahead);
            }
            if kept.prober().is_some_and(|prober| !prober.is_alive()) {
                kept.give_up_probe();
                self.is_stale = true;
            }
        }
    }

    /// Puts these in the place of what was found, if they differ. A probe that was not there before is `us`'s.
    pub fn leave(self, mut models: BTreeMap<String, Kept>, now: Duration) -> Result<(), String> {
        let now = to_milliseconds(now);
        let mut differs = self.is_stale;
        for (model, kept) in &mut models {
            match self.models.get(model) {
                Some(found) if kept.says_the_same(found) => kept.changed = found.changed,
                None if kept.is_new() => {}
                _ => {
                    kept.changed = now;
                    differs = true;
                }
            }
        }
        if !differs {
            return Ok(());
        }
        let oldest = now.saturating_sub(to_milliseconds(MEMORY));
        models.retain(|_, kept| !kept.is_new() && (kept.changed > oldest || !kept.is_at_rest(now)));
        let contents = Contents {
            version: VERSION,
            written: now.max(self.written),
            models,
        };
        replace(&self.path, &contents)
            .map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }

    /// Whose probe of a model that is, if there is one in this period of its breaker.
    pub fn prober(&self, model: &str, us: Process) -> Process {
        let found = self.models.get(model).and_then(Kept::prober);
        found.unwrap_or(us)
    }
}

/// Why a file cannot be used.
enum Unreadable {
    /// It is not to be touched.
    Forbidden(String),
    /// It makes no sense.
    Damaged(String),
}

fn read(path: &Path) -> Result<Option<Contents>, Unreadable> {
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

/// Waits until nobody else has the file, and keeps it until dropped. The kernel takes it back from the dead.
fn lock(path: &Path) -> Result<File, String> {
    let place = beside(path, ".lock");
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", place.display());
    if let Some(parent) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(|error| wrong(&error))?;
    }
    pinion_files::lock(&place, PATIENCE).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => wrong(&format_args!(
            "another process has held it for {} s",
            PATIENCE.as_secs()
        )),
        _ => wrong(&error),
    })
}

fn move_aside(path: &Path, why: &str) -> Result<String, String> {
    let aside = beside(path, ".damaged");
    pinion_files::is_regular(&aside).map_err(|error| format!("{}: {error}", aside.display()))?;
    fs::rename(path, &aside).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!(
        "the breakers of all runs in {} could not be read ({why}) and begin anew; what was there is in {}",
        path.display(),
        aside.display()
    ))
}

fn replace(path: &Path, contents: &Contents) -> io::Result<()> {
    let mut text = serde_json::to_vec(contents)?;
    text.push(b'\n');
    let options = Replace {
        sync: false,
        ..Replace::PRIVATE
    };
    pinion_files::replace(path, &text, options)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
