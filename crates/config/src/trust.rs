//! Which projects the user trusts, and what the others may still set.
//!
//! A repository may bring `.pi/settings.json`. Until the user trusts its directory, nothing in it
//! may choose an executable, code to load or a place to write to. There is no question here and no
//! guess: without a record, and without being told, a project is untrusted.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::settings::{Kind, Untrusted, find_key, find_member};
use crate::{ConfigError, Dirs, Notice, json_file, paths};

/// Whether the project may set everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ProjectTrust {
    Trusted,
    Untrusted,
}

/// What the command line says about trust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrustFlag {
    /// Nothing: the record decides.
    #[default]
    Unset,
    /// Trust this project for this run.
    Approve,
    /// Do not, whatever the record says.
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
    /// Reads the record. A record that cannot be read trusts nobody.
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

    /// Whether the project in `cwd` may set everything, for a flag and the record.
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

    /// Whether the directory, or the nearest ancestor with a record, is trusted.
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

    /// The same as a [`ProjectTrust`].
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

/// What an untrusted project may set, and the names of what it tried to set besides.
///
/// Looks at spelling only, not at the disk: links that lead out of the project are refused when
/// the file they lead to is about to be read.
pub fn filter_untrusted(
    project: Map<String, Value>,
    dirs: &Dirs,
) -> (Map<String, Value>, Vec<String>) {
    let mut allowed = Map::new();
    let mut ignored = Vec::new();
    for (name, value) in project {
        let Some(key) = find_key(&name).filter(|key| key.untrusted != Untrusted::Ignored) else {
            ignored.push(name);
            continue;
        };
        let value = match value {
            Value::Array(entries) if key.untrusted == Untrusted::InsideProject => {
                Value::Array(entries_inside(&name, entries, dirs, &mut ignored))
            }
            Value::Object(members) => {
                Value::Object(known_members(&name, members, key.kind, &mut ignored))
            }
            value => value,
        };
        allowed.insert(name, value);
    }
    (allowed, ignored)
}

/// An object of which only known members remain: an unknown one might mean something tomorrow.
fn known_members(
    prefix: &str,
    members: Map<String, Value>,
    kind: Kind,
    ignored: &mut Vec<String>,
) -> Map<String, Value> {
    let known = match kind {
        Kind::Members(known) => known,
        // Whoever reads it knows what a project may say.
        Kind::Checked => return members,
        _ => return Map::new(),
    };
    let mut kept = Map::new();
    for (name, value) in members {
        let path = format!("{prefix}.{name}");
        match (find_member(known, &name), value) {
            (None, _) => ignored.push(path),
            (Some(kind), Value::Object(inner)) => {
                kept.insert(
                    name,
                    Value::Object(known_members(&path, inner, kind, ignored)),
                );
            }
            (Some(_), value) => {
                kept.insert(name, value);
            }
        }
    }
    kept
}

fn entries_inside(
    name: &str,
    entries: Vec<Value>,
    dirs: &Dirs,
    ignored: &mut Vec<String>,
) -> Vec<Value> {
    let (inside, outside): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| {
        entry.as_str().is_some_and(|text| {
            let path = text.strip_prefix(['!', '+', '-']).unwrap_or(text);
            paths::resolve(path, &dirs.project_dir, &dirs.home).starts_with(&dirs.cwd)
        })
    });
    ignored.extend(outside.iter().map(|entry| format!("{name} {entry}")));
    inside
}

/// The one notice about everything an untrusted project tried to set.
pub(crate) fn ignored_notice(file: &Path, ignored: &[String]) -> Notice {
    let names = ignored.join(", ");
    let message = format!(
        "this project is not trusted, so these settings are ignored: {names}; \
         look at them, then run `pinion trust` here to accept them"
    );
    Notice::about(file, "untrusted_settings", message)
}
