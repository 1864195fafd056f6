//! Fetches packages from their sources.

use std::ffi::OsString;
use std::path::Path;

use pinion_files::beside;
use serde_json::{Value, json};

use super::run::run;
use super::{Scratch, copy, unpack};
use crate::clip::Token;
use crate::process::{self, Programs};
use crate::registry::{PackageKind, Registry, Release, no_checksum};
use crate::source::Source;
use crate::{ClipError, Code, files};

/// The result of fetching a package.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The source with the exact version that was fetched.
    pub(super) source: Source,
    /// The registry's reason for not using this version any more; empty if there is none.
    pub(super) deprecated: String,
}

/// Fetches the package of `source` into `target`, which must exist and be empty.
pub(super) async fn fetch(
    source: &Source,
    token: Option<&Token>,
    programs: &Programs,
    target: &Path,
) -> Result<Fetched, ClipError> {
    let mut deprecated = String::new();
    let source = match source {
        Source::Registry {
            registry,
            package,
            version,
        } => {
            let registry = Registry::new(registry.clone(), token.cloned());
            let release = registry.find(package, version.as_deref()).await?;
            release_into(&registry, &release, target).await?;
            deprecated.clone_from(&release.deprecated);
            source.with_version(Some(&release.version))?
        }
        Source::Npm { package, version } => {
            let version = from_npm(package, version.as_deref(), programs, target).await?;
            source.with_version(Some(&version))?
        }
        Source::GitHub {
            user,
            repository,
            branch,
        } => {
            let address = format!("https://github.com/{user}/{repository}.git");
            from_git(&address, branch.as_deref(), programs, target).await?;
            source.clone()
        }
        Source::Local { path, .. } => {
            let (path, target) = (path.clone(), target.to_owned());
            blocking(move || {
                if path.is_file() {
                    unpack::archive(&path, None, &target)
                } else {
                    copy::directory(&path, &target)
                }
            })
            .await?;
            source.clone()
        }
    };
    Ok(Fetched { source, deprecated })
}

/// Resolves a source to an exact version without fetching it. A source without versions stays as it is.
pub(super) async fn pin(
    source: &Source,
    token: Option<&Token>,
    programs: &Programs,
) -> Result<Source, ClipError> {
    match source {
        Source::Registry {
            registry,
            package,
            version,
        } => {
            let registry = Registry::new(registry.clone(), token.cloned());
            let release = registry.find(package, version.as_deref()).await?;
            source.with_version(Some(&release.version))
        }
        Source::Npm { package, version } => {
            let words = [
                "view",
                &spec(package, version.as_deref()),
                "version",
                "--json",
            ];
            let doing = format!("asking npm for {package}");
            let here = std::env::temp_dir();
            let printed = run(npm(programs, &words)?, &here, Vec::new(), &doing).await?;
            let reply: Value = serde_json::from_slice(&printed).unwrap_or_default();
            // Several versions are printed as a list, the newest last.
            let version = reply
                .as_str()
                .or_else(|| reply.as_array()?.last()?.as_str());
            let version = version.ok_or_else(|| {
                let message = format!("npm reported no version of {package}");
                ClipError::new(Code::NotFound, message)
            })?;
            source.with_version(Some(version))
        }
        Source::GitHub { .. } | Source::Local { .. } => Ok(source.clone()),
    }
}

async fn release_into(
    registry: &Registry,
    release: &Release,
    target: &Path,
) -> Result<(), ClipError> {
    if release.kind == PackageKind::Edge {
        return describe(release, target);
    }
    if release.checksum.is_empty() {
        return Err(no_checksum(&release.package, &release.version));
    }
    let download = Scratch::new(beside(target, "-download"))?;
    let archive = registry
        .download(release, &download.path.join("package.tgz"))
        .await?;
    let (checksum, target) = (release.checksum.clone(), target.to_owned());
    blocking(move || unpack::archive(&archive, Some(&checksum), &target)).await
}

/// Writes the description of a clip that runs elsewhere.
fn describe(release: &Release, target: &Path) -> Result<(), ClipError> {
    let path = target.join("clip.json");
    let content = json!({
        "name": release.package.to_string(),
        "version": release.version,
        "type": release.kind.name(),
        "pinix": release.manifest,
    });
    files::replace_for_all(&path, &content).map_err(|error| ClipError::io(path.display(), &error))
}

/// Fetches a package with `npm pack` from the registry that npm is configured for, and returns its version. npm
/// verifies the archive.
async fn from_npm(
    package: &str,
    version: Option<&str>,
    programs: &Programs,
    target: &Path,
) -> Result<String, ClipError> {
    let download = Scratch::new(beside(target, "-download"))?;
    let place = download.path.to_string_lossy().into_owned();
    let words = [
        "pack",
        &spec(package, version),
        "--json",
        "--ignore-scripts",
        "--pack-destination",
        &place,
    ];
    let doing = format!("fetching {package} from npm");
    let printed = run(npm(programs, &words)?, &download.path, Vec::new(), &doing).await?;
    let reply: Value = serde_json::from_slice(&printed).unwrap_or_default();
    // npm prints an object with one entry, or a list of one.
    let packed = match &reply {
        Value::Object(entries) => entries.values().next(),
        list => list.get(0),
    };
    let version = packed.and_then(|packed| packed.get("version")?.as_str());
    let version = version.map(str::to_owned).ok_or_else(|| {
        let message = format!("npm did not report the version of {package} that it fetched");
        ClipError::new(Code::Internal, message)
    })?;
    let entries = std::fs::read_dir(&download.path)
        .map_err(|error| ClipError::io(download.path.display(), &error))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let archive = files.find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    let archive = archive.ok_or_else(|| {
        let message = format!("npm fetched no archive of {package}");
        ClipError::new(Code::Internal, message)
    })?;
    let target = target.to_owned();
    blocking(move || unpack::archive(&archive, None, &target)).await?;
    Ok(version)
}

fn spec(package: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{package}@{version}"),
        None => package.to_owned(),
    }
}

fn npm(programs: &Programs, words: &[&str]) -> Result<Vec<OsString>, ClipError> {
    let npm = process::npm(programs).ok_or_else(|| {
        ClipError::new(
            Code::FailedPrecondition,
            "packages of npm are fetched by npm, which is not on the PATH; install Node.js, or use another source",
        )
    })?;
    let words = words.iter().map(OsString::from);
    Ok([npm.into()].into_iter().chain(words).collect())
}

/// Fetches the newest commit of a repository, without its history.
async fn from_git(
    address: &str,
    branch: Option<&str>,
    programs: &Programs,
    target: &Path,
) -> Result<(), ClipError> {
    let git = process::git(programs).ok_or_else(|| {
        ClipError::new(
            Code::FailedPrecondition,
            "repositories are fetched by git, which is not on the PATH; install it, or use another source",
        )
    })?;
    let clone = Scratch::new(beside(target, "-clone"))?;
    let mut words: Vec<OsString> = vec![git.into(), "clone".into()];
    let quiet = ["--quiet", "--depth", "1", "--single-branch", "--no-tags"];
    words.extend(quiet.map(OsString::from));
    if let Some(branch) = branch {
        words.extend(["--branch".into(), branch.into()]);
    }
    words.extend(["--".into(), address.into(), "files".into()]);
    // Git must not prompt, because no user is present, and must not run filters such as LFS.
    let variables = [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let doing = format!("cloning {address}");
    run(words, &clone.path, variables.into(), &doing).await?;
    let (source, target) = (clone.path.join("files"), target.to_owned());
    blocking(move || copy::directory(&source, &target)).await
}

async fn blocking(
    work: impl FnOnce() -> Result<(), ClipError> + Send + 'static,
) -> Result<(), ClipError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ClipError::new(Code::Internal, error.to_string())),
    }
}
