//! The record of the projects that the user trusts.
//!
//! A repository may bring `.pi/settings.json`. Until the user trusts its directory, pinion does not open
//! that file, because even a key that runs nothing can choose an expensive model. pinion never prompts and
//! never guesses: without a record or a flag, a project is untrusted.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

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

/// The record in `<agentDir>/trust.json`:
///
/// ```json
/// {"projects": {"/home/u/project": {"trusted": true, "at": 1767225600000}}}
/// ```
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
    projects: Map<String, Value>,
}

impl Trust {
    /// Reads the record. A record that cannot be read trusts no directory.
    pub fn load(dirs: &Dirs) -> (Self, Vec<Notice>) {
        let file = dirs.agent_dir.join("trust.json");
        let mut notices = Vec::new();
        let projects = match json_file::read(&file, &mut notices).shift_remove("projects") {
            Some(Value::Object(projects)) => projects,
            None => Map::new(),
            Some(_) => {
                let message = "projects must be an object; no project is trusted";
                notices.push(Notice::about(&file, "wrong_type", message));
                Map::new()
            }
        };
        (Self { file, projects }, notices)
    }

    /// Decides about the project in `cwd`: a flag overrides the record.
    pub fn decide(dirs: &Dirs, flag: TrustFlag) -> (ProjectTrust, Vec<Notice>) {
        match flag {
            TrustFlag::Approve => (ProjectTrust::Trusted, Vec::new()),
            TrustFlag::Refuse => (ProjectTrust::Untrusted, Vec::new()),
            TrustFlag::Unset => {
                let (trust, notices) = Self::load(dirs);
                (trust.of(&dirs.cwd), notices)
            }
        }
    }

    /// Reports whether the directory, or the nearest ancestor with a record, is trusted.
    pub fn is_trusted(&self, directory: &Path) -> bool {
        if self.projects.is_empty() {
            return false;
        }
        let Ok(real) = fs::canonicalize(directory) else {
            return false;
        };
        let recorded = real.ancestors().find_map(|ancestor| {
            let record = self.projects.get(ancestor.to_str()?)?;
            Some(record.get("trusted") == Some(&Value::Bool(true)))
        });
        recorded.unwrap_or(false)
    }

    /// The decision of [`Self::is_trusted`] as a [`ProjectTrust`].
    pub fn of(&self, directory: &Path) -> ProjectTrust {
        if self.is_trusted(directory) {
            ProjectTrust::Trusted
        } else {
            ProjectTrust::Untrusted
        }
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
        let record = json!({"trusted": trusted, "at": pinion_message::now_millis()});
        json_file::update(&self.file, |object| {
            let projects = object.entry("projects").or_insert_with(|| json!({}));
            if !projects.is_object() {
                *projects = json!({});
            }
            if let Value::Object(projects) = projects {
                projects.insert(name.clone(), record.clone());
            }
        })?;
        self.projects.insert(name, record);
        Ok(())
    }
}

/// The notice about the settings file of a project that is not trusted.
pub(crate) fn skipped_settings_notice(file: &Path) -> Notice {
    let message = "this project is not trusted, so its settings are ignored; look at them, then run \
                   `pinion trust` here to accept the project";
    Notice::about(file, "untrusted_settings", message)
}
