//! Collects the files of one kind from directories, lists, flags and packages: each real file once,
//! in the order they are added, with the source of each.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Contribution, Location, SearchDirectory};
use crate::extensions::directory;
use crate::packages::Manifest;
use crate::path_list::PathList;
use crate::walk::{EntryKind, IgnoreFiles, walk};
use crate::{Dirs, Notice, Package, PackageSource, ProjectTrust, ResourceKind, Scope, SourceInfo};

/// The kind of file to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchKind {
    Prompts,
    Skills,
    Extensions,
}

impl SearchKind {
    pub(crate) fn kind(self) -> ResourceKind {
        match self {
            Self::Prompts => ResourceKind::Prompts,
            Self::Skills => ResourceKind::Skills,
            Self::Extensions => ResourceKind::Extensions,
        }
    }
}

/// A file of the kind, which is not read yet.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) location: Location,
    /// The source in listings: `user`, `project`, `path:<stem>` or a package's source.
    pub(crate) label: String,
    pub(crate) info: SourceInfo,
}

/// The files found so far.
pub(crate) struct Collector<'a> {
    search_kind: SearchKind,
    home: &'a Path,
    /// Real paths, so that a file that is found twice counts once.
    seen: HashSet<PathBuf>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) notices: &'a mut Vec<Notice>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        search_kind: SearchKind,
        home: &'a Path,
        notices: &'a mut Vec<Notice>,
    ) -> Self {
        Self {
            search_kind,
            home,
            seen: HashSet::new(),
            candidates: Vec::new(),
            notices,
        }
    }

    fn add(&mut self, candidate: Candidate) {
        let real = fs::canonicalize(&candidate.path).unwrap_or_else(|_| candidate.path.clone());
        if self.seen.insert(real) {
            self.candidates.push(candidate);
        }
    }

    /// Adds the files in a directory, unless the overrides of its scope exclude them.
    pub(crate) fn add_directory(&mut self, searched: &SearchDirectory, overrides: &PathList) {
        if !searched.directory.is_dir() {
            return;
        }
        let scope = match searched.location {
            Location::User => "user",
            Location::Project | Location::Path => "project",
        };
        for path in files_in(&searched.directory, self.search_kind, IgnoreFiles::Honoured) {
            if !overrides.permits_found(&path) {
                continue;
            }
            let info = SourceInfo {
                path: path.clone(),
                source: "auto".into(),
                scope,
                origin: "top-level",
                base_dir: Some(searched.base_dir.clone()),
            };
            let candidate = Candidate {
                path,
                location: searched.location,
                label: scope.to_owned(),
                info,
            };
            self.add(candidate);
        }
    }

    /// Reports the number of files in `directories` of an untrusted project, which are not read.
    pub(crate) fn report_untrusted(&mut self, directories: &[SearchDirectory]) {
        for searched in directories
            .iter()
            .filter(|searched| searched.directory.is_dir())
        {
            let files = files_in(&searched.directory, self.search_kind, IgnoreFiles::Honoured);
            let unknown = files
                .iter()
                .filter(|file| fs::canonicalize(file).is_ok_and(|real| !self.seen.contains(&real)));
            let count = unknown.count();
            if count > 0 {
                let name = self.search_kind.kind().key();
                let notice = untrusted_notice(&searched.directory, name, count);
                self.notices.push(notice);
            }
        }
    }

    /// Adds the files that a list of the settings names.
    pub(crate) fn add_listed(&mut self, list: &PathList, scope: &'static str) {
        for file in self.files_of_list(list) {
            let label = path_label(&file);
            self.add(explicit(file, label, "local", scope));
        }
    }

    /// Adds the files that a flag names.
    pub(crate) fn add_named(&mut self, path: &Path) {
        let label = path_label(path);
        for file in self.files_at(path) {
            self.add_explicit(file, label.clone());
        }
    }

    /// Adds the files that an extension contributes.
    pub(crate) fn add_contribution(&mut self, contribution: &Contribution) {
        let extension = &contribution.extension;
        let name = extension.file_stem().unwrap_or_default().to_string_lossy();
        let source = format!("extension:{name}");
        for path in self.files_at(&contribution.path) {
            let info = SourceInfo {
                path: path.clone(),
                source: source.clone().into(),
                scope: Scope::Temporary.as_str(),
                origin: "top-level",
                base_dir: extension.parent().map(Path::to_owned),
            };
            let candidate = Candidate {
                path,
                location: Location::Path,
                label: source.clone(),
                info,
            };
            self.add(candidate);
        }
    }

    fn add_explicit(&mut self, file: PathBuf, label: String) {
        let candidate = explicit(file, label, "cli", Scope::Temporary.as_str());
        self.add(candidate);
    }

    /// Adds the files of this kind in the package that `-e` names; a plain file is only an
    /// extension.
    pub(crate) fn add_named_package(&mut self, text: &str, dirs: &Dirs, trust: ProjectTrust) {
        let Ok(source) = PackageSource::parse(text, &dirs.cwd, &dirs.home) else {
            return;
        };
        let root = locate_named(&source, dirs, trust);
        if let Some(root) = root.filter(|root| root.is_dir()) {
            let label = path_label(&root);
            let package = Package::temporary(source, Some(root.clone()));
            let has_list = || Manifest::read(&root, &mut Vec::new()).names_resources();
            for file in self.files_of_package(&package) {
                // A directory that is one module has the path that was named.
                let is_module = file.parent() == Some(&root) && !has_list();
                let known_as = if is_module { &root } else { &file }.clone();
                let mut candidate = explicit(file, label.clone(), "cli", Scope::Temporary.as_str());
                candidate.info.path = known_as;
                // pi names the package only for its templates.
                if matches!(self.search_kind, SearchKind::Prompts) {
                    candidate.info.source = package.source.text().to_owned().into();
                    candidate.info.origin = "package";
                    candidate.info.base_dir = Some(root.clone());
                }
                self.add(candidate);
            }
        }
    }

    /// Adds the file that `-e` names even if it does not exist: loading it reports the error.
    pub(crate) fn add_named_file(&mut self, path: PathBuf) {
        let label = path_label(&path);
        self.add_explicit(path, label);
    }

    /// Adds the files of this kind in a package.
    pub(crate) fn add_package(&mut self, package: &Package) {
        let Some(root) = &package.root else { return };
        let base_dir = if root.is_file() {
            root.parent()
        } else {
            Some(root.as_path())
        };
        let location = match package.scope {
            Scope::User => Location::User,
            Scope::Project => Location::Project,
            Scope::Temporary => Location::Path,
        };
        for path in self.files_of_package(package) {
            let info = SourceInfo {
                path: path.clone(),
                source: package.source.text().to_owned().into(),
                scope: package.scope.as_str(),
                origin: "package",
                base_dir: base_dir.map(Path::to_owned),
            };
            let candidate = Candidate {
                path,
                location,
                label: package.source.text().to_owned(),
                info,
            };
            self.add(candidate);
        }
    }

    fn files_of_package(&mut self, package: &Package) -> Vec<PathBuf> {
        let Some(root) = &package.root else {
            return Vec::new();
        };
        if root.is_file() {
            return match self.search_kind {
                SearchKind::Extensions => vec![root.clone()],
                SearchKind::Prompts | SearchKind::Skills => Vec::new(),
            };
        }
        let kind = self.search_kind.kind();
        let filter = package.filter(kind);
        if filter.as_ref().is_some_and(Vec::is_empty) {
            return Vec::new();
        }
        let mut unread = Vec::new();
        let manifest = match self.search_kind {
            SearchKind::Extensions => Manifest::read(root, self.notices),
            // The search for extensions reports its errors, so they are not reported again here.
            SearchKind::Prompts | SearchKind::Skills => Manifest::read(root, &mut unread),
        };
        let file = root.join("package.json");
        let mut files = if manifest.names_resources() {
            let entries = manifest.entries(kind);
            let list = PathList::of_manifest(&entries, root, self.home, &file, self.notices);
            self.files_of_list(&list)
        } else {
            conventional_files(root, self.search_kind)
        };
        if let Some(filter) = filter {
            let list = PathList::parse(&filter, root, self.home, &file, self.notices);
            files.retain(|file| list.includes_of_package(file, root));
        }
        files
    }

    fn files_of_list(&mut self, list: &PathList) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for path in &list.plain {
            files.extend(self.files_at(path));
        }
        files.retain(|file| list.includes_listed(file));
        for root in list.search_roots() {
            let below = files_below(root, self.search_kind).into_iter();
            files.extend(below.filter(|file| list.includes(file)));
        }
        files
    }

    /// A file itself, or the files in a directory.
    fn files_at(&mut self, path: &Path) -> Vec<PathBuf> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let own = path.join("SKILL.md");
                if self.search_kind == SearchKind::Skills && own.is_file() {
                    return vec![own];
                }
                let ignore_files = match self.search_kind {
                    SearchKind::Prompts => IgnoreFiles::Disregarded,
                    SearchKind::Skills | SearchKind::Extensions => IgnoreFiles::Honoured,
                };
                files_in(path, self.search_kind, ignore_files)
            }
            // A named extension may have any file name.
            Ok(_) if self.search_kind == SearchKind::Extensions || has_markdown_name(path) => {
                vec![path.to_owned()]
            }
            Ok(_) => {
                let message = "is not a Markdown file (*.md); it is ignored";
                self.notices
                    .push(Notice::about(path, "not_markdown", message));
                Vec::new()
            }
            Err(error) => {
                let message = format!("cannot be used ({error}); it is ignored");
                self.notices
                    .push(Notice::about(path, "unreadable_file", message));
                Vec::new()
            }
        }
    }
}

fn untrusted_notice(directory: &Path, name: &str, count: usize) -> Notice {
    let message = format!(
        "this project is not trusted, so {count} of its {name} are not read; look at them, then run `pinion trust` \
         here to accept the project"
    );
    Notice::about(directory, "untrusted_resources", message)
}

/// The path for the argument of `-e`: a path, or a package installed for the user or for a trusted
/// project.
pub(crate) fn locate_named(
    source: &PackageSource,
    dirs: &Dirs,
    trust: ProjectTrust,
) -> Option<PathBuf> {
    let user = source.locate(dirs, Scope::Temporary);
    user.or_else(|| match trust {
        ProjectTrust::Trusted => source.locate(dirs, Scope::Project),
        ProjectTrust::Untrusted => None,
    })
}

/// The files of a package without a manifest: those in the directory named after the kind, or, for
/// a package that has no such directory of any kind, its module.
fn conventional_files(root: &Path, search_kind: SearchKind) -> Vec<PathBuf> {
    let directory = root.join(search_kind.kind().key());
    if directory.is_dir() {
        return files_in(&directory, search_kind, IgnoreFiles::Honoured);
    }
    let kinds = ["skills", "prompts", "themes"];
    let is_module = || !kinds.iter().any(|kind| root.join(kind).is_dir());
    match search_kind {
        SearchKind::Extensions if is_module() => directory::module(root).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn explicit(path: PathBuf, label: String, source: &'static str, scope: &'static str) -> Candidate {
    let info = SourceInfo {
        path: path.clone(),
        source: source.into(),
        scope,
        origin: "top-level",
        base_dir: None,
    };
    Candidate {
        path,
        location: Location::Path,
        label,
        info,
    }
}

fn path_label(path: &Path) -> String {
    let name = path
        .file_name()
        .map_or_else(Default::default, |name| name.to_string_lossy());
    let stem = name.strip_suffix(".md").unwrap_or(&name);
    format!("path:{}", if stem.is_empty() { "path" } else { stem })
}

/// The files of the kind in a directory, by name: templates only directly in it, skills also as
/// `SKILL.md` at any depth, extensions by their own rules.
fn files_in(directory: &Path, search_kind: SearchKind, ignore_files: IgnoreFiles) -> Vec<PathBuf> {
    let depth = match search_kind {
        SearchKind::Prompts => Some(1),
        SearchKind::Skills => None,
        SearchKind::Extensions => return directory::entries(directory),
    };
    let files = markdown_files(directory, depth, ignore_files);
    files
        .filter(|file| file.parent() == Some(directory) || is_wanted(file, search_kind))
        .collect()
}

/// The files at any depth that a pattern may select.
fn files_below(directory: &Path, search_kind: SearchKind) -> Vec<PathBuf> {
    match search_kind {
        SearchKind::Extensions => directory::scripts_below(directory),
        SearchKind::Prompts | SearchKind::Skills => {
            markdown_files(directory, None, IgnoreFiles::Honoured)
                .filter(|file| is_wanted(file, search_kind))
                .collect()
        }
    }
}

/// Reports whether a Markdown file somewhere below a directory is of the kind.
fn is_wanted(file: &Path, search_kind: SearchKind) -> bool {
    search_kind == SearchKind::Prompts || file.file_name().is_some_and(|name| name == "SKILL.md")
}

fn markdown_files(
    directory: &Path,
    depth: Option<usize>,
    ignore_files: IgnoreFiles,
) -> impl Iterator<Item = PathBuf> {
    walk(directory, depth, ignore_files)
        .filter(|(path, kind)| *kind == EntryKind::File && has_markdown_name(path))
        .map(|(path, _)| path)
}

fn has_markdown_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}
