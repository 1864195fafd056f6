//! The steps from a source to an installed package: fetch on a stage, move into place, write into the settings.

use std::fs;
use std::path::{Path, PathBuf};

use pinion_config::{
    Dirs, GitSource, PackageContents, PackageSource, Scope, SourceKind, record_package,
};
use pinion_files::Replace;
use serde_json::Value;

use super::archive;
use super::program::Tool;
use super::stage::Stage;
use crate::failure::Failure;

/// A package after its installation.
pub(super) struct Installed {
    /// The source as the settings name it.
    pub source: PackageSource,
    pub version: Option<String>,
    pub root: PathBuf,
    pub contents: PackageContents,
}

/// The permission to fetch from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Allowed,
    Off,
}

/// Installs a package and records it.
pub(super) fn install(
    dirs: &Dirs,
    scope: Scope,
    source: &PackageSource,
    network: Network,
) -> Result<Installed, Failure> {
    if let SourceKind::Local(path) = source.kind()
        && !archive::is_archive(path)
    {
        return record_in_place(dirs, scope, source, path);
    }
    let base = match scope {
        Scope::Project => &dirs.project_dir,
        Scope::User | Scope::Temporary => &dirs.agent_dir,
    };
    let stage = Stage::open(base)?;
    let (source, ready) = match source.kind() {
        SourceKind::Npm { name, .. } => {
            let ready = fetch_npm(source, name, stage.path(), network)?;
            (source.clone(), ready)
        }
        SourceKind::Git(git) => {
            let ready = fetch_git(source, git, stage.path(), network)?;
            add_dependencies(source.text(), &ready, network)?;
            (source.clone(), ready)
        }
        SourceKind::Local(path) => {
            let ready = archive::unpack(path, &stage.path().join("unpacked")).map_err(|error| {
                let path = path.display();
                Failure::failed(format!("Error: {path} could not be unpacked: {error}."))
            })?;
            let named = named_by_manifest(dirs, path, &ready)?;
            add_dependencies(named.text(), &ready, network)?;
            (named, ready)
        }
    };
    let contents = PackageContents::of(&source, &ready);
    require_contents(&source, &contents)?;
    let Some(place) = source.install_directory(dirs, scope) else {
        return Err(Failure::failed(
            "Error: this package has no place to be installed to.",
        ));
    };
    stage.finish(&ready, &place, || {
        record_package(dirs, scope, &source).map_err(failed)
    })?;
    if scope == Scope::Project {
        ignore_installed(dirs, &place)?;
    }
    Ok(Installed {
        version: manifest(&place)["version"].as_str().map(str::to_owned),
        contents: PackageContents::of(&source, &place),
        source,
        root: place,
    })
}

fn record_in_place(
    dirs: &Dirs,
    scope: Scope,
    source: &PackageSource,
    path: &Path,
) -> Result<Installed, Failure> {
    if !path.exists() {
        let path = path.display();
        return Err(Failure::failed(format!(
            "Error: {path} is not there. A package of the npm registry is written npm:NAME, a repository git:HOST/PATH."
        )));
    }
    let contents = PackageContents::of(source, path);
    require_contents(source, &contents)?;
    record_package(dirs, scope, source).map_err(failed)?;
    Ok(Installed {
        source: source.clone(),
        version: manifest(path)["version"].as_str().map(str::to_owned),
        root: path.to_owned(),
        contents,
    })
}

fn require_contents(source: &PackageSource, contents: &PackageContents) -> Result<(), Failure> {
    if !contents.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "Error: {} brings no extensions, skills or prompt templates, so it was not installed.\n\
         A package lists them in package.json under \"pi\", or keeps them in extensions/, skills/ and prompts/.",
        source.text()
    )))
}

fn fetch_npm(
    source: &PackageSource,
    name: &str,
    stage: &Path,
    network: Network,
) -> Result<PathBuf, Failure> {
    require_network(source, network)?;
    let Some(npm) = Tool::find("npm") else {
        let text = source.text();
        return Err(Failure::failed(format!(
            "Error: npm is needed to fetch {text}, and it is not on the PATH. Install npm, or fetch the \
             package's archive on another machine (`npm pack {name}`) and run `pinion install ./FILE.tgz`."
        )));
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
        return Err(Failure::failed(format!(
            "Error: npm said that it installed {spec}, but it is not there."
        )));
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
fn nest(modules: &Path, name: &str, package: &Path) -> Result<(), Failure> {
    let top = name.split('/').next().unwrap_or(name);
    let inside = package.join("node_modules");
    // A package could link its own directory of dependencies to another place.
    if fs::symlink_metadata(&inside).is_ok_and(|found| !found.is_dir()) {
        let inside = inside.display();
        return Err(Failure::failed(format!(
            "Error: {inside} is not a directory, so the package was not installed."
        )));
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
) -> Result<PathBuf, Failure> {
    if repository.host != "localhost" {
        require_network(source, network)?;
    }
    let Some(git) = Tool::find("git") else {
        let text = source.text();
        return Err(Failure::failed(format!(
            "Error: git is needed to fetch {text}, and it is not on the PATH. Install git, or copy the \
             repository here and run `pinion install ./DIRECTORY`."
        )));
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

/// Fetches the dependencies of an unpacked package; warns about the missing ones where that is not possible.
fn add_dependencies(text: &str, root: &Path, network: Network) -> Result<(), Failure> {
    let manifest = manifest(root);
    let members = manifest["dependencies"].as_object();
    let names = members.into_iter().flatten().map(|(name, _)| name.as_str());
    let needed: Vec<&str> = names
        .filter(|name| !is_of_host(name) && !root.join("node_modules").join(name).is_dir())
        .collect();
    if needed.is_empty() {
        return Ok(());
    }
    let npm = Tool::find("npm").filter(|_| network == Network::Allowed);
    let Some(npm) = npm else {
        let reason = match network {
            Network::Allowed => "npm is not on the PATH",
            Network::Off => "the network is off",
        };
        eprintln!(
            "Warning: {text} depends on {}, which were not installed because {reason}. \
             If it needs them, loading it says so.",
            needed.join(", ")
        );
        return Ok(());
    };
    let mut arguments = vec!["install"];
    arguments.extend(NPM_FLAGS);
    npm.run(&arguments, root)
}

/// Reports whether pinion always provides the package itself.
fn is_of_host(name: &str) -> bool {
    matches!(name, "typebox" | "@sinclair/typebox")
        || name.starts_with("@mariozechner/pi-")
        || name.starts_with("@earendil-works/pi-")
}

/// Returns the source of an archive by the name and version in its manifest, as if npm had fetched it.
fn named_by_manifest(dirs: &Dirs, archive: &Path, root: &Path) -> Result<PackageSource, Failure> {
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
    source.ok_or_else(|| {
        Failure::failed(format!(
            "Error: {} has no package.json with a usable name, so it was not installed.",
            archive.display()
        ))
    })
}

fn require_network(source: &PackageSource, network: Network) -> Result<(), Failure> {
    match network {
        Network::Allowed => Ok(()),
        Network::Off => Err(Failure::failed(format!(
            "Error: {} must be fetched, and the network is off. Leave --offline out, and PI_OFFLINE unset.",
            source.text()
        ))),
    }
}

/// Adds a `.gitignore`, so that packages installed in a project stay out of its repository.
fn ignore_installed(dirs: &Dirs, place: &Path) -> Result<(), Failure> {
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

pub(super) fn manifest(root: &Path) -> Value {
    let text = pinion_files::read(&root.join("package.json"), 16 << 20).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub(super) fn failed(error: pinion_config::ConfigError) -> Failure {
    Failure::failed(format!("Error: {error}"))
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
