//! What can go wrong with a store, as data.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An operation on a store failed.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The flags do not name one store.
    #[error("{0}")]
    Options(String),
    /// A store of this name is not in this program.
    #[error("unsupported persistence backend \"{name}\"{hint}")]
    Backend {
        /// As it was given.
        name: String,
        /// What to use instead; empty or starting with a separator.
        hint: &'static str,
    },
    /// The store could not be opened.
    #[error("{prefix}{source}")]
    Open {
        /// Which of the two stores, in the words clients know.
        prefix: &'static str,
        /// Why.
        source: Box<HistoryError>,
    },
    /// There is no such file, and reading does not make one.
    #[error("there is no database at {place}; check the path")]
    Missing {
        /// The file.
        place: String,
    },
    /// The file holds something else. It is left as it is.
    #[error("{place} is not a SQLite database and is left untouched; name another file")]
    NotADatabase {
        /// The file.
        place: String,
    },
    /// The file is a database that cannot be trusted any more. It is left as it is.
    #[error(
        "{place} is damaged ({detail}) and is left untouched; keep a copy, recover it with `sqlite3 {place} .recover`, or name another file"
    )]
    Damaged {
        /// The file.
        place: String,
        /// What the check found first.
        detail: String,
    },
    /// The tables are there, but not as this program knows them.
    #[error("{place}: {detail}")]
    Schema {
        /// The database.
        place: String,
        /// What is different, and what to do.
        detail: String,
    },
    /// Others held the database for too long.
    #[error(
        "{place} was locked by another process for {} seconds; end that process or try again",
        waited.as_secs()
    )]
    Busy {
        /// The database.
        place: String,
        /// How long it was tried.
        waited: Duration,
    },
    /// There is no room left. What was stored before is intact.
    #[error("no room left to write {place}; free some space: what was stored before is intact")]
    Full {
        /// The database.
        place: String,
    },
    /// The database may only be read.
    #[error(
        "{place} cannot be written ({detail}); check the permissions of the file and its directory"
    )]
    ReadOnly {
        /// The database.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// Another event with this number is stored.
    #[error(
        "event conflict for session {session} ordinal {ordinal}: another process writes the same session; give each its own --session-id"
    )]
    Conflict {
        /// The session.
        session: String,
        /// The number both used.
        ordinal: u64,
    },
    /// The databases count in signed 64-bit numbers.
    #[error("ordinal {0} is larger than a database can hold")]
    Ordinal(u64),
    /// A name that must not be empty is.
    #[error("{0} is empty")]
    Blank(&'static str),
    /// A projection failed while entities were rebuilt.
    #[error("could not project event {ordinal} of session {session}: {message}")]
    Projection {
        /// The session.
        session: String,
        /// The event.
        ordinal: u64,
        /// What the projection said.
        message: String,
    },
    /// A text is not a turn.
    #[error("not a turn: {0}")]
    Turn(String),
    /// The server could not be reached, or did not let us in.
    #[error("could not connect to {place}: {detail}")]
    Connect {
        /// The server, without the password.
        place: String,
        /// What went wrong.
        detail: String,
    },
    /// The database said no.
    #[error("could not {action} {place}: {detail}")]
    Database {
        /// A verb.
        action: &'static str,
        /// The database.
        place: String,
        /// What it said.
        detail: String,
    },
    /// A file operation failed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl HistoryError {
    /// A stable word for programs.
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
