//! Templates and skills: loading, listing, and expansion of prompts that call them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::discovery::{Contributions, Inputs, Location, ResourceFlags};
use crate::skills::{self, ExpansionError, Skill};
use crate::templates::{self, PromptTemplate};
use crate::{Dirs, Notice, ProjectTrust, Settings, SourceInfo, paths};

/// Everything a user can call with `/`.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    templates: Vec<PromptTemplate>,
    skills: Vec<Skill>,
    /// The descriptions of templates do not name the place.
    plain_descriptions: bool,
}

/// One entry of `get_commands`; serialises with its members in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    /// Without the slash.
    pub name: String,
    /// For people; of templates it may include the place where they were found.
    pub description: String,
    /// `prompt` or `skill`.
    pub source: &'static str,
    /// `user`, `project` or `path`.
    pub location: Location,
    #[serde(serialize_with = "paths::lossy")]
    pub path: PathBuf,
    /// The place where it was found, for newer clients.
    pub source_info: SourceInfo,
}

/// The result of expanding a prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Expanded<'a> {
    /// The text for the model: the prompt itself if it called nothing, or nothing that works.
    pub text: Cow<'a, str>,
    /// A skill was called and could not be read.
    pub error: Option<ExpansionError>,
}

impl Resources {
    /// Reads the templates and skills. Files that cannot be used are left out and reported.
    pub fn load(
        dirs: &Dirs,
        settings: &Settings,
        flags: &ResourceFlags,
        trust: ProjectTrust,
    ) -> (Self, Vec<Notice>) {
        let mut notices = Vec::new();
        let inputs = Inputs {
            dirs,
            settings,
            flags,
            trust,
        };
        let templates = templates::load(inputs, &mut notices);
        let skills = skills::load(inputs, &mut notices);
        let plain_descriptions = flags.plain_descriptions;
        let resources = Self {
            templates,
            skills,
            plain_descriptions,
        };
        (resources, notices)
    }

    /// In order of precedence.
    pub fn templates(&self) -> &[PromptTemplate] {
        &self.templates
    }

    /// In order of precedence.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Replaces `/skill:name …` or `/template …` by its text.
    pub fn expand<'a>(&self, text: &'a str) -> Expanded<'a> {
        let unchanged = |error| Expanded {
            text: Cow::Borrowed(text),
            error,
        };
        match skills::expand(text, &self.skills) {
            Some(Ok(text)) => {
                return Expanded {
                    text: text.into(),
                    error: None,
                };
            }
            Some(Err(error)) => return unchanged(Some(error)),
            None => {}
        }
        match templates::expand(text, &self.templates) {
            Some(text) => Expanded {
                text: text.into(),
                error: None,
            },
            None => unchanged(None),
        }
    }

    /// The entries of `get_commands` after the commands of extensions: templates, then skills.
    pub fn commands(&self) -> Vec<CommandInfo> {
        let templates = self.templates.iter().map(|template| CommandInfo {
            name: template.name.clone(),
            description: if self.plain_descriptions {
                template.description.clone()
            } else {
                template.listing()
            },
            source: "prompt",
            location: template.location,
            path: template.path.clone(),
            source_info: template.source_info.clone(),
        });
        let skills = self.skills.iter().map(|skill| CommandInfo {
            name: format!("skill:{}", skill.name),
            description: skill.description.clone(),
            source: "skill",
            location: skill.location,
            path: skill.path.clone(),
            source_info: skill.source_info.clone(),
        });
        templates.chain(skills).collect()
    }
}

/// Resources that are read when first needed, and again after a change.
#[derive(Debug)]
pub struct LazyResources {
    dirs: Dirs,
    settings: Settings,
    trust: ProjectTrust,
    state: Mutex<Lazy>,
}

#[derive(Debug)]
struct Lazy {
    flags: ResourceFlags,
    loaded: Option<(Arc<Resources>, Vec<Notice>)>,
}

impl LazyResources {
    /// Stores the inputs; reads nothing.
    pub fn new(dirs: Dirs, settings: Settings, flags: ResourceFlags, trust: ProjectTrust) -> Self {
        let loaded = None;
        Self {
            dirs,
            settings,
            trust,
            state: Mutex::new(Lazy { flags, loaded }),
        }
    }

    pub fn get(&self) -> Arc<Resources> {
        self.with_loaded(|(resources, _)| Arc::clone(resources))
    }

    /// The notices about the resources.
    pub fn notices(&self) -> Vec<Notice> {
        self.with_loaded(|(_, notices)| notices.clone())
    }

    /// Replaces the contributions of extensions.
    pub fn contribute(&self, contributions: Contributions) {
        let mut state = self.lock();
        if state.flags.contributions != contributions {
            state.flags.contributions = contributions;
            state.loaded = None;
        }
    }

    /// Makes the next [`Self::get`] read everything again.
    pub fn invalidate(&self) {
        self.lock().loaded = None;
    }

    fn with_loaded<T>(&self, look: impl FnOnce(&(Arc<Resources>, Vec<Notice>)) -> T) -> T {
        let mut state = self.lock();
        let Lazy { flags, loaded } = &mut *state;
        look(loaded.get_or_insert_with(|| {
            let (resources, notices) =
                Resources::load(&self.dirs, &self.settings, flags, self.trust);
            (Arc::new(resources), notices)
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Lazy> {
        // A stored value is always complete, also after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
