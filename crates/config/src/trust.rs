//! The record of the projects that the user trusts.
//!
//! A repository may bring `.pi/settings.json`. Until the user trusts its directory, pinion does not open
//! that file, because even a key that runs nothing can choose an expensive model. pinion never prompts and
//! never guesses: without a record or a flag, a project is untrusted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{ConfigError, Dirs, Notice, json_file};

/// The user's decision about a project: the files of an untrusted one are skipped, context files excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectTrust {
    Trusted,
    Untrusted,
}

/// The flag of the command line about trust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrustFlag {
    /// No flag: the record decides.
    #[default]
    Unset,
    /// Trusts the project for this run.
    Approve,
    /// Does not trust the project, regardless of the record.
    Refuse,
}

/// The record in `<agentDir>/trust.json`, in pi's form:
///
/// ```json
/// {"/home/u/project": true, "/home/u/other": false}
/// ```
///
/// An older form of pinion, `{"projects": {"/home/u/project": {"trusted": true}}}`, is read too. pi rejects it, so the
/// next change replaces it.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
    projects: BTreeMap<String, bool>,
}

/// The member of the older form.
const PROJECTS: &str = "projects";

impl Trust {
    /// Reads the record. A record that cannot be read trusts no directory.
    pub fn load(dirs: &Dirs) -> (Self, Vec<Notice>) {
        let file = dirs.agent_dir.join("trust.json");
        let mut notices = Vec::new();
        let mut object = json_file::read(&file, &mut notices);
        if object.get(PROJECTS).is_some_and(|old| !old.is_object()) {
            let message = "projects must be an object; no project is trusted";
            notices.push(Notice::about(&file, "wrong_type", message));
            object.clear();
        }
        let projects = decisions(&object);
        (Self { file, projects }, notices)
    }

    /// Decides about the project in `cwd`: a flag overrides the record, and the record overrides
    /// `defaultProjectTrust` in the user's settings.
    pub fn decide(dirs: &Dirs, flag: TrustFlag) -> (ProjectTrust, Vec<Notice>) {
        match flag {
            TrustFlag::Approve => (ProjectTrust::Trusted, Vec::new()),
            TrustFlag::Refuse => (ProjectTrust::Untrusted, Vec::new()),
            TrustFlag::Unset => {
                let (trust, notices) = Self::load(dirs);
                let trusted = trust
                    .decision(&dirs.cwd)
                    .unwrap_or_else(|| trusts_by_default(dirs));
                (ProjectTrust::from(trusted), notices)
            }
        }
    }

    /// Reports whether the directory, or the nearest ancestor with a record, is trusted.
    pub fn is_trusted(&self, directory: &Path) -> bool {
        self.decision(directory).unwrap_or(false)
    }

    /// Returns the record of the directory or of the nearest ancestor that has one.
    fn decision(&self, directory: &Path) -> Option<bool> {
        if self.projects.is_empty() {
            return None;
        }
        let real = fs::canonicalize(directory).ok()?;
        real.ancestors()
            .find_map(|ancestor| self.projects.get(ancestor.to_str()?).copied())
    }

    /// The decision of [`Self::is_trusted`] as a [`ProjectTrust`].
    pub fn of(&self, directory: &Path) -> ProjectTrust {
        ProjectTrust::from(self.is_trusted(directory))
    }

    /// Trusts a directory and everything below it.
    pub fn trust(&mut self, directory: &Path) -> Result<(), ConfigError> {
        self.record(directory, true)
    }

    /// Stops trusting a directory, also if one of its ancestors is trusted.
    pub fn revoke(&mut self, directory: &Path) -> Result<(), ConfigError> {
        self.record(directory, false)
    }

    fn record(&mut self, directory: &Path, trusted: bool) -> Result<(), ConfigError> {
        let real = fs::canonicalize(directory).map_err(ConfigError::io("find", directory))?;
        let Some(name) = real.to_str().map(str::to_owned) else {
            return Err(ConfigError::PathNotText { path: real });
        };
        json_file::update(&self.file, |object| {
            let mut projects = decisions(object);
            projects.insert(name.clone(), trusted);
            *object = projects
                .into_iter()
                .map(|(name, trusted)| (name, Value::Bool(trusted)))
                .collect();
        })?;
        self.projects.insert(name, trusted);
        Ok(())
    }
}

impl From<bool> for ProjectTrust {
    fn from(trusted: bool) -> Self {
        if trusted {
            Self::Trusted
        } else {
            Self::Untrusted
        }
    }
}

/// Returns the decisions in either form of the record. Values of other types decide nothing.
fn decisions(object: &Map<String, Value>) -> BTreeMap<String, bool> {
    let old = object.get(PROJECTS).and_then(Value::as_object);
    let old = old
        .into_iter()
        .flatten()
        .map(|(name, record)| (name, record.get("trusted") == Some(&Value::Bool(true))));
    let pi = object
        .iter()
        .filter_map(|(name, decision)| Some((name, decision.as_bool()?)));
    old.chain(pi)
        .map(|(name, trusted)| (name.clone(), trusted))
        .collect()
}

/// Reports whether the user's settings trust every project without a record. Problems of the file are reported when the
/// settings are read.
fn trusts_by_default(dirs: &Dirs) -> bool {
    let settings = json_file::read(&dirs.agent_dir.join("settings.json"), &mut Vec::new());
    settings.get("defaultProjectTrust") == Some(&Value::from("always"))
}

/// The notice about the settings file of a project that is not trusted.
pub(crate) fn skipped_settings_notice(file: &Path) -> Notice {
    let message = "this project is not trusted, so its settings are ignored; look at them, then run \
                   `pinion trust` here to accept the project";
    Notice::about(file, "untrusted_settings", message)
}
