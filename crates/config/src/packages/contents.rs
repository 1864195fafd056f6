//! What a package brings, before or after it is installed.

use std::path::{Path, PathBuf};

use super::{Package, PackageSource};
use crate::discovery::{Collector, Sought};

/// The files of a package that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PackageContents {
    pub extensions: Vec<PathBuf>,
    pub skills: Vec<PathBuf>,
    pub prompts: Vec<PathBuf>,
}

impl PackageContents {
    /// What lies in `root`, whatever settings narrow.
    pub fn of(source: &PackageSource, root: &Path) -> Self {
        Self::of_package(&Package::temporary(source.clone(), Some(root.to_owned())))
    }

    /// What is used of a package.
    pub fn of_package(package: &Package) -> Self {
        let files = |sought| {
            let mut notices = Vec::new();
            let mut found = Collector::new(sought, Path::new("/"), &mut notices);
            found.add_package(package);
            let candidates = found.candidates.into_iter();
            candidates.map(|candidate| candidate.path).collect()
        };
        Self {
            extensions: files(Sought::Extensions),
            skills: files(Sought::Skills),
            prompts: files(Sought::Prompts),
        }
    }

    /// Whether there is nothing of use.
    pub fn is_empty(&self) -> bool {
        self.extensions.is_empty() && self.skills.is_empty() && self.prompts.is_empty()
    }
}
