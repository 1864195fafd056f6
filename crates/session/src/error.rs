//! The errors and notices of sessions.

use std::io;
use std::path::PathBuf;

use pinion_text::amount;

use crate::EntryId;
use crate::session_file::SIZE_LIMIT;

/// An operation on a session failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file has content that is not a session. It is not changed.
    #[error(
        "{} is not a session file and is left untouched; name another file, or remove this one",
        path.display()
    )]
    NotASession { path: PathBuf },
    /// The file is not an intact session and larger than the limit for such files. It is not changed.
    #[error(
        "{} has {} and is not an intact session; such a file is read up to {}. Name another session, or move this file away",
        path.display(),
        amount::limit(*size),
        amount::limit(SIZE_LIMIT)
    )]
    TooLarge {
        path: PathBuf,
        /// The size of the file in bytes.
        size: u64,
    },
    /// Another process has this session open for writing.
    #[error(
        "session {} is in use by {}; close it there, or work on a copy with --fork",
        path.display(),
        holder(*pid)
    )]
    Locked {
        path: PathBuf,
        /// The process that has the lock, if the system reports it.
        pid: Option<u32>,
    },
    /// The session was opened for reading.
    #[error("session {} is open read-only; fork it to continue", path.display())]
    ReadOnly { path: PathBuf },
    /// The entry is part of the session in memory but not yet on disk.
    ///
    /// The file ends with its last complete entry, and the next append tries again.
    #[error(
        "could not save to {}: {source}; {pending} entries wait in memory and are written with the next one",
        path.display()
    )]
    NotSaved {
        /// The entry that was appended.
        id: EntryId,
        path: PathBuf,
        /// The number of entries that are only in memory.
        pending: usize,
        source: io::Error,
    },
    /// A file operation failed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// The failed operation as a verb, such as `open`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// No entry has this id.
    #[error("Entry {0} not found")]
    EntryNotFound(String),
    /// The entry is not a user message, or does not exist.
    #[error("Invalid entry ID for forking")]
    InvalidFork,
    /// The session has no current entry.
    #[error("Cannot clone session: no current entry selected")]
    NothingToClone,
    /// Summaries have their own entry types and cannot be stored as messages.
    #[error("a {role} message cannot be stored as a message; append a {entry} entry")]
    NotStorable {
        role: &'static str,
        /// The entry type to use instead.
        entry: &'static str,
    },
    /// No session has an id with this prefix.
    #[error("No session found matching '{0}'")]
    NoMatch(String),
    /// The id belongs to a session of another project.
    #[error(
        "session '{id}' belongs to another project ({cwd}); start there, or fork it with --fork {}",
        path.display()
    )]
    OtherProject {
        id: String,
        path: PathBuf,
        /// The working directory of the session.
        cwd: String,
    },
    /// Only sessions with a file can be exported.
    #[error("Cannot export in-memory session to HTML")]
    InMemory,
    /// The session has no file yet.
    #[error("Nothing to export yet - start a conversation first")]
    NothingToExport,
}

impl SessionError {
    /// Returns a stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotASession { .. } => "not_a_session",
            Self::TooLarge { .. } => "session_too_large",
            Self::Locked { .. } => "session_locked",
            Self::ReadOnly { .. } => "session_read_only",
            Self::NotSaved { .. } => "session_not_saved",
            Self::Io { .. } => "session_io",
            Self::EntryNotFound(_) => "entry_not_found",
            Self::InvalidFork => "invalid_fork",
            Self::NothingToClone => "nothing_to_clone",
            Self::NotStorable { .. } => "not_storable",
            Self::NoMatch(_) => "session_not_found",
            Self::OtherProject { .. } => "session_other_project",
            Self::InMemory => "session_in_memory",
            Self::NothingToExport => "nothing_to_export",
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        None => "another process".to_owned(),
        Some(pid) if pid == std::process::id() => "another session of this process".to_owned(),
        Some(pid) => format!("process {pid}"),
    }
}

/// A problem that the user should see and that did not cause a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A stable name for programs.
    pub code: &'static str,
    /// A sentence for the user.
    pub message: String,
}

impl Notice {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
