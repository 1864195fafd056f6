//! Finds the Markdown files that may be prompt templates or skills, in order of precedence: the
//! user's, the project's, those listed in settings, those named by flags, those of packages.
//!
//! Reads directories, not files. Each directory that does not exist takes one failed `open`.

mod collect;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use collect::{Candidate, Collector, SearchKind, locate_named};

use crate::path_list::PathList;
use crate::{Dirs, Notice, ProjectTrust, Settings, list_packages};

/// The flags of the command line about templates and skills.
#[derive(Debug, Clone, Default)]
pub struct ResourceFlags {
    /// `--skill` paths.
    pub skills: Vec<String>,
    /// `--no-skills` sets it to `Off`.
    pub skill_discovery: Discovery,
    /// `--prompt-template` paths.
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates` sets it to `Off`.
    pub prompt_discovery: Discovery,
    /// `--extension` sources: packages among them may contain templates and skills.
    pub extensions: Vec<String>,
    pub contributions: Contributions,
    /// Leaves the place out of the descriptions of templates, as pi 1.x does.
    pub plain_descriptions: bool,
}

/// Files and directories that extensions contribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contributions {
    pub skills: Vec<Contribution>,
    pub prompts: Vec<Contribution>,
}

/// A file or directory that an extension contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    pub path: PathBuf,
    /// The extension's own file.
    pub extension: PathBuf,
}

/// The search of directories that no flag names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Discovery {
    /// Searches the usual directories and those in the settings.
    #[default]
    On,
    /// Uses only the files that flags name.
    Off,
}

/// The place where a template or skill was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    User,
    Project,
    Path,
}

/// The inputs of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) settings: &'a Settings,
    pub(crate) flags: &'a ResourceFlags,
    pub(crate) trust: ProjectTrust,
}

/// A directory that is searched without being named.
pub(crate) struct SearchDirectory {
    pub(crate) directory: PathBuf,
    pub(crate) location: Location,
    pub(crate) base_dir: PathBuf,
}

impl SearchDirectory {
    pub(crate) fn user(base_dir: &Path, name: &str) -> Self {
        Self {
            directory: base_dir.join(name),
            location: Location::User,
            base_dir: base_dir.to_owned(),
        }
    }

    pub(crate) fn project(base_dir: &Path, name: &str) -> Self {
        Self {
            directory: base_dir.join(name),
            location: Location::Project,
            base_dir: base_dir.to_owned(),
        }
    }
}

/// All candidates in order of precedence, each real file once.
pub(crate) fn candidates(
    search_kind: SearchKind,
    inputs: Inputs<'_>,
    notices: &mut Vec<Notice>,
) -> Vec<Candidate> {
    let Inputs {
        dirs,
        settings,
        flags,
        trust,
    } = inputs;
    let (named, discovery) = match search_kind {
        SearchKind::Prompts => (&flags.prompt_templates, flags.prompt_discovery),
        SearchKind::Skills => (&flags.skills, flags.skill_discovery),
        SearchKind::Extensions => return Vec::new(),
    };
    let (users, projects) = path_lists(search_kind, dirs, settings, notices);
    let mut found = Collector::new(search_kind, &dirs.home, notices);
    if discovery == Discovery::On {
        for searched in user_directories(search_kind, dirs) {
            found.add_directory(&searched, &users);
        }
        let of_project = project_directories(search_kind, dirs);
        match trust {
            ProjectTrust::Trusted => {
                for searched in of_project {
                    found.add_directory(&searched, &projects);
                }
                found.add_listed(&users, "user");
                found.add_listed(&projects, "project");
            }
            ProjectTrust::Untrusted => {
                found.add_listed(&users, "user");
                found.report_untrusted(&of_project);
            }
        }
    }
    for text in named {
        found.add_named(&dirs.resolve(text));
    }
    for text in &flags.extensions {
        found.add_named_package(text, dirs, trust);
    }
    let contributed = match search_kind {
        SearchKind::Prompts => &flags.contributions.prompts,
        SearchKind::Skills | SearchKind::Extensions => &flags.contributions.skills,
    };
    for contribution in contributed {
        found.add_contribution(contribution);
    }
    if discovery == Discovery::On {
        for package in &list_packages(dirs, settings).0 {
            found.add_package(package);
        }
    }
    found.candidates
}

/// The lists of the user's settings and of the project's.
pub(crate) fn path_lists(
    search_kind: SearchKind,
    dirs: &Dirs,
    settings: &Settings,
    notices: &mut Vec<Notice>,
) -> (PathList, PathList) {
    let kind = search_kind.kind();
    let mut list = |entries: Vec<&str>, base: &Path, file: &Path| {
        PathList::parse(&entries, base, &dirs.home, file, notices)
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
    (users, projects)
}

fn user_directories(search_kind: SearchKind, dirs: &Dirs) -> Vec<SearchDirectory> {
    let mut directories = vec![SearchDirectory::user(
        &dirs.agent_dir,
        search_kind.kind().key(),
    )];
    if search_kind == SearchKind::Skills {
        directories.push(SearchDirectory::user(&dirs.home.join(".agents"), "skills"));
    }
    directories
}

fn project_directories(search_kind: SearchKind, dirs: &Dirs) -> Vec<SearchDirectory> {
    let mut directories = vec![SearchDirectory::project(
        &dirs.project_dir,
        search_kind.kind().key(),
    )];
    if search_kind == SearchKind::Skills {
        for ancestor in dirs.cwd.ancestors() {
            let base = ancestor.join(".agents");
            directories.push(SearchDirectory::project(&base, "skills"));
            if ancestor.join(".git").exists() {
                break;
            }
        }
    }
    directories
}
