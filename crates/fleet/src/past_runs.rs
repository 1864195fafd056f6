//! Runs of the past: rows of a list, and their age.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::{ChildStatus, Failure, Report, RunDir, RunState};

impl RunDir {
    /// Returns the run as one line for people; `None` if its journal cannot be read.
    pub fn row(&self) -> Option<String> {
        let (state, report) = self.outcome()?;
        Some(format!(
            "{:<24} {:<12} {:>4}/{:<4} {:>10}  {}\n",
            self.id(),
            report.ending(),
            finished(&state),
            state.children.len(),
            state.cost().to_string(),
            state.plan,
        ))
    }

    /// Returns the run as one line of JSON; `None` if its journal cannot be read.
    pub fn json_line(&self) -> Option<String> {
        let (state, report) = self.outcome()?;
        let line = json!({
            "run": self.id(),
            "plan": state.plan,
            "status": report.status,
            "verdict": report.verdict,
            "startedAt": state.started,
            "children": state.children.len(),
            "finished": finished(&state),
            "costMicros": state.cost(),
            "directory": self.path(),
        });
        Some(format!("{line}\n"))
    }

    /// Returns the runs under `root` that last changed at least `age` ago, also those without a journal.
    pub fn older_than(root: &Path, age: Duration) -> Vec<Self> {
        let mut runs = Self::list(root);
        runs.extend(Self::leftovers(root));
        runs.retain(|run| run.is_older(age));
        runs
    }

    /// Deletes runs and returns their number. `spared` receives those that another process runs, which stay.
    pub fn delete_all(runs: Vec<Self>, mut spared: impl FnMut(&Self)) -> Result<usize, Failure> {
        let mut deleted = 0;
        for mut run in runs {
            // Holding the lock while deleting prevents a resume meanwhile.
            if run.lock().is_err() {
                spared(&run);
                continue;
            }
            run.delete()?;
            deleted += 1;
        }
        Ok(deleted)
    }

    fn outcome(&self) -> Option<(RunState, Report)> {
        Some((self.state().ok()?, self.report().ok()?))
    }

    /// Reports whether the run last changed at least `age` ago.
    pub fn is_older(&self, age: Duration) -> bool {
        let changed = |name: &str| {
            let metadata = self.path().join(name).metadata();
            metadata.and_then(|metadata| metadata.modified())
        };
        let changed = changed("events.jsonl").or_else(|_| changed("lock"));
        let now = SystemTime::now();
        changed.is_ok_and(|changed| now.duration_since(changed).unwrap_or_default() >= age)
    }
}

fn finished(state: &RunState) -> usize {
    let children = state.children.iter();
    children
        .filter(|child| child.status == ChildStatus::Finished)
        .count()
}
