//! All documents together: read in order, later ones on top, those of an untrusted project left out.

use std::io;
use std::path::{Path, PathBuf};

use crate::document::{self, Document};
use crate::error::{Notice, ProfileError};
use crate::places::{Place, PlaceKind, Surroundings, expand, git_root, places};
use crate::profile::Profile;
use crate::slug::Slug;
use crate::source::LARGEST;

/// A name that documents had long ago.
const REFUSED: &str = ".pinocchio-profile.yml";

/// What all documents say together.
#[derive(Debug, Default)]
pub struct Config {
    /// Directories of commands as written, with the directory of the document that names them.
    pub repositories: Vec<(PathBuf, String)>,
    /// The profile to use when nobody asks for another.
    pub active: Option<Slug>,
    /// Sources of registries, with the directory of the document that names them.
    pub registries: Option<(PathBuf, Vec<String>)>,
    /// Inline profiles, in the order of their first mention.
    pub profiles: Vec<Profile>,
    /// Every place that was looked at.
    pub documents: Vec<(Place, DocumentState)>,
    /// What was left out.
    pub notices: Vec<Notice>,
}

/// What became of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentState {
    /// A document was read.
    Read,
    /// There is none.
    Missing,
    /// There is one, and its project is not trusted.
    Untrusted,
}

impl DocumentState {
    /// A stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Missing => "missing",
            Self::Untrusted => "untrusted",
        }
    }
}

impl Config {
    /// Reads every document; the first broken one is an error.
    pub fn load(
        surroundings: &Surroundings<'_>,
        explicit: Option<&Path>,
    ) -> Result<Self, ProfileError> {
        let mut config = Self::default();
        for place in places(surroundings, explicit) {
            let state = config.take(&place, surroundings)?;
            config.documents.push((place, state));
        }
        let kept_out: Vec<String> = config
            .documents
            .iter()
            .filter(|(_, state)| *state == DocumentState::Untrusted)
            .map(|(place, _)| place.path.display().to_string())
            .collect();
        if !kept_out.is_empty() {
            config.notices.push(Notice::new(
                "untrusted_config",
                format!(
                    "this project is not trusted, so its configuration is not read: {}; look at it, then run `pinion trust` here to accept it, or name it with --config-file",
                    kept_out.join(", ")
                ),
            ));
        }
        let root = git_root(surroundings.cwd);
        let mut directories: Vec<&Path> = root.as_deref().into_iter().collect();
        if !directories.contains(&surroundings.cwd) {
            directories.push(surroundings.cwd);
        }
        for directory in directories {
            let path = directory.join(REFUSED);
            if std::fs::symlink_metadata(&path).is_ok() {
                let words = ProfileError::RefusedName { path }.to_string();
                config.notices.push(Notice::new("config_refused", words));
            }
        }
        Ok(config)
    }

    fn take(
        &mut self,
        place: &Place,
        surroundings: &Surroundings<'_>,
    ) -> Result<DocumentState, ProfileError> {
        let explicit = place.kind == PlaceKind::Explicit;
        if let PlaceKind::Project(directory) = &place.kind
            && !(surroundings.trusts)(directory)
        {
            // Not even read: what it says has no effect, not even by being broken.
            return Ok(match std::fs::symlink_metadata(&place.path) {
                Ok(_) => DocumentState::Untrusted,
                Err(_) => DocumentState::Missing,
            });
        }
        if place.path.file_name().is_some_and(|name| name == REFUSED) {
            return Err(ProfileError::RefusedName {
                path: place.path.clone(),
            });
        }
        // The user may name `<(command)`; other places are looked at without being asked for.
        let bytes = if explicit {
            pinion_files::read_named(&place.path, LARGEST)
        } else {
            pinion_files::read(&place.path, LARGEST)
        };
        let text = bytes.and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8"))
        });
        let text = match text {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match explicit {
                    true => Err(ProfileError::ConfigNotFound {
                        path: place.path.clone(),
                    }),
                    false => Ok(DocumentState::Missing),
                };
            }
            // A file where a directory of the path should be is no configuration either.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory && !explicit => {
                return Ok(DocumentState::Missing);
            }
            Err(error) => {
                return Err(ProfileError::Unreadable {
                    what: "configuration",
                    path: place.path.clone(),
                    reason: error.to_string(),
                });
            }
        };
        let document = document::read(&text).map_err(|problems| ProfileError::Document {
            origin: place.path.display().to_string(),
            problems,
        })?;
        let directory = place.path.parent().unwrap_or(Path::new("/"));
        self.overlay(document, directory);
        Ok(DocumentState::Read)
    }

    fn overlay(&mut self, document: Document, directory: &Path) {
        for repository in document.repositories {
            if self
                .repositories
                .iter()
                .all(|(_, known)| *known != repository)
            {
                self.repositories.push((directory.to_owned(), repository));
            }
        }
        if let Some(active) = document.active {
            self.active = Some(active);
        }
        if let Some(registries) = document.registries {
            self.registries = Some((directory.to_owned(), registries));
        }
        for (slug, part) in document.profiles {
            let at = self
                .profiles
                .iter()
                .position(|profile| profile.slug == slug)
                .unwrap_or_else(|| {
                    self.profiles.push(Profile::new(slug));
                    self.profiles.len() - 1
                });
            self.profiles[at].overlay(part);
        }
    }

    /// The directories of commands that exist, variables and `~` expanded.
    pub fn repository_directories(&self, surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
        let directories = self.repositories.iter().map(|(base, text)| {
            let text = expand(text, surroundings);
            surroundings.path(&text, base)
        });
        directories.filter(|path| path.is_dir()).collect()
    }
}

/// The directories of commands the documents name. A broken document hides them and is told about.
pub fn repositories(
    surroundings: &Surroundings<'_>,
    explicit: Option<&Path>,
) -> (Vec<PathBuf>, Vec<Notice>) {
    match Config::load(surroundings, explicit) {
        Ok(config) => (config.repository_directories(surroundings), config.notices),
        Err(error) => {
            let words = format!("{error}; the repositories of the configuration are left out");
            (Vec::new(), vec![Notice::new(error.code(), words)])
        }
    }
}
