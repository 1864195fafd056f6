//! Errors of writing, and of reading a file the user named.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failure that the caller must report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The operating system reported an error.
    #[error("Could not {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not valid JSON and would be lost if it were written.
    #[error(
        "{}:{line}:{column}: {message}; the file was left as it is, correct it and try again",
        path.display()
    )]
    Broken {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        message: String,
    },
    /// Another process holds the lock.
    #[error(
        "{} is being written by another process; try again, or remove {}.lock if none is running",
        path.display(),
        path.display()
    )]
    Locked {
        /// The file that could not be locked.
        path: PathBuf,
    },
    /// A path that cannot be stored as text.
    #[error("{} is not valid UTF-8 and cannot be recorded; rename the directory", path.display())]
    PathNotText { path: PathBuf },
    /// A key of the file has the wrong type, and its value would be lost.
    #[error("{}: {key} must be {expected}; correct it and try again", path.display())]
    WrongType {
        path: PathBuf,
        key: &'static str,
        /// The required type.
        expected: &'static str,
    },
    /// A file named on the command line does not exist.
    #[error("File not found: {}", path.display())]
    FileNotFound {
        /// The absolute path that was tried.
        path: PathBuf,
    },
    /// A file named on the command line could not be read.
    #[error("Could not read file {}: {message}", path.display())]
    Unreadable {
        /// The absolute path.
        path: PathBuf,
        /// The cause.
        message: String,
    },
}

impl ConfigError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Broken { .. } => "broken_file",
            Self::Locked { .. } => "locked",
            Self::PathNotText { .. } => "path_not_text",
            Self::WrongType { .. } => "wrong_type",
            Self::FileNotFound { .. } => "file_not_found",
            Self::Unreadable { .. } => "unreadable_file",
        }
    }

    /// Adapter for `map_err` that adds the action and the file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
