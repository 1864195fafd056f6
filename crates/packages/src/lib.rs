//! Packages of extensions, skills and prompt templates: fetches them with `npm` and `git`, installs, updates and
//! removes them.
//!
//! A package is prepared in a directory beside its destination and moved there in one step; the settings name it only
//! after that. The sources, the contents and the settings themselves belong to `pinion-config`.

mod archive;
mod error;
mod fetcher;
mod install;
mod report;
mod stage;

use std::fs;

use pinion_config::{Dirs, Package, PackageSource, Scope, remove_package};

pub use error::PackageError;
pub use install::Installed;
pub use report::{package_line, package_row};

/// The permission to fetch from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Allowed,
    Off,
}

/// Installs, updates and removes the packages of one user and one project.
#[derive(Clone, Copy)]
pub struct Installer<'a> {
    pub dirs: &'a Dirs,
    pub network: Network,
    /// Receives warnings about a package that is installed without all its dependencies.
    pub warn: fn(&str),
}

impl std::fmt::Debug for Installer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Installer")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// The result of an update.
#[derive(Debug)]
pub enum Updated {
    /// A directory that the settings name directly; there is nothing to fetch.
    InPlace,
    /// Installed already, and its source names the version.
    Pinned,
    /// Fetched; `before` is the version that it replaces, if that was known.
    Fetched {
        before: Option<String>,
        installed: Box<Installed>,
    },
}

/// Parses the source of a package as a command line names it.
pub fn parse_source(dirs: &Dirs, text: &str) -> Result<PackageSource, PackageError> {
    PackageSource::parse(text, &dirs.cwd, &dirs.home).map_err(|error| PackageError::Source {
        text: text.to_owned(),
        reason: error.to_string(),
    })
}

impl Installer<'_> {
    /// Fetches a package again, unless its version is pinned and it is installed.
    pub fn update(&self, package: &Package) -> Result<Updated, PackageError> {
        let source = &package.source;
        if source.install_directory(self.dirs, package.scope).is_none() {
            return Ok(Updated::InPlace);
        }
        if source.is_pinned() && package.root.is_some() {
            return Ok(Updated::Pinned);
        }
        let before = package.version();
        let installed = Box::new(self.install(package.scope, source)?);
        Ok(Updated::Fetched { before, installed })
    }

    /// Removes a package from the settings of `scope`, and its directory if pinion made it. Returns the source as the
    /// settings named it, or `None` if they did not.
    pub fn remove(
        &self,
        scope: Scope,
        source: &PackageSource,
    ) -> Result<Option<String>, PackageError> {
        let Some(name) = remove_package(self.dirs, scope, source)? else {
            return Ok(None);
        };
        if let Some(directory) = source
            .install_directory(self.dirs, scope)
            .filter(|directory| directory.is_dir())
        {
            if let Err(error) = fs::remove_dir_all(&directory) {
                return Err(PackageError::Leftover {
                    name,
                    directory,
                    error,
                });
            }
            stage::remove_empty_parents(&directory, base(self.dirs, scope));
        }
        Ok(Some(name))
    }
}

/// Returns the directory that holds the packages and the settings of a scope.
fn base(dirs: &Dirs, scope: Scope) -> &std::path::Path {
    match scope {
        Scope::Project => &dirs.project_dir,
        Scope::User | Scope::Temporary => &dirs.agent_dir,
    }
}
