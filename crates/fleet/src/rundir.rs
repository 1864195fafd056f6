//! The directory of a run: its plan and input, its journal, its logs and its report.
//!
//! | file | contents |
//! |---|---|
//! | `plan.json` | the validated plan, including all prompts |
//! | `input` | the data from standard input |
//! | `events.jsonl` | the journal; `events.jsonl.torn` has torn last lines of it |
//! | `children/NAME.jsonl` | the output of a child, byte by byte; `NAME.2.jsonl` for its second attempt |
//! | `children/NAME.stderr` | the standard error of a child |
//! | `results.md` | the results that the judge receives |
//! | `report.json`, `report.md` | the report |

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use pinion_files::Replace;
use pinion_status::{Code, Failure};

use crate::{Journal, JournalContents, Plan, Report, RunState, RunStatus};

/// The largest `plan.json` that is read: it holds every prompt of the plan.
const PLAN_LIMIT: u64 = 256 << 20;

#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Locked while this process runs the run.
    lock: Option<File>,
}

impl RunDir {
    /// Creates the directory of a new run, at `path` or with a new id under `root`, and locks it.
    pub fn create(root: &Path, path: Option<&Path>) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => root.join(new_id()),
        };
        if path.join("events.jsonl").exists() {
            let message = format!(
                "\"{}\" is the directory of another run; continue that run with `pinion fleet resume {0}`, or choose another directory",
                path.display()
            );
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        // Prompts, answers and code must not be readable by other users.
        let made = pinion_files::create_private_directory(&path.join("children"));
        made.map_err(|error| Failure::io(path.display(), &error))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut directory = Self { path, lock: None };
        directory.lock()?;
        Ok(directory)
    }

    /// Finds the directory of an existing run: an id under `root`, `last` for the newest, or a path.
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
            let message = format!("there is no run \"{name}\"; `pinion fleet list` shows all runs");
            return Err(Failure::new(Code::NotFound, message));
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self { path, lock: None })
    }

    /// Returns all runs under `root`, oldest first.
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

    /// Returns the directories under `root` of runs that ended before they had a journal.
    pub fn leftovers(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|path| {
            path.join("lock").is_file()
                && path.join("children").is_dir()
                && !path.join("events.jsonl").exists()
        });
        paths.map(|path| Self { path, lock: None }).collect()
    }

    /// Locks the run for this process; fails if another process runs it.
    pub fn lock(&mut self) -> Result<(), Failure> {
        let path = self.path.join("lock");
        match pinion_files::lock(&path, Duration::ZERO) {
            Ok(file) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let message = format!(
                    "\"{}\" is being run by another process; wait until it ends",
                    self.path.display()
                );
                Err(Failure::new(Code::FailedPrecondition, message))
            }
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }

    /// Reports whether a process runs it now.
    pub fn is_running(&self) -> bool {
        let file = pinion_files::open(&self.path.join("lock"));
        file.is_ok_and(|file| pinion_files::is_locked(&file))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the run's id, which is the directory's name.
    pub fn id(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the path of the input file.
    pub fn input(&self) -> PathBuf {
        self.path.join("input")
    }

    /// Returns the path of an attempt's log, relative to the directory.
    pub fn log_name(child: &str, attempt: u32) -> String {
        match attempt {
            1 => format!("children/{child}.jsonl"),
            attempt => format!("children/{child}.{attempt}.jsonl"),
        }
    }

    /// Returns the path of the file for an attempt's standard error.
    pub fn stderr(&self, child: &str, attempt: u32) -> PathBuf {
        let name = match attempt {
            1 => format!("{child}.stderr"),
            attempt => format!("{child}.{attempt}.stderr"),
        };
        self.path.join("children").join(name)
    }

    /// Writes `plan.json`.
    pub fn save_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(plan).unwrap_or_default();
        self.write("plan.json", &text)
    }

    /// Reads `plan.json`.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let path = self.path.join("plan.json");
        let bytes = pinion_files::read(&path, PLAN_LIMIT)
            .map_err(|error| Failure::io(path.display(), &error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let why = pinion_jsonl::explain_with_position(&error);
            let message = format!(
                "\"{}\" is damaged, so the run cannot be resumed: {why}",
                path.display()
            );
            Failure::new(Code::DataLoss, message)
        })
    }

    /// Opens the journal for appending.
    pub fn journal(&self) -> Result<(Journal, JournalContents), Failure> {
        let path = self.path.join("events.jsonl");
        Journal::open(&path).map_err(|error| Failure::io(path.display(), &error))
    }

    /// Computes the state of the run from its journal.
    pub fn state(&self) -> Result<RunState, Failure> {
        let path = self.path.join("events.jsonl");
        let contents = Journal::read(&path).map_err(|error| Failure::io(path.display(), &error))?;
        let mut state = RunState::from_records(&contents.records);
        // A resumed run has already written its warnings about damage to the journal.
        let known = |message: &String| state.warnings.contains(message);
        let new: Vec<String> = contents.damage.into_iter().filter(|m| !known(m)).collect();
        state.warnings.extend(new);
        Ok(state)
    }

    /// Creates the report from the journal. A run that has not ended is running or was killed.
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

    /// Writes `report.json` and `report.md`.
    pub fn save_report(&self, report: &Report) -> Result<(), Failure> {
        let mut json = serde_json::to_vec_pretty(report).unwrap_or_default();
        json.push(b'\n');
        self.write("report.json", &json)?;
        self.write("report.md", report.markdown().as_bytes())
    }

    /// Writes a file atomically.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        pinion_files::replace(&path, bytes, Replace::USER)
            .map_err(|error| Failure::io(path.display(), &error))
    }

    pub fn delete(self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.path).map_err(|error| Failure::io(self.path.display(), &error))
    }
}

/// Creates an id that sorts by time; a random part distinguishes runs that start at the same time.
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
