//! What can go wrong with a session, as data.

use std::io;
use std::path::PathBuf;

use crate::EntryId;
use crate::disk::SIZE_LIMIT;

/// An operation on a session failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file holds something, but not a session. It is left as it is.
    #[error(
        "{} is not a session file and is left untouched; name another file, or remove this one",
        path.display()
    )]
    NotASession {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than what is read of a file that is not an intact session. It is left as it is.
    #[error(
        "{} has {} and is not an intact session; such a file is read up to {}. Name another session, or move this file away",
        path.display(),
        amount(*size),
        amount(SIZE_LIMIT)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Another process writes this session.
    #[error(
        "session {} is in use by {}; close it there, or work on a copy with --fork",
        path.display(),
        holder(*pid)
    )]
    Locked {
        /// The session file.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        pid: Option<u32>,
    },
    /// The session was opened for reading.
    #[error("session {} is open read-only; fork it to continue", path.display())]
    ReadOnly {
        /// The session file.
        path: PathBuf,
    },
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
        /// The session file.
        path: PathBuf,
        /// Entries that are in memory only.
        pending: usize,
        /// What the system said.
        source: io::Error,
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
    /// No entry has this id.
    #[error("Entry {0} not found")]
    EntryNotFound(String),
    /// Only a user message can be forked.
    #[error("Invalid entry ID for forking")]
    InvalidFork,
    /// The session has no current entry.
    #[error("Cannot clone session: no current entry selected")]
    NothingToClone,
    /// Summaries are entries of their own and are never stored as messages.
    #[error("a {role} message cannot be stored as a message; append a {entry} entry")]
    NotStorable {
        /// The role of the message.
        role: &'static str,
        /// The entry type to use instead.
        entry: &'static str,
    },
    /// No session id starts like this.
    #[error("No session found matching '{0}'")]
    NoMatch(String),
    /// The id belongs to a session of another project.
    #[error(
        "session '{id}' belongs to another project ({cwd}); start there, or fork it with --fork {}",
        path.display()
    )]
    OtherProject {
        /// The full id.
        id: String,
        /// The session file.
        path: PathBuf,
        /// The working directory it was made in.
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
    /// A stable word for programs.
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

/// A size in MiB, or in bytes below one.
fn amount(bytes: u64) -> String {
    if bytes < 1 << 20 {
        return format!("{bytes} bytes");
    }
    format!("{} MiB", bytes >> 20)
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        None => "another process".to_owned(),
        Some(pid) if pid == std::process::id() => "another session of this process".to_owned(),
        Some(pid) => format!("process {pid}"),
    }
}

/// Something worth telling the user that did not stop us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A stable word for programs.
    pub code: &'static str,
    /// For people.
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
