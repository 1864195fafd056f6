//! The directory of a run: what it was asked, what happened, what came of it.
//!
//! | file | what |
//! |---|---|
//! | `plan.json` | the plan as it was read, prompts included |
//! | `input` | what came on standard input |
//! | `events.jsonl` | the journal; `events.jsonl.torn` has torn ends of it |
//! | `children/NAME.jsonl` | what a child printed, byte by byte; `NAME.2.jsonl` for its second attempt |
//! | `children/NAME.stderr` | what it printed on standard error |
//! | `results.md` | what the judge is shown |
//! | `report.json`, `report.md` | the report |

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use pinion_files::Replace;
use pinion_status::{Code, Failure};

use crate::{Contents, Journal, Plan, Report, RunState, RunStatus};

/// The largest `plan.json` that is read: it holds every prompt of the plan.
const PLAN_LIMIT: u64 = 256 << 20;

/// A run's directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held for as long as somebody runs it.
    lock: Option<File>,
}

impl RunDir {
    /// Makes the directory of a new run below `root`, or exactly `path`, and locks it.
    pub fn create(root: &Path, path: Option<&Path>) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => root.join(new_id()),
        };
        if path.join("events.jsonl").exists() {
            let message = format!(
                "{} is the directory of another run; use `pinion fleet resume {0}` or name another",
                path.display()
            );
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        let mut builder = fs::DirBuilder::new();
        // Prompts, answers and code are nobody else's business.
        let made = builder
            .recursive(true)
            .mode(0o700)
            .create(path.join("children"));
        made.map_err(|error| Failure::io(path.display(), &error))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut directory = Self { path, lock: None };
        directory.lock()?;
        Ok(directory)
    }

    /// The directory of an existing run: an id below `root`, `last` for the newest, or a path.
    pub fn find(root: &Path, name: &str) -> Result<Self, Failure> {
        let below = root.join(name);
        let path = if name == "last" {
            Self::list(root).pop().map(|directory| directory.path)
        } else {
            [below, PathBuf::from(name)]
                .into_iter()
                .find(|path| path.join("events.jsonl").is_file())
        };
        let Some(path) = path else {
            let message =
                format!("there is no run \"{name}\"; `pinion fleet list` shows those there are");
            return Err(Failure::new(Code::NotFound, message));
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self { path, lock: None })
    }

    /// All runs below `root`, the oldest first.
    pub fn list(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut runs: Vec<PathBuf> = paths
            .filter(|path| path.join("events.jsonl").is_file())
            .collect();
        runs.sort();
        let directory = |path| Self { path, lock: None };
        runs.into_iter().map(directory).collect()
    }

    /// What is left below `root` of runs that ended before they had a journal.
    pub fn remains(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|path| {
            path.join("lock").is_file()
                && path.join("children").is_dir()
                && !path.join("events.jsonl").exists()
        });
        paths.map(|path| Self { path, lock: None }).collect()
    }

    /// Makes sure that nobody else runs it.
    pub fn lock(&mut self) -> Result<(), Failure> {
        let path = self.path.join("lock");
        match pinion_files::lock(&path, Duration::ZERO) {
            Ok(file) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let message = format!("{} is being run by another process", self.path.display());
                Err(Failure::new(Code::FailedPrecondition, message))
            }
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }

    /// Whether somebody runs it now.
    pub fn is_running(&self) -> bool {
        let file = pinion_files::open(&self.path.join("lock"));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the directory's name.
    pub fn id(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where the input is.
    pub fn input(&self) -> PathBuf {
        self.path.join("input")
    }

    /// The log of an attempt, as seen from the directory.
    pub fn log_name(child: &str, attempt: u32) -> String {
        match attempt {
            1 => format!("children/{child}.jsonl"),
            attempt => format!("children/{child}.{attempt}.jsonl"),
        }
    }

    /// Where an attempt's standard error goes.
    pub fn stderr(&self, child: &str, attempt: u32) -> PathBuf {
        let name = match attempt {
            1 => format!("{child}.stderr"),
            attempt => format!("{child}.{attempt}.stderr"),
        };
        self.path.join("children").join(name)
    }

    /// Keeps the plan.
    pub fn save_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(plan).unwrap_or_default();
        self.write("plan.json", &text)
    }

    /// The plan of the run.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let path = self.path.join("plan.json");
        let bytes = pinion_files::read(&path, PLAN_LIMIT)
            .map_err(|error| Failure::io(path.display(), &error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let why = pinion_jsonl::explain_with_position(&error);
            let message = format!(
                "{} is damaged, so the run cannot be resumed: {why}",
                path.display()
            );
            Failure::new(Code::DataLoss, message)
        })
    }

    /// Opens the journal to go on with it.
    pub fn journal(&self) -> Result<(Journal, Contents), Failure> {
        let path = self.path.join("events.jsonl");
        Journal::open(&path).map_err(|error| Failure::io(path.display(), &error))
    }

    /// The state of the run, as its journal has it now.
    pub fn state(&self) -> Result<RunState, Failure> {
        let path = self.path.join("events.jsonl");
        let contents = Journal::read(&path).map_err(|error| Failure::io(path.display(), &error))?;
        let mut state = RunState::from_records(&contents.records);
        // What a resumed run has told is in the journal itself.
        let told = |message: &String| state.warnings.contains(message);
        let untold: Vec<String> = contents.damage.into_iter().filter(|m| !told(m)).collect();
        state.warnings.extend(untold);
        Ok(state)
    }

    /// The report of the run, made from its journal. A run that has not ended is running or was killed.
    pub fn report(&self) -> Result<Report, Failure> {
        let plan = self.plan().ok();
        let judge = plan.as_ref().and_then(|plan| plan.judge.as_ref());
        let verdict = plan.as_ref().and_then(|plan| plan.verdict.as_ref());
        let field = verdict.map(|verdict| verdict.field.as_str());
        let judge = judge.map(|judge| judge.name.as_str());
        let mut report = Report::new(&self.state()?, judge, field);
        if report.status == RunStatus::Running && !self.is_running() {
            report.status = RunStatus::Killed;
        }
        Ok(report)
    }

    /// Writes both reports.
    pub fn save_report(&self, report: &Report) -> Result<(), Failure> {
        let mut json = serde_json::to_vec_pretty(report).unwrap_or_default();
        json.push(b'\n');
        self.write("report.json", &json)?;
        self.write("report.md", report.markdown().as_bytes())
    }

    /// Writes a file in one piece: whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        pinion_files::replace(&path, bytes, Replace::USER)
            .map_err(|error| Failure::io(path.display(), &error))
    }

    /// Deletes the run.
    pub fn delete(self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.path).map_err(|error| Failure::io(self.path.display(), &error))
    }
}

/// Sorts by time; two of the same moment differ.
fn new_id() -> String {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let (_, low) = uuid::Uuid::new_v4().as_u64_pair();
    format!("{now}-{:05x}", low & 0xf_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_the_directory_neither_blocks_nor_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDir::create(place.path(), Some(&place.path().join("run"))).unwrap();
        let names = ["report.md", "plan.json", "events.jsonl"];
        for name in names {
            let fifo = directory.path().join(name);
            nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let errors = [
            directory.write("report.md", b"x").unwrap_err(),
            directory.plan().unwrap_err(),
            directory.state().unwrap_err(),
            directory.journal().unwrap_err(),
        ];
        for error in errors {
            assert!(error.message.contains("is a FIFO"), "{}", error.message);
        }
        for name in names {
            assert!(!directory.path().join(name).is_file());
        }
    }
}
