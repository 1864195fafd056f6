//! The steps from a source to an installed package: fetch on a stage, move into place, write into the settings.

use std::fs;
use std::path::{Path, PathBuf};

use pinion_config::{
    Dirs, GitSource, PackageContents, PackageSource, Scope, SourceKind, record_package,
};
use pinion_files::Replace;
use serde_json::Value;

use crate::fetcher::Fetcher;
use crate::stage::Stage;
use crate::{Installer, Network, PackageError, archive, base};

/// A package after its installation.
#[derive(Debug)]
pub struct Installed {
    /// The source as the settings name it.
    pub source: PackageSource,
    pub version: Option<String>,
    pub root: PathBuf,
    pub contents: PackageContents,
}

impl Installer<'_> {
    /// Installs a package and records it in the settings of `scope`.
    pub fn install(&self, scope: Scope, source: &PackageSource) -> Result<Installed, PackageError> {
        if let SourceKind::Local(path) = source.kind()
            && !archive::is_archive(path)
        {
            return record_in_place(self.dirs, scope, source, path);
        }
        let stage = Stage::open(base(self.dirs, scope))?;
        let (source, ready) = self.fetch(source, stage.path())?;
        let contents = PackageContents::of(&source, &ready);
        require_contents(&source, &contents)?;
        let directory = source
            .install_directory(self.dirs, scope)
            .ok_or(PackageError::NoDirectory)?;
        stage.finish(&ready, &directory, || {
            record_package(self.dirs, scope, &source).map_err(PackageError::from)
        })?;
        if scope == Scope::Project {
            ignore_installed(self.dirs, &directory)?;
        }
        Ok(Installed {
            version: version(&directory),
            contents: PackageContents::of(&source, &directory),
            source,
            root: directory,
        })
    }

    /// Makes a package ready on the stage; returns its directory there and its source as the settings will name it.
    fn fetch(
        &self,
        source: &PackageSource,
        stage: &Path,
    ) -> Result<(PackageSource, PathBuf), PackageError> {
        match source.kind() {
            SourceKind::Npm { name, .. } => {
                let ready = fetch_npm(source, name, stage, self.network)?;
                Ok((source.clone(), ready))
            }
            SourceKind::Git(git) => {
                let ready = fetch_git(source, git, stage, self.network)?;
                self.add_dependencies(source.text(), &ready)?;
                Ok((source.clone(), ready))
            }
            SourceKind::Local(path) => {
                let ready = archive::unpack(path, &stage.join("unpacked")).map_err(|error| {
                    PackageError::Archive {
                        path: path.clone(),
                        error,
                    }
                })?;
                let named = named_by_manifest(self.dirs, path, &ready)?;
                self.add_dependencies(named.text(), &ready)?;
                Ok((named, ready))
            }
        }
    }

    /// Fetches the dependencies of an unpacked package; warns about the missing ones if that is not possible.
    fn add_dependencies(&self, text: &str, root: &Path) -> Result<(), PackageError> {
        let manifest = manifest(root);
        let members = manifest["dependencies"].as_object();
        let names = members.into_iter().flatten().map(|(name, _)| name.as_str());
        let needed: Vec<&str> = names
            .filter(|name| !is_of_host(name) && !root.join("node_modules").join(name).is_dir())
            .collect();
        if needed.is_empty() {
            return Ok(());
        }
        let npm = Fetcher::find("npm").filter(|_| self.network == Network::Allowed);
        let Some(npm) = npm else {
            let reason = match self.network {
                Network::Allowed => "npm is not on the PATH",
                Network::Off => "the network is off",
            };
            (self.warn)(&format!(
                "{text} depends on {}, which were not installed because {reason}. \
                 If it needs them, loading it says so.",
                needed.join(", ")
            ));
            return Ok(());
        };
        let mut arguments = vec!["install"];
        arguments.extend(NPM_FLAGS);
        npm.run(&arguments, root)
    }
}

fn record_in_place(
    dirs: &Dirs,
    scope: Scope,
    source: &PackageSource,
    path: &Path,
) -> Result<Installed, PackageError> {
    if !path.exists() {
        return Err(PackageError::Missing(path.to_owned()));
    }
    let contents = PackageContents::of(source, path);
    require_contents(source, &contents)?;
    record_package(dirs, scope, source)?;
    Ok(Installed {
        source: source.clone(),
        version: version(path),
        root: path.to_owned(),
        contents,
    })
}

fn require_contents(
    source: &PackageSource,
    contents: &PackageContents,
) -> Result<(), PackageError> {
    if contents.is_empty() {
        return Err(PackageError::Empty(source.text().to_owned()));
    }
    Ok(())
}

fn fetch_npm(
    source: &PackageSource,
    name: &str,
    stage: &Path,
    network: Network,
) -> Result<PathBuf, PackageError> {
    require_network(source, network)?;
    let Some(npm) = Fetcher::find("npm") else {
        return Err(PackageError::NoNpm {
            source_text: source.text().to_owned(),
            name: name.to_owned(),
        });
    };
    let directory = stage.join("npm");
    fs::create_dir(&directory)?;
    let manifest = directory.join("package.json");
    pinion_files::replace(&manifest, b"{\"private\": true}\n", Replace::USER)?;
    let spec = source.text().trim_start_matches("npm:");
    let mut arguments = vec!["install", "--install-strategy=shallow"];
    arguments.extend(NPM_FLAGS);
    arguments.extend(["--", spec]);
    npm.run(&arguments, &directory)?;
    let modules = directory.join("node_modules");
    let ready = modules.join(name);
    if !ready.is_dir() {
        return Err(PackageError::NotFetched(spec.to_owned()));
    }
    nest(&modules, name, &ready)?;
    Ok(ready)
}

/// Flags of `npm install`: pinion provides the packages that extensions name as peers, and no script of a package
/// runs during its installation.
const NPM_FLAGS: &[&str] = &[
    "--omit=dev",
    "--legacy-peer-deps",
    "--ignore-scripts",
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
];

/// Moves the dependencies of a package into it: an older npm installs them beside it.
fn nest(modules: &Path, name: &str, package: &Path) -> Result<(), PackageError> {
    let top = name.split('/').next().unwrap_or(name);
    let inside = package.join("node_modules");
    // A package could link its own directory of dependencies to another place.
    if fs::symlink_metadata(&inside).is_ok_and(|found| !found.is_dir()) {
        return Err(PackageError::Dependencies(inside));
    }
    for entry in fs::read_dir(modules)? {
        let entry = entry?;
        let beside = entry.file_name();
        let target = inside.join(&beside);
        if beside == top || beside.to_string_lossy().starts_with('.') || target.exists() {
            continue;
        }
        fs::create_dir_all(&inside)?;
        pinion_files::rename_new(&entry.path(), &target)?;
    }
    Ok(())
}

fn fetch_git(
    source: &PackageSource,
    repository: &GitSource,
    stage: &Path,
    network: Network,
) -> Result<PathBuf, PackageError> {
    if repository.host != "localhost" {
        require_network(source, network)?;
    }
    let Some(git) = Fetcher::find("git") else {
        return Err(PackageError::NoGit(source.text().to_owned()));
    };
    let clone = |options: &[&str], name: &str| {
        let mut arguments = vec![
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "advice.detachedHead=false",
        ];
        arguments.extend(["clone", "--quiet"]);
        arguments.extend(options);
        arguments.extend(["--", &repository.url, name]);
        git.run(&arguments, stage)
    };
    let Some(reference) = &repository.reference else {
        clone(&["--depth=1"], "shallow")?;
        return Ok(stage.join("shallow"));
    };
    if clone(&["--depth=1", "--branch", reference], "shallow").is_ok() {
        return Ok(stage.join("shallow"));
    }
    // `git clone --branch` accepts no commit hash, so pinion clones the whole repository.
    clone(&["--no-checkout"], "whole")?;
    let whole = stage.join("whole");
    git.run(
        &["checkout", "--quiet", "--detach", reference, "--"],
        &whole,
    )?;
    Ok(whole)
}

/// Reports whether pinion always provides the package itself.
fn is_of_host(name: &str) -> bool {
    matches!(name, "typebox" | "@sinclair/typebox")
        || name.starts_with("@mariozechner/pi-")
        || name.starts_with("@earendil-works/pi-")
}

/// Returns the source of an archive by the name and version in its manifest, as if npm had fetched it.
fn named_by_manifest(
    dirs: &Dirs,
    archive: &Path,
    root: &Path,
) -> Result<PackageSource, PackageError> {
    let manifest = manifest(root);
    let name = manifest["name"].as_str();
    let version = manifest["version"].as_str();
    let text = match (name, version) {
        (Some(name), Some(version)) => format!("npm:{name}@{version}"),
        (Some(name), None) => format!("npm:{name}"),
        (None, _) => String::new(),
    };
    let source = PackageSource::parse(&text, &dirs.cwd, &dirs.home).ok();
    let source = source.filter(|source| matches!(source.kind(), SourceKind::Npm { .. }));
    source.ok_or_else(|| PackageError::Unnamed(archive.to_owned()))
}

fn require_network(source: &PackageSource, network: Network) -> Result<(), PackageError> {
    match network {
        Network::Allowed => Ok(()),
        Network::Off => Err(PackageError::Offline(source.text().to_owned())),
    }
}

/// Adds a `.gitignore`, so that packages installed in a project stay out of its repository.
fn ignore_installed(dirs: &Dirs, place: &Path) -> Result<(), PackageError> {
    let inside = place.strip_prefix(&dirs.project_dir).ok();
    let Some(top) = inside.and_then(|inside| inside.iter().next()) else {
        return Ok(());
    };
    let file = dirs.project_dir.join(top).join(".gitignore");
    if !file.exists() {
        pinion_files::replace(&file, b"*\n", Replace::USER)?;
    }
    Ok(())
}

fn version(root: &Path) -> Option<String> {
    manifest(root)["version"].as_str().map(str::to_owned)
}

fn manifest(root: &Path) -> Value {
    let text = pinion_files::read(&root.join("package.json"), 16 << 20).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_moved_into_the_package_only() {
        let directory = tempfile::tempdir().unwrap();
        let modules = directory.path().join("node_modules");
        let package = modules.join("package");
        for name in ["package", "dependency"] {
            fs::create_dir_all(modules.join(name)).unwrap();
        }
        fs::create_dir(directory.path().join("elsewhere")).unwrap();
        let inside = package.join("node_modules");
        std::os::unix::fs::symlink("../../elsewhere", &inside).unwrap();
        assert!(nest(&modules, "package", &package).is_err());
        assert!(modules.join("dependency").is_dir());
        fs::remove_file(&inside).unwrap();
        nest(&modules, "package", &package).unwrap();
        assert!(inside.join("dependency").is_dir());
    }
}
