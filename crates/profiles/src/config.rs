//! All configuration documents: read in order, later ones override earlier ones, those of untrusted
//! projects are left out.

use std::io;
use std::path::{Path, PathBuf};

use crate::document::{self, Document};
use crate::error::{Notice, ProfileError};
use crate::locations::{
    DocumentLocation, DocumentOwner, HostContext, document_locations, expand, git_root,
};
use crate::profile::Profile;
use crate::slug::Slug;
use crate::source::MAX_BYTES;

/// An old name of documents, which is rejected.
const REFUSED: &str = ".pinocchio-profile.yml";

/// The merged content of all documents.
#[derive(Debug, Default)]
pub struct Config {
    /// Directories of commands as written, with the directory of the document that names them.
    pub repositories: Vec<(PathBuf, String)>,
    /// The default profile.
    pub active: Option<Slug>,
    /// Sources of registries, with the directory of the document that names them.
    pub registries: Option<(PathBuf, Vec<String>)>,
    /// Inline profiles, in the order of their first mention.
    pub profiles: Vec<Profile>,
    /// Every location that was checked.
    pub documents: Vec<(DocumentLocation, DocumentState)>,
    pub notices: Vec<Notice>,
}

/// The state of a document's location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentState {
    /// The document was read.
    Read,
    /// The file does not exist.
    Missing,
    /// The file exists, but its project is not trusted.
    Untrusted,
}

impl DocumentState {
    /// Returns a stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Missing => "missing",
            Self::Untrusted => "untrusted",
        }
    }
}

impl Config {
    /// Reads every document; fails at the first invalid one.
    pub fn load(host: &HostContext<'_>, explicit: Option<&Path>) -> Result<Self, ProfileError> {
        let mut config = Self::default();
        for location in document_locations(host, explicit) {
            let state = config.take(&location, host)?;
            config.documents.push((location, state));
        }
        let kept_out: Vec<String> = config
            .documents
            .iter()
            .filter(|(_, state)| *state == DocumentState::Untrusted)
            .map(|(location, _)| location.path.display().to_string())
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
        let root = git_root(host.cwd);
        let mut directories: Vec<&Path> = root.as_deref().into_iter().collect();
        if !directories.contains(&host.cwd) {
            directories.push(host.cwd);
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
        location: &DocumentLocation,
        host: &HostContext<'_>,
    ) -> Result<DocumentState, ProfileError> {
        let explicit = location.kind == DocumentOwner::Explicit;
        if let DocumentOwner::Project(directory) = &location.kind
            && !(host.trusts)(directory)
        {
            // The file is not read, so that it has no effect even if it is invalid.
            return Ok(match std::fs::symlink_metadata(&location.path) {
                Ok(_) => DocumentState::Untrusted,
                Err(_) => DocumentState::Missing,
            });
        }
        if location
            .path
            .file_name()
            .is_some_and(|name| name == REFUSED)
        {
            return Err(ProfileError::RefusedName {
                path: location.path.clone(),
            });
        }
        // The user may name `<(command)`; other locations must be regular files.
        let bytes = if explicit {
            pinion_files::read_named(&location.path, MAX_BYTES)
        } else {
            pinion_files::read(&location.path, MAX_BYTES)
        };
        let text = bytes.and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8"))
        });
        let text = match text {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return if explicit {
                    Err(ProfileError::ConfigNotFound {
                        path: location.path.clone(),
                    })
                } else {
                    Ok(DocumentState::Missing)
                };
            }
            // A file in the location of a parent directory means that there is no configuration.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory && !explicit => {
                return Ok(DocumentState::Missing);
            }
            Err(error) => {
                return Err(ProfileError::Unreadable {
                    what: "configuration",
                    path: location.path.clone(),
                    reason: error.to_string(),
                });
            }
        };
        let document = document::read(&text).map_err(|problems| ProfileError::Document {
            origin: location.path.display().to_string(),
            problems,
        })?;
        let directory = location.path.parent().unwrap_or(Path::new("/"));
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

    /// Returns the existing directories of commands, with variables and `~` expanded.
    pub fn repository_directories(&self, host: &HostContext<'_>) -> Vec<PathBuf> {
        let directories = self.repositories.iter().map(|(base, text)| {
            let text = expand(text, host);
            host.path(&text, base)
        });
        directories.filter(|path| path.is_dir()).collect()
    }
}

/// Returns the directories of commands in the documents. An invalid document hides them and adds a
/// notice.
pub fn repositories(
    host: &HostContext<'_>,
    explicit: Option<&Path>,
) -> (Vec<PathBuf>, Vec<Notice>) {
    match Config::load(host, explicit) {
        Ok(config) => (config.repository_directories(host), config.notices),
        Err(error) => {
            let words = format!("{error}; the repositories of the configuration are left out");
            (Vec::new(), vec![Notice::new(error.code(), words)])
        }
    }
}
