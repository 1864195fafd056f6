//! Results of scheduled calls: the last few of each schedule, in `scheduler.db`.
//!
//! The database is opened after the first call, or at the first request for results. If a result
//! cannot be written, the hub's log reports it; the call itself is not affected.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use pinion_status::{Code, Failure};
use pinion_text::shorten_bytes;
use rusqlite::{Connection, params};
use serde::Serialize;

/// The number of results stored per schedule.
const MAX_RESULTS: u32 = 20;
/// The most bytes of a stored output.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;
/// The longest wait for a database that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        schedule_id TEXT NOT NULL,
        started_at TEXT NOT NULL,
        finished_at TEXT NOT NULL,
        duration_ms INTEGER NOT NULL,
        success INTEGER NOT NULL,
        output TEXT,
        error TEXT
    );
    CREATE INDEX IF NOT EXISTS executions_of_schedule ON executions (schedule_id, id);";

/// A finished call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Execution {
    pub started_at: String,
    pub finished_at: String,
    pub duration_ms: i64,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Execution {
    /// Creates the result of a call that began at `started` and has just ended.
    pub fn ended(started: Timestamp, result: Result<String, String>) -> Self {
        let finished = Timestamp::now();
        let duration = finished.duration_since(started);
        let success = result.is_ok();
        let (output, error) = match result {
            Ok(output) => (Some(shorten_bytes(output, MAX_OUTPUT_BYTES)), None),
            Err(error) => (None, Some(shorten_bytes(error, MAX_OUTPUT_BYTES))),
        };
        Self {
            started_at: format!("{started:.3}"),
            finished_at: format!("{finished:.3}"),
            duration_ms: i64::try_from(duration.as_millis()).unwrap_or(i64::MAX),
            success,
            output,
            error,
        }
    }
}

/// The results of calls.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
    database: Mutex<Option<Connection>>,
}

impl History {
    /// Creates the history of the database at `path`.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            database: Mutex::new(None),
        }
    }

    /// Stores a result and deletes the oldest of its schedule.
    pub fn add(&self, id: &str, execution: &Execution) -> Result<(), Failure> {
        self.with(|database| {
            let change = database.transaction()?;
            change.execute(
                "INSERT INTO executions (schedule_id, started_at, finished_at, duration_ms, success, output, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    id,
                    execution.started_at,
                    execution.finished_at,
                    execution.duration_ms,
                    execution.success,
                    execution.output,
                    execution.error
                ],
            )?;
            change.execute(
                "DELETE FROM executions WHERE schedule_id = ?1 AND id NOT IN
                 (SELECT id FROM executions WHERE schedule_id = ?1 ORDER BY id DESC LIMIT ?2)",
                params![id, MAX_RESULTS],
            )?;
            change.commit()
        })
    }

    /// Returns the results of a schedule, newest first.
    pub fn of(&self, id: &str) -> Result<Vec<Execution>, Failure> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        self.with(|database| {
            let mut rows = database.prepare_cached(
                "SELECT started_at, finished_at, duration_ms, success, output, error
                 FROM executions WHERE schedule_id = ?1 ORDER BY id DESC",
            )?;
            let executions = rows.query_map([id], |row| {
                Ok(Execution {
                    started_at: row.get(0)?,
                    finished_at: row.get(1)?,
                    duration_ms: row.get(2)?,
                    success: row.get(3)?,
                    output: row.get(4)?,
                    error: row.get(5)?,
                })
            })?;
            executions.collect()
        })
    }

    /// Deletes the results of a removed schedule.
    pub fn forget(&self, id: &str) -> Result<(), Failure> {
        if !self.path.exists() {
            return Ok(());
        }
        self.with(|database| {
            database.execute("DELETE FROM executions WHERE schedule_id = ?1", [id])?;
            Ok(())
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("{}: {error}", self.path.display());
            Failure::new(Code::Internal, message)
        };
        let mut slot = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = match &mut *slot {
            Some(database) => database,
            none => {
                pinion_files::is_regular(&self.path).map_err(|error| failed(&error))?;
                none.insert(self.open().map_err(|error| failed(&error))?)
            }
        };
        work(database).map_err(|error| failed(&error))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let database = Connection::open(&self.path)?;
        database.busy_timeout(BUSY_TIMEOUT)?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.execute_batch(SCHEMA)?;
        Ok(database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_as_the_database() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("scheduler.db");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = History::at(path.clone()).of("a").unwrap_err();
        let message = format!("{}: is a socket, not a regular file", path.display());
        assert_eq!(error.message, message);
    }

    #[test]
    fn the_last_calls_of_each_schedule_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let history = History::at(home.path().join("scheduler.db"));
        assert_eq!(history.of("a").unwrap(), []);
        let call = |text: String| Execution::ended(Timestamp::now(), Ok(text));
        for number in 0..MAX_RESULTS + 5 {
            history.add("a", &call(number.to_string())).unwrap();
        }
        let failed = Execution::ended(Timestamp::now(), Err("no".into()));
        history.add("b", &failed).unwrap();
        let outputs = |id| -> Vec<Option<String>> {
            let calls = history.of(id).unwrap().into_iter();
            calls.map(|call| call.output).collect()
        };
        assert_eq!(outputs("a").len(), MAX_RESULTS as usize);
        assert_eq!(outputs("a")[0].as_deref(), Some("24"));
        assert_eq!(history.of("b").unwrap(), [failed]);
        history.forget("a").unwrap();
        assert!(outputs("a").is_empty());
        assert_eq!(outputs("b"), [None]);
    }

    #[test]
    fn a_long_output_is_kept_in_part() {
        let kept = Execution::ended(Timestamp::now(), Ok("é".repeat(MAX_OUTPUT_BYTES)));
        let output = kept.output.unwrap();
        assert!(output.len() <= MAX_OUTPUT_BYTES + '…'.len_utf8());
        assert!(output.ends_with("é…"));
    }
}
