//! Keeps an untrusted project from offering files that are not its own.
//!
//! A link in a repository could show a private key to a model as if it were a prompt. So a file
//! that belongs to an untrusted directory must really lie below it, after following every link.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Notice, ProjectTrust};

/// Where the files of one directory may really be.
#[derive(Debug, Clone)]
pub(crate) enum Fence {
    Open,
    Below(PathBuf),
}

impl Fence {
    /// A fence around `directory`, unless its project is trusted.
    pub(crate) fn around(directory: &Path, trust: ProjectTrust) -> Self {
        match trust {
            ProjectTrust::Trusted => Self::Open,
            // A directory without a real path admits nothing, as no real path is below it.
            ProjectTrust::Untrusted => {
                Self::Below(fs::canonicalize(directory).unwrap_or(directory.to_owned()))
            }
        }
    }

    /// Whether the file may be read.
    pub(crate) fn admits(&self, file: &Path) -> bool {
        match self {
            Self::Open => true,
            Self::Below(root) => fs::canonicalize(file).is_ok_and(|real| real.starts_with(root)),
        }
    }

    /// What to tell the user about a file that was not admitted.
    pub(crate) fn notice(file: &Path) -> Notice {
        let message = "leads out of a project that is not trusted, so it is not read; \
                       run `pinion trust` here to accept it";
        Notice::about(file, "untrusted_link", message)
    }
}
