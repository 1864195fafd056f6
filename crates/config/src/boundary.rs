//! Prevents an untrusted project from offering files outside its directory.
//!
//! A link in a repository could show a private key to a model as if it were a prompt. Therefore a
//! file of an untrusted directory must be below it after following every link.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Notice, ProjectTrust};

/// The directory that the files of a project must be in.
#[derive(Debug, Clone)]
pub(crate) enum PathBoundary {
    Open,
    Below(PathBuf),
}

impl PathBoundary {
    /// A boundary around `directory`, or none if its project is trusted.
    pub(crate) fn around(directory: &Path, trust: ProjectTrust) -> Self {
        match trust {
            ProjectTrust::Trusted => Self::Open,
            // A directory without a real path permits nothing, because no real path is below it.
            ProjectTrust::Untrusted => {
                Self::Below(fs::canonicalize(directory).unwrap_or(directory.to_owned()))
            }
        }
    }

    /// Reports whether the file may be read.
    pub(crate) fn permits(&self, file: &Path) -> bool {
        match self {
            Self::Open => true,
            Self::Below(root) => fs::canonicalize(file).is_ok_and(|real| real.starts_with(root)),
        }
    }

    /// The notice about a file that is not permitted.
    pub(crate) fn notice(file: &Path) -> Notice {
        let message = "leads out of a project that is not trusted, so it is not read; \
                       run `pinion trust` here to accept it";
        Notice::about(file, "untrusted_link", message)
    }
}
