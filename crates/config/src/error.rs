//! What can go wrong when something is written, or when a file the user named is read.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failure the caller has to tell somebody about.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The operating system refused.
    #[error("Could not {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not valid JSON and would be lost if it were written.
    #[error(
        "{}:{line}:{column}: {message}; the file was left as it is, correct it and try again",
        path.display()
    )]
    Broken {
        /// The broken file.
        path: PathBuf,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What is wrong there.
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
    PathNotText {
        /// The path.
        path: PathBuf,
    },
    /// A key of the file is not what it must be, and what it holds would be lost.
    #[error("{}: {key} must be {expected}; correct it and try again", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What it must be.
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
        /// Why.
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

    /// Adapter for `map_err`: remembers what was attempted on which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
