//! Finds extensions, in order of precedence: named by `-e`, listed by the project's settings, in
//! `.pi/extensions`, listed by the user's settings, in the agent directory's `extensions`, in packages.
//!
//! An extension is code. A project's own come only from a project the user trusts, and nothing is
//! installed here: what is not there is reported. With nothing there it costs a `stat` per place.

pub(crate) mod directory;

use std::path::{Path, PathBuf};

use crate::discovery::{Collector, Discovery, Place, Sought, locate_named, path_lists};
use crate::{
    Dirs, Notice, Package, PackageSource, ProjectTrust, Scope, Settings, SourceInfo, SourceKind,
    list_packages,
};

/// What the command line says about extensions.
#[derive(Debug, Clone, Default)]
pub struct ExtensionFlags {
    /// `-e` sources: files, directories, `npm:` and `git:` packages.
    pub extensions: Vec<String>,
    /// `--no-extensions` turns this off; what `-e` names is loaded all the same.
    pub discovery: Discovery,
}

/// An extension to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionEntry {
    /// The module. One that `-e` names may not be there; then loading it says so.
    pub path: PathBuf,
    /// Where it was found.
    pub source_info: SourceInfo,
}

/// The extensions there are, and what there is to say about them.
#[derive(Debug, Default)]
pub struct FoundExtensions {
    /// In the order they are loaded, each real file once.
    pub entries: Vec<ExtensionEntry>,
    /// What was left out, and why.
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
    let mut found = Collector::new(Sought::Extensions, &dirs.home, &mut notices);
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
    let (users, projects) = path_lists(Sought::Extensions, dirs, settings, found.notices);
    // An agent directory may be some directory's `.pi`; what is in it is the user's all the same.
    if dirs.project_dir != dirs.agent_dir {
        let place = Place::project(&dirs.project_dir, "extensions");
        match trust {
            ProjectTrust::Trusted => {
                found.add_listed(&projects, Scope::Project.as_str());
                found.add_place(&place, &projects);
            }
            ProjectTrust::Untrusted => {
                let left_out = untrusted_notice(&place.directory);
                found.notices.extend(left_out);
            }
        }
    }
    found.add_listed(&users, Scope::User.as_str());
    let place = Place::user(&dirs.agent_dir, "extensions");
    found.add_place(&place, &users);
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
            if found.candidates.len() == before && !brings_something(&root) {
                found.add_named_file(root);
            }
        }
        (Some(file), _) => found.add_named_file(file),
        (None, SourceKind::Local(path)) => found.add_named_file(path.clone()),
        (None, _) => report_missing(&source, Scope::Temporary, found, missing),
    }
}

/// Whether a directory is there for something, if not for extensions: a package of skills, say.
fn brings_something(root: &Path) -> bool {
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
                "package {text} is not there ({}); nothing of it is used",
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

/// A package that is pinned to one version and is there in another.
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
