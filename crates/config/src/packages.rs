//! Packages: directories that contain extensions, skills and prompt templates.
//!
//! The `packages` lists of the settings name them. This module finds out which of them exist, and
//! reads their manifests. It installs nothing and starts no process.

mod contents;
mod manifest;
mod record;
mod source;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use contents::PackageContents;
pub(crate) use manifest::Manifest;
pub use record::{record_package, remove_package};
pub use source::{GitSource, PackageSource, SourceKind};

use crate::{Dirs, Notice, ResourceKind, Scope, Settings};

/// A package that settings or a flag name.
#[derive(Debug, Clone)]
pub struct Package {
    pub source: PackageSource,
    /// The settings that name it.
    pub scope: Scope,
    /// `None` if it is not installed.
    pub root: Option<PathBuf>,
    /// The members of its entry that restrict which of its resources are used.
    filters: Map<String, Value>,
}

impl Package {
    /// A package of this run only.
    pub(crate) fn temporary(source: PackageSource, root: Option<PathBuf>) -> Self {
        Self {
            source,
            scope: Scope::Temporary,
            root,
            filters: Map::new(),
        }
    }

    /// The version in its `package.json`.
    pub fn version(&self) -> Option<String> {
        Manifest::read(self.root.as_deref()?, &mut Vec::new()).version
    }

    /// Reports whether its entry restricts which of its resources are used.
    pub fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// The paths to which its entry restricts one kind: `None` means no restriction.
    pub(crate) fn filter(&self, kind: ResourceKind) -> Option<Vec<&str>> {
        let entries = self.filters.get(kind.key())?.as_array()?;
        Some(entries.iter().filter_map(Value::as_str).collect())
    }
}

/// The packages of the settings: the project's, then the user's. Each once; the project's entry wins.
pub fn list_packages(dirs: &Dirs, settings: &Settings) -> (Vec<Package>, Vec<Notice>) {
    let mut notices = Vec::new();
    let mut seen = HashSet::new();
    let mut packages = Vec::new();
    for (scope, entries, base, file) in [
        (
            Scope::Project,
            settings.project_packages(),
            &dirs.project_dir,
            dirs.project_settings(),
        ),
        (
            Scope::User,
            settings.user_packages(),
            &dirs.agent_dir,
            dirs.global_settings(),
        ),
    ] {
        for entry in entries {
            match read_entry(entry, base, &dirs.home) {
                Ok((source, filters)) => {
                    if seen.insert(source.identity()) {
                        packages.push(Package {
                            root: source.locate(dirs, scope),
                            source,
                            scope,
                            filters,
                        });
                    }
                }
                Err(message) => {
                    let message = format!("package {entry} is ignored: {message}");
                    notices.push(Notice::about(&file, "bad_package", message));
                }
            }
        }
    }
    (packages, notices)
}

fn read_entry(
    entry: &Value,
    base: &Path,
    home: &Path,
) -> Result<(PackageSource, Map<String, Value>), String> {
    let (text, mut filters) = match entry {
        Value::String(text) => (text.as_str(), Map::new()),
        Value::Object(members) => {
            let source = members.get("source").and_then(Value::as_str);
            (source.ok_or("it has no source")?, members.clone())
        }
        _ => return Err("it is neither a string nor an object".into()),
    };
    filters.shift_remove("source");
    Ok((PackageSource::parse(text, base, home)?, filters))
}
