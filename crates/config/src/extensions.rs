//! Finds extensions, in order of precedence: named by `-e`, listed by the project's settings, in
//! `.pi/extensions`, listed by the user's settings, in the agent directory's `extensions`, in
//! packages.
//!
//! An extension is code. A project's own are used only if the user trusts the project. Nothing is
//! installed here: missing packages are reported. Each directory that does not exist takes one
//! `stat`.

pub(crate) mod directory;

use std::path::{Path, PathBuf};

use crate::discovery::{
    Collector, Discovery, SearchDirectory, SearchKind, locate_named, path_lists,
};
use crate::{
    Dirs, Notice, Package, PackageSource, ProjectTrust, Scope, Settings, SourceInfo, SourceKind,
    list_packages,
};

/// The flags of the command line about extensions.
#[derive(Debug, Clone, Default)]
pub struct ExtensionFlags {
    /// `-e` sources: files, directories, `npm:` and `git:` packages.
    pub extensions: Vec<String>,
    /// `--no-extensions` sets it to `Off`; the extensions of `-e` are loaded nevertheless.
    pub discovery: Discovery,
}

/// An extension to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionEntry {
    /// The module. One that `-e` names may not exist; loading it then reports the error.
    pub path: PathBuf,
    pub source_info: SourceInfo,
}

/// The extensions of a run, with the notices about them.
#[derive(Debug, Default)]
pub struct FoundExtensions {
    /// In the order they are loaded, each real file once.
    pub entries: Vec<ExtensionEntry>,
    /// A notice for each extension that was left out.
    pub notices: Vec<Notice>,
    /// Packages that are not installed.
    pub missing: Vec<PackageSource>,
}

/// Finds the extensions of a run.
pub fn find_extensions(
    dirs: &Dirs,
    settings: &Settings,
    flags: &ExtensionFlags,
    trust: ProjectTrust,
) -> FoundExtensions {
    let mut notices = Vec::new();
    let mut missing = Vec::new();
    let mut found = Collector::new(SearchKind::Extensions, &dirs.home, &mut notices);
    for text in &flags.extensions {
        add_named(text, dirs, trust, &mut found, &mut missing);
    }
    if flags.discovery == Discovery::On {
        add_discovered(dirs, settings, trust, &mut found, &mut missing);
    }
    let candidates = std::mem::take(&mut found.candidates);
    let entries = candidates.into_iter().map(|candidate| ExtensionEntry {
        path: candidate.path,
        source_info: candidate.info,
    });
    FoundExtensions {
        entries: entries.collect(),
        notices,
        missing,
    }
}

fn add_discovered(
    dirs: &Dirs,
    settings: &Settings,
    trust: ProjectTrust,
    found: &mut Collector<'_>,
    missing: &mut Vec<PackageSource>,
) {
    let (users, projects) = path_lists(SearchKind::Extensions, dirs, settings, found.notices);
    // An agent directory may be the `.pi` of some directory; its files are the user's nevertheless.
    if dirs.project_dir != dirs.agent_dir {
        let searched = SearchDirectory::project(&dirs.project_dir, "extensions");
        match trust {
            ProjectTrust::Trusted => {
                found.add_listed(&projects, Scope::Project.as_str());
                found.add_directory(&searched, &projects);
            }
            ProjectTrust::Untrusted => {
                let left_out = untrusted_notice(&searched.directory);
                found.notices.extend(left_out);
            }
        }
    }
    found.add_listed(&users, Scope::User.as_str());
    let searched = SearchDirectory::user(&dirs.agent_dir, "extensions");
    found.add_directory(&searched, &users);
    let (packages, odd) = list_packages(dirs, settings);
    found.notices.extend(odd);
    for package in &packages {
        match &package.root {
            Some(_) => {
                found.notices.extend(version_notice(package));
                found.add_package(package);
            }
            None => report_missing(&package.source, package.scope, found, missing),
        }
    }
}

fn add_named(
    text: &str,
    dirs: &Dirs,
    trust: ProjectTrust,
    found: &mut Collector<'_>,
    missing: &mut Vec<PackageSource>,
) {
    let source = match PackageSource::parse(text, &dirs.cwd, &dirs.home) {
        Ok(source) => source,
        Err(message) => {
            let message = format!("-e {text} is ignored: {message}");
            found.notices.push(Notice::general("bad_package", message));
            return;
        }
    };
    match (locate_named(&source, dirs, trust), source.kind()) {
        (Some(root), _) if root.is_dir() => {
            let before = found.candidates.len();
            found.add_named_package(text, dirs, trust);
            if found.candidates.len() == before && !has_resources(&root) {
                found.add_named_file(root);
            }
        }
        (Some(file), _) => found.add_named_file(file),
        (None, SourceKind::Local(path)) => found.add_named_file(path.clone()),
        (None, _) => report_missing(&source, Scope::Temporary, found, missing),
    }
}

/// Reports whether a directory contains resources of any kind, such as a package of skills.
fn has_resources(root: &Path) -> bool {
    let kinds = ["extensions", "skills", "prompts", "themes"];
    let manifest = crate::packages::Manifest::read(root, &mut Vec::new());
    manifest.names_resources()
        || kinds.iter().any(|kind| root.join(kind).is_dir())
        || directory::module(root).is_some()
}

fn untrusted_notice(directory: &Path) -> Option<Notice> {
    if !directory.is_dir() {
        return None;
    }
    let count = directory::entries(directory).len();
    let what = match count {
        0 => return None,
        1 => "1 extension is".to_owned(),
        count => format!("{count} extensions are"),
    };
    let message = format!(
        "this project is not trusted, so {what} not loaded; look at the code, then run \
         `pinion trust` here to accept it, or use --trust for one run"
    );
    Some(Notice::about(directory, "untrusted_extensions", message))
}

fn report_missing(
    source: &PackageSource,
    scope: Scope,
    found: &mut Collector<'_>,
    missing: &mut Vec<PackageSource>,
) {
    let text = source.text();
    let message = match (source.kind(), scope) {
        (SourceKind::Local(path), _) => {
            format!(
                "package {text} does not exist ({}); nothing of it is used",
                path.display()
            )
        }
        (_, Scope::Project) => format!(
            "package {text} is not installed, so nothing of it is used; \
             run `pinion install --local {text}`"
        ),
        (_, Scope::User | Scope::Temporary) => format!(
            "package {text} is not installed, so nothing of it is used; run `pinion install {text}`"
        ),
    };
    found
        .notices
        .push(Notice::general("missing_package", message));
    missing.push(source.clone());
}

/// The notice about a package that is pinned to one version and installed in another.
fn version_notice(package: &Package) -> Option<Notice> {
    let SourceKind::Npm {
        version: Some(wanted),
        ..
    } = package.source.kind()
    else {
        return None;
    };
    let is_exact = wanted.starts_with(|c: char| c.is_ascii_digit())
        && wanted.split('.').count() >= 3
        && !wanted.contains(' ');
    let there = package.version()?;
    if !is_exact || there == *wanted {
        return None;
    }
    let text = package.source.text();
    let local = match package.scope {
        Scope::Project => "--local ",
        Scope::User | Scope::Temporary => "",
    };
    let message = format!(
        "package {text} is installed as {there}, which is used; \
         run `pinion install {local}{text}` for the version that was asked for"
    );
    Some(Notice::general("other_version", message))
}
