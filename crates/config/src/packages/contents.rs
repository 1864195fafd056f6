//! The resources of a package, before or after it is installed.

use std::path::{Path, PathBuf};

use super::{Package, PackageSource};
use crate::discovery::{Collector, SearchKind};

/// The files of a package that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageContents {
    pub extensions: Vec<PathBuf>,
    pub skills: Vec<PathBuf>,
    pub prompts: Vec<PathBuf>,
}

impl PackageContents {
    /// The files in `root`, without the restrictions of settings.
    pub fn of(source: &PackageSource, root: &Path) -> Self {
        Self::of_package(&Package::temporary(source.clone(), Some(root.to_owned())))
    }

    /// The files of a package that its entry permits.
    pub fn of_package(package: &Package) -> Self {
        let files = |search_kind| {
            let mut notices = Vec::new();
            let mut found = Collector::new(search_kind, Path::new("/"), &mut notices);
            found.add_package(package);
            let candidates = found.candidates.into_iter();
            candidates.map(|candidate| candidate.path).collect()
        };
        Self {
            extensions: files(SearchKind::Extensions),
            skills: files(SearchKind::Skills),
            prompts: files(SearchKind::Prompts),
        }
    }

    /// Reports whether the package has no resources.
    pub fn is_empty(&self) -> bool {
        self.extensions.is_empty() && self.skills.is_empty() && self.prompts.is_empty()
    }
}
