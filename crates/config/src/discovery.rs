//! Finds the Markdown files that may be prompt templates or skills, in order of precedence:
//! the user's, the project's, those listed in settings, those named by flags, those of packages.
//!
//! Reads directories, not files. With nothing there it costs one failed `open` per place.

mod collect;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use collect::{Candidate, Collector, Sought, locate_named};

use crate::path_list::PathList;
use crate::{Dirs, Notice, ProjectTrust, Settings, list_packages};

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
    /// `--extension` sources: those that are packages may bring templates and skills too.
    pub extensions: Vec<String>,
    /// What extensions bring along.
    pub contributions: Contributions,
}

/// Files and directories that extensions bring along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Contributions {
    pub skills: Vec<Contribution>,
    pub prompts: Vec<Contribution>,
}

/// A file or directory that an extension brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Where it is.
    pub path: PathBuf,
    /// The extension's own file.
    pub extension: PathBuf,
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

/// Everything that decides what is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) settings: &'a Settings,
    pub(crate) flags: &'a ResourceFlags,
    pub(crate) trust: ProjectTrust,
}

/// A directory that is searched without being named.
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) location: Location,
    pub(crate) base_dir: PathBuf,
}

impl Place {
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
    let (named, discovery) = match sought {
        Sought::Prompts => (&flags.prompt_templates, flags.prompt_discovery),
        Sought::Skills => (&flags.skills, flags.skill_discovery),
        Sought::Extensions => return Vec::new(),
    };
    let (users, projects) = path_lists(sought, dirs, settings, notices);
    let mut found = Collector::new(sought, &dirs.home, notices);
    if discovery == Discovery::On {
        for place in user_places(sought, dirs) {
            found.add_place(&place, &users);
        }
        let of_project = project_places(sought, dirs);
        match trust {
            ProjectTrust::Trusted => {
                for place in of_project {
                    found.add_place(&place, &projects);
                }
                found.add_listed(&users, "user");
                found.add_listed(&projects, "project");
            }
            ProjectTrust::Untrusted => {
                found.add_listed(&users, "user");
                found.leave_out(&of_project);
            }
        }
    }
    for text in named {
        found.add_named(&dirs.resolve(text));
    }
    for text in &flags.extensions {
        found.add_named_package(text, dirs, trust);
    }
    let contributed = match sought {
        Sought::Prompts => &flags.contributions.prompts,
        Sought::Skills | Sought::Extensions => &flags.contributions.skills,
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
    sought: Sought,
    dirs: &Dirs,
    settings: &Settings,
    notices: &mut Vec<Notice>,
) -> (PathList, PathList) {
    let kind = sought.kind();
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

fn user_places(sought: Sought, dirs: &Dirs) -> Vec<Place> {
    let mut places = vec![Place::user(&dirs.agent_dir, sought.kind().key())];
    if sought == Sought::Skills {
        places.push(Place::user(&dirs.home.join(".agents"), "skills"));
    }
    places
}

fn project_places(sought: Sought, dirs: &Dirs) -> Vec<Place> {
    let mut places = vec![Place::project(&dirs.project_dir, sought.kind().key())];
    if sought == Sought::Skills {
        for ancestor in dirs.cwd.ancestors() {
            let base = ancestor.join(".agents");
            places.push(Place::project(&base, "skills"));
            if ancestor.join(".git").exists() {
                break;
            }
        }
    }
    places
}
