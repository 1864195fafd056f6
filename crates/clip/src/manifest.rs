//! The manifest of a clip: its commands, slots and hints.
//!
//! Clips and package files write manifests in several forms, which are converted to one here. Schemas in a manifest
//! serve people, forms and models; the hub also checks the inputs of calls against them ([`Manifest::check_input`]).

mod arguments;
mod check;
mod fields;
mod forms;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use arguments::{Arguments, CommandInput};
pub use check::InputChecks;
pub use fields::{InputField, input_fields};

/// A manifest in the form that is stored; see [`Manifest::normalise`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The alias of the clip. A name that the clip chose itself is ignored.
    pub name: String,
    /// The package that the clip was installed from.
    pub package: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// A category, in free words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The commands, sorted by name. A clip without any accepts every command.
    pub commands: Vec<Command>,
    /// Descriptions of groups of commands.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// The clips it calls, by the name of the slot.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, Dependency>,
    /// Hints on how to use it, for agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// JSON Schemas of the things it deals with, as text, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub entities: BTreeMap<String, String>,
    /// The clip has web pages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_web: bool,
    /// Calls that the scheduler makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// Compiled schemas of inputs; a cache that is not part of the manifest.
    #[serde(skip)]
    pub checks: InputChecks,
}

/// One command of a clip.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Command {
    /// The name; a grouped command is named `group verb`.
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The form of the input: JSON Schema as text, or a text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The form of the output: JSON Schema as text, or a text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The requirement of a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependency {
    /// The package; the slot's name if the manifest does not name one.
    pub package: String,
    /// A range of versions; empty for any.
    pub version: String,
}

/// A call that the scheduler makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    pub command: String,
    /// The times of the calls, as a cron expression.
    pub cron: String,
    /// The input, as JSON text.
    pub input: String,
    pub description: String,
}

/// The identity of a clip according to its installation record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity<'a> {
    pub alias: &'a str,
    /// The package it was installed from; empty if unknown.
    pub package: &'a str,
    /// The version that was installed; empty if unknown.
    pub version: &'a str,
}

impl Manifest {
    /// Reads a manifest in any accepted form. Members of the wrong type count as absent.
    pub fn read(value: &Value) -> Self {
        let mut manifest = forms::read(value);
        manifest.normalise();
        manifest
    }

    /// Trims all texts, drops entries without a name or with a repeated name, sorts, and fills in the packages of
    /// slots.
    pub fn normalise(&mut self) {
        for text in [
            &mut self.name,
            &mut self.package,
            &mut self.version,
            &mut self.domain,
            &mut self.description,
        ] {
            trim(text);
        }
        for command in &mut self.commands {
            trim(&mut command.name);
            trim(&mut command.description);
            trim(&mut command.input);
            trim(&mut command.output);
        }
        let mut seen = BTreeSet::new();
        self.commands
            .retain(|command| !command.name.is_empty() && seen.insert(command.name.clone()));
        self.commands
            .sort_by(|left, right| left.name.cmp(&right.name));
        self.patterns.iter_mut().for_each(trim);
        self.patterns.retain(|pattern| !pattern.is_empty());
        self.patterns.sort();
        self.patterns.dedup();
        self.groups = trimmed(std::mem::take(&mut self.groups), trim);
        self.entities = trimmed(std::mem::take(&mut self.entities), trim);
        self.dependencies = trimmed(std::mem::take(&mut self.dependencies), |dependency| {
            trim(&mut dependency.package);
            trim(&mut dependency.version);
        });
        for (slot, dependency) in &mut self.dependencies {
            if dependency.package.is_empty() {
                dependency.package.clone_from(slot);
            }
        }
        self.schedules
            .retain(|schedule| !schedule.command.is_empty() && !schedule.cron.is_empty());
    }

    /// Combines the manifest that the running clip registered, or else that of its files, with the identity it has in
    /// this hub.
    pub fn assemble(identity: Identity<'_>, files: &Self, running: Option<&Self>) -> Self {
        let base = running.unwrap_or(files);
        let first = |candidates: [&str; 3]| {
            let found = candidates
                .into_iter()
                .find(|candidate| !candidate.is_empty());
            found.unwrap_or_default().to_owned()
        };
        let package = first([identity.package, &base.package, &files.package]);
        Self {
            name: identity.alias.to_owned(),
            package: first([&package, &files.name, identity.alias]),
            version: first([&base.version, identity.version, &files.version]),
            domain: first([&base.domain, &files.domain, ""]),
            description: first([&base.description, &files.description, ""]),
            commands: base.commands.clone(),
            groups: base.groups.clone(),
            dependencies: if base.dependencies.is_empty() {
                files.dependencies.clone()
            } else {
                base.dependencies.clone()
            },
            patterns: base.patterns.clone(),
            entities: base.entities.clone(),
            has_web: base.has_web || files.has_web,
            schedules: if base.schedules.is_empty() {
                files.schedules.clone()
            } else {
                base.schedules.clone()
            },
            checks: InputChecks::default(),
        }
    }

    /// Reports whether a call of `command` may be passed on: the command is listed, or the manifest lists none.
    pub fn accepts(&self, command: &str) -> bool {
        self.commands.is_empty() || self.command(command).is_some()
    }

    /// Returns the command of this name. Between words, `/` and space are equal.
    pub fn command(&self, name: &str) -> Option<&Command> {
        let exact = self.commands.iter().find(|command| command.name == name);
        exact.or_else(|| {
            let name = canonical_command(name);
            self.commands
                .iter()
                .find(|command| canonical_command(&command.name) == name)
        })
    }
}

/// Returns a command's name with one space between its words, whether it was written with spaces or slashes.
pub fn canonical_command(name: &str) -> String {
    let words = name
        .split(|letter: char| letter == '/' || letter.is_whitespace())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn trim(text: &mut String) {
    if text.trim().len() != text.len() {
        *text = text.trim().to_owned();
    }
}

fn trimmed<T>(map: BTreeMap<String, T>, mut value: impl FnMut(&mut T)) -> BTreeMap<String, T> {
    let entries = map.into_iter().map(|(mut key, mut entry)| {
        trim(&mut key);
        value(&mut entry);
        (key, entry)
    });
    entries.filter(|(key, _)| !key.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(manifest: &Manifest) -> Vec<&str> {
        manifest
            .commands
            .iter()
            .map(|command| command.name.as_str())
            .collect()
    }

    #[test]
    fn commands_come_in_three_forms() {
        for commands in [
            json!([" list ", "add", "add", "", 5]),
            json!([{"name": "list"}, {"command": "add", "description": "first"}, {"id": "add", "description": "second"}, {}]),
            json!({"list": {}, "add": {"description": "first"}}),
        ] {
            let manifest = Manifest::read(&json!({ "commands": commands }));
            assert_eq!(names(&manifest), ["add", "list"]);
            assert_ne!(manifest.commands[0].description, "second");
        }
        for commands in [json!(5), json!("list"), Value::Null] {
            assert_eq!(
                names(&Manifest::read(&json!({ "commands": commands }))).len(),
                0
            );
        }
    }

    #[test]
    fn entries_are_trimmed_sorted_and_unique() {
        let manifest = Manifest::read(&json!({
            "name": " claimed ",
            "domain": " lab ",
            "patterns": [" b", "a", "b ", ""],
            "dependencies": {" store ": {}, "mail": "@acme/mail", "db": {"package": " @acme/db ", "version": "^1"}},
            "groups": {"note": {"description": " Notes "}},
            "entities": {"Item": {"type": "object"}, "Text": "{\"type\":\"string\"}"},
            "schedules": [{"command": "tick", "cron": "0 * * * *", "input": {"n": 1}}, {"cron": "x"}],
            "has_web": true,
        }));
        assert_eq!(
            (manifest.name.as_str(), manifest.domain.as_str()),
            ("claimed", "lab")
        );
        assert_eq!(manifest.patterns, ["a", "b"]);
        let dependencies: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|(slot, dependency)| {
                (
                    slot.as_str(),
                    dependency.package.as_str(),
                    dependency.version.as_str(),
                )
            })
            .collect();
        assert_eq!(
            dependencies,
            [
                ("db", "@acme/db", "^1"),
                ("mail", "@acme/mail", ""),
                ("store", "store", "")
            ]
        );
        assert_eq!(manifest.groups["note"], "Notes");
        assert_eq!(manifest.entities["Item"], r#"{"type":"object"}"#);
        assert_eq!(manifest.entities["Text"], r#"{"type":"string"}"#);
        assert_eq!(manifest.schedules.len(), 1);
        assert_eq!(manifest.schedules[0].input, r#"{"n":1}"#);
        assert!(manifest.has_web);
        assert_eq!(Manifest::read(&json!([1])), Manifest::default());
    }

    #[test]
    fn the_install_record_names_the_clip_and_the_clip_describes_itself() {
        let files = Manifest::read(
            &json!({"name": "@me/files", "version": "1.0.0", "description": "from files",
            "commands": ["old"], "schedules": [{"command": "tick", "cron": "* * * * *"}]}),
        );
        let running = Manifest::read(
            &json!({"name": "liar", "package": "@evil/x", "version": "2.0.0", "commands": ["new"]}),
        );
        let identity = Identity {
            alias: "todo",
            package: "@me/todo",
            version: "1.5.0",
        };
        let seen = Manifest::assemble(identity, &files, Some(&running));
        assert_eq!(
            (seen.name.as_str(), seen.package.as_str()),
            ("todo", "@me/todo")
        );
        assert_eq!(
            (seen.version.as_str(), seen.description.as_str()),
            ("2.0.0", "from files")
        );
        assert_eq!((names(&seen), seen.schedules.len()), (vec!["new"], 1));

        let unknown = Identity {
            alias: "todo",
            ..Identity::default()
        };
        let seen = Manifest::assemble(unknown, &files, None);
        assert_eq!(
            (seen.package.as_str(), seen.version.as_str()),
            ("@me/files", "1.0.0")
        );
        let seen = Manifest::assemble(unknown, &Manifest::default(), None);
        assert_eq!(seen.package, "todo");
    }

    #[test]
    fn a_slash_in_a_command_is_a_space() {
        let manifest = Manifest::read(&json!({"commands": ["note add", "systemd.status"]}));
        assert!(manifest.accepts("note/add") && manifest.accepts(" note  add "));
        assert!(manifest.accepts("systemd.status") && !manifest.accepts("systemd status"));
        assert!(!manifest.accepts("note"));
        assert!(Manifest::default().accepts("anything"));
    }
}
