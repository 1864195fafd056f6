//! Errors of stores.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A failed operation on a store.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The flags do not select one store.
    #[error("{0}")]
    Options(String),
    /// The program does not contain this store.
    #[error("unsupported persistence backend \"{name}\"{hint}")]
    Backend {
        /// The name as it was given.
        name: String,
        /// A replacement to use; empty, or beginning with a separator.
        hint: &'static str,
    },
    /// The store could not be opened.
    #[error("{prefix}{source}")]
    Open {
        /// Names the store in the words that clients expect.
        prefix: &'static str,
        source: Box<HistoryError>,
    },
    /// The file does not exist, and reading does not create it.
    #[error("there is no database at {place}; check the path")]
    Missing { place: String },
    /// The file is not a database. It is left unchanged.
    #[error("{place} is not a SQLite database and is left untouched; name another file")]
    NotADatabase { place: String },
    /// The database is damaged. It is left unchanged.
    #[error(
        "{place} is damaged ({detail}) and is left untouched; keep a copy, recover it with `sqlite3 {place} .recover`, or name another file"
    )]
    Damaged {
        place: String,
        /// The first problem that the check found.
        detail: String,
    },
    /// The tables exist but differ from the expected ones.
    #[error("{place}: {detail}")]
    Schema {
        place: String,
        /// The difference, and what to do next.
        detail: String,
    },
    /// Other processes locked the database for too long.
    #[error(
        "{place} was locked by another process for {} seconds; end that process or try again",
        waited.as_secs()
    )]
    Busy {
        place: String,
        /// The time spent waiting.
        waited: Duration,
    },
    /// The disk is full. Data stored before is intact.
    #[error("no room left to write {place}; free some space: what was stored before is intact")]
    Full { place: String },
    /// The database is read-only.
    #[error(
        "{place} cannot be written ({detail}); check the permissions of the file and its directory"
    )]
    ReadOnly {
        place: String,
        /// The system's message.
        detail: String,
    },
    /// Another event with this number is stored.
    #[error(
        "event conflict for session {session} ordinal {ordinal}: another process writes the same session; give each its own --session-id"
    )]
    Conflict {
        session: String,
        /// The number of both events.
        ordinal: u64,
    },
    /// The databases count in signed 64-bit numbers.
    #[error("ordinal {0} is larger than a database can hold")]
    Ordinal(u64),
    /// A required name is empty.
    #[error("{0} is empty")]
    Blank(&'static str),
    /// A projection failed while entities were rebuilt.
    #[error("could not project event {ordinal} of session {session}: {message}")]
    Projection {
        session: String,
        ordinal: u64,
        /// The message of the projection.
        message: String,
    },
    /// A text is not a turn.
    #[error("not a turn: {0}")]
    Turn(String),
    /// The server could not be reached, or rejected the connection.
    #[error("could not connect to {place}: {detail}")]
    Connect {
        /// The server, without the password.
        place: String,
        detail: String,
    },
    /// The database reported an error.
    #[error("could not {action} {place}: {detail}")]
    Database {
        action: &'static str,
        place: String,
        /// The message of the database.
        detail: String,
    },
    /// A file operation failed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl HistoryError {
    /// Returns a stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Options(_) => "history_options",
            Self::Backend { .. } => "history_backend",
            Self::Open { source, .. } => source.code(),
            Self::Missing { .. } => "history_missing",
            Self::NotADatabase { .. } => "history_not_a_database",
            Self::Damaged { .. } => "history_damaged",
            Self::Schema { .. } => "history_schema",
            Self::Busy { .. } => "history_busy",
            Self::Full { .. } => "history_full",
            Self::ReadOnly { .. } => "history_read_only",
            Self::Conflict { .. } => "history_conflict",
            Self::Ordinal(_) => "history_ordinal",
            Self::Blank(_) => "history_blank",
            Self::Projection { .. } => "history_projection",
            Self::Turn(_) => "history_turn",
            Self::Connect { .. } => "history_connect",
            Self::Database { .. } => "history_database",
            Self::Io { .. } => "history_io",
        }
    }
}
