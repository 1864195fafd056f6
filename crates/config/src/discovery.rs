//! Finds the Markdown files that may be prompt templates or skills, in order of precedence:
//! the user's, the project's, those listed in settings, those named by flags.
//!
//! Reads directories, not files. With nothing there it costs one failed `open` per place.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use serde::Serialize;

use crate::fence::Fence;
use crate::path_list::PathList;
use crate::{Dirs, Notice, ProjectTrust, ResourceKind, Settings, paths};

/// What the command line says about templates and skills.
#[derive(Debug, Clone, Default)]
pub struct ResourceFlags {
    /// `--skill` paths.
    pub skills: Vec<String>,
    /// `--no-skills` turns this off.
    pub skill_discovery: Discovery,
    /// `--prompt-template` paths.
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates` turns this off.
    pub prompt_discovery: Discovery,
}

/// Whether places are searched that nobody named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Discovery {
    /// The usual places and those in the settings.
    #[default]
    On,
    /// Only what flags name.
    Off,
}

/// Where a template or skill was found, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Location {
    User,
    Project,
    Path,
}

/// Where it was found, in the words of newer clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The file.
    #[serde(serialize_with = "paths::lossy")]
    pub path: PathBuf,
    /// `auto` (found), `local` (settings) or `cli` (flag).
    pub source: &'static str,
    /// `user`, `project` or `temporary`.
    pub scope: &'static str,
    /// `top-level`; packages would say `package`.
    pub origin: &'static str,
    /// The directory whose conventions led to it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "paths::lossy_if_some"
    )]
    pub base_dir: Option<PathBuf>,
}

/// A file that may turn out to be a template or a skill.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) location: Location,
    /// What a listing says about it: `user`, `project` or `path:<stem>`.
    pub(crate) label: String,
    pub(crate) info: SourceInfo,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought {
    Prompts,
    Skills,
}

/// Everything that decides what is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) settings: &'a Settings,
    pub(crate) flags: &'a ResourceFlags,
    pub(crate) trust: ProjectTrust,
}

/// A directory that is searched without being named.
struct Place {
    directory: PathBuf,
    location: Location,
    base_dir: PathBuf,
    /// The directory an untrusted project must not lead out of; `None` for the user's own.
    root: Option<PathBuf>,
}

/// All candidates, best first, each real file once.
pub(crate) fn candidates(
    sought: Sought,
    inputs: Inputs<'_>,
    notices: &mut Vec<Notice>,
) -> Vec<Candidate> {
    let Inputs {
        dirs,
        settings,
        flags,
        trust,
    } = inputs;
    let (kind, named, discovery) = match sought {
        Sought::Prompts => (
            ResourceKind::Prompts,
            &flags.prompt_templates,
            flags.prompt_discovery,
        ),
        Sought::Skills => (ResourceKind::Skills, &flags.skills, flags.skill_discovery),
    };
    let mut found = Found {
        seen: HashSet::new(),
        candidates: Vec::new(),
        notices,
    };
    if discovery == Discovery::On {
        let mut list = |entries: Vec<&str>, base: &Path, file: &Path| {
            PathList::parse(&entries, base, &dirs.home, file, found.notices)
        };
        let users = list(
            settings.user_paths(kind),
            &dirs.agent_dir,
            &dirs.global_settings(),
        );
        let projects = list(
            settings.project_paths(kind),
            &dirs.project_dir,
            &dirs.project_settings(),
        );
        for place in places(sought, dirs)
            .into_iter()
            .filter(|place| place.directory.is_dir())
        {
            let overrides = if place.location == Location::User {
                &users
            } else {
                &projects
            };
            let fence = match &place.root {
                Some(root) => Fence::around(root, trust),
                None => Fence::Open,
            };
            for path in files_in(&place.directory, sought, IgnoreFiles::Honoured) {
                if overrides.keeps(&path) {
                    found.add_from_place(path, &place, &fence);
                }
            }
        }
        found.add_listed(&users, sought, "user", &Fence::Open);
        if projects.adds_files() {
            let fence = Fence::around(&dirs.cwd, trust);
            found.add_listed(&projects, sought, "project", &fence);
        }
    }
    for text in named {
        found.add_named(&dirs.resolve(text), sought);
    }
    found.candidates
}

fn places(sought: Sought, dirs: &Dirs) -> Vec<Place> {
    let user = |base_dir: &Path, name: &str| Place {
        directory: base_dir.join(name),
        location: Location::User,
        base_dir: base_dir.to_owned(),
        root: None,
    };
    let project = |base_dir: &Path, name: &str, root: &Path| Place {
        directory: base_dir.join(name),
        location: Location::Project,
        base_dir: base_dir.to_owned(),
        root: Some(root.to_owned()),
    };
    match sought {
        Sought::Prompts => vec![
            user(&dirs.agent_dir, "prompts"),
            project(&dirs.project_dir, "prompts", &dirs.cwd),
        ],
        Sought::Skills => {
            let mut places = vec![
                user(&dirs.agent_dir, "skills"),
                user(&dirs.home.join(".agents"), "skills"),
                project(&dirs.project_dir, "skills", &dirs.cwd),
            ];
            for ancestor in dirs.cwd.ancestors() {
                places.push(project(&ancestor.join(".agents"), "skills", ancestor));
                if ancestor.join(".git").exists() {
                    break;
                }
            }
            places
        }
    }
}

struct Found<'a> {
    /// Real paths, so that a file reached twice counts once.
    seen: HashSet<PathBuf>,
    candidates: Vec<Candidate>,
    notices: &'a mut Vec<Notice>,
}

impl Found<'_> {
    fn add(&mut self, candidate: Candidate, fence: &Fence) {
        if !fence.admits(&candidate.path) {
            self.notices.push(Fence::notice(&candidate.path));
            return;
        }
        let real = fs::canonicalize(&candidate.path).unwrap_or_else(|_| candidate.path.clone());
        if self.seen.insert(real) {
            self.candidates.push(candidate);
        }
    }

    fn add_from_place(&mut self, path: PathBuf, place: &Place, fence: &Fence) {
        let scope = if place.location == Location::User {
            "user"
        } else {
            "project"
        };
        let info = SourceInfo {
            path: path.clone(),
            source: "auto",
            scope,
            origin: "top-level",
            base_dir: Some(place.base_dir.clone()),
        };
        let candidate = Candidate {
            path,
            location: place.location,
            label: scope.to_owned(),
            info,
        };
        self.add(candidate, fence);
    }

    fn add_listed(&mut self, list: &PathList, sought: Sought, scope: &'static str, fence: &Fence) {
        for path in &list.plain {
            for file in self.files_at(path, sought) {
                if list.selects(&file) {
                    let label = path_label(&file);
                    self.add(explicit(file, label, "local", scope), fence);
                }
            }
        }
        for root in list.search_roots() {
            for file in walk(root, None, IgnoreFiles::Honoured) {
                if wanted(&file, sought) && list.selects(&file) {
                    let label = path_label(&file);
                    self.add(explicit(file, label, "local", scope), fence);
                }
            }
        }
    }

    fn add_named(&mut self, path: &Path, sought: Sought) {
        let label = path_label(path);
        for file in self.files_at(path, sought) {
            self.add(
                explicit(file, label.clone(), "cli", "temporary"),
                &Fence::Open,
            );
        }
    }

    /// A file as itself, a directory as what is in it.
    fn files_at(&mut self, path: &Path, sought: Sought) -> Vec<PathBuf> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let own = path.join("SKILL.md");
                if sought == Sought::Skills && own.is_file() {
                    return vec![own];
                }
                let ignore_files = match sought {
                    Sought::Prompts => IgnoreFiles::Disregarded,
                    Sought::Skills => IgnoreFiles::Honoured,
                };
                files_in(path, sought, ignore_files)
            }
            Ok(_) if has_markdown_name(path) => vec![path.to_owned()],
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

fn explicit(path: PathBuf, label: String, source: &'static str, scope: &'static str) -> Candidate {
    let info = SourceInfo {
        path: path.clone(),
        source,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IgnoreFiles {
    Honoured,
    Disregarded,
}

/// The files of a directory that are sought, by name: templates only directly in it, skills also
/// as `SKILL.md` at any depth.
fn files_in(directory: &Path, sought: Sought, ignore_files: IgnoreFiles) -> Vec<PathBuf> {
    let depth = (sought == Sought::Prompts).then_some(1);
    let files = walk(directory, depth, ignore_files).into_iter();
    files
        .filter(|file| file.parent() == Some(directory) || wanted(file, sought))
        .collect()
}

/// Whether a file somewhere below a directory is one.
fn wanted(file: &Path, sought: Sought) -> bool {
    sought == Sought::Prompts || file.file_name().is_some_and(|name| name == "SKILL.md")
}

/// Markdown files below a directory in order of their names, without dot entries.
fn walk(directory: &Path, depth: Option<usize>, ignore_files: IgnoreFiles) -> Vec<PathBuf> {
    let honour = ignore_files == IgnoreFiles::Honoured;
    let mut builder = WalkBuilder::new(directory);
    builder
        .standard_filters(false)
        .hidden(true)
        .ignore(honour)
        .git_ignore(honour)
        .require_git(false)
        .follow_links(true)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != "node_modules");
    if honour {
        builder.add_custom_ignore_filename(".fdignore");
    }
    let entries = builder.build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files
        .map(|entry| entry.into_path())
        .filter(|path| has_markdown_name(path))
        .collect()
}

fn has_markdown_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}
