//! Placeholders for values that differ from run to run: directories, session files, ids, times.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use crate::Sandbox;

/// The directories of the recordings' extensions.
#[derive(Debug, Clone)]
pub struct Places {
    /// The bundled examples of the reference.
    pub examples: Option<PathBuf>,
    /// pinion's own probes.
    pub probes: PathBuf,
    /// pinion's own examples.
    pub own: PathBuf,
}

impl Places {
    /// The extensions of this project, and the examples of the reference if they were fetched.
    pub fn new(examples: Option<PathBuf>) -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let place = |name: &str| {
            let path = project.join(name);
            path.canonicalize()
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        Self {
            examples,
            probes: place("tests/extensions/probes"),
            own: place("examples/extensions"),
        }
    }
}

/// The placeholders of one run and their values; grows as lines are read.
#[derive(Debug)]
pub(super) struct Names {
    directories: Vec<(String, String)>,
    session_files: Vec<String>,
    entries: Vec<String>,
    ids: Vec<String>,
}

impl Names {
    pub(super) fn new(sandbox: &Sandbox, places: &Places) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut directories = vec![
            ("<PROBES>".to_owned(), text(&places.probes)),
            ("<OWN>".to_owned(), text(&places.own)),
            (
                "<SESSION_DIR>".to_owned(),
                text(&sandbox.root().join("sessions")),
            ),
            ("<AGENT_DIR>".to_owned(), text(&sandbox.agent())),
            ("<CWD>".to_owned(), text(&sandbox.work())),
            ("<HOME>".to_owned(), text(&sandbox.home())),
        ];
        if let Some(examples) = &places.examples {
            directories.insert(0, ("<EXAMPLES>".to_owned(), text(examples)));
        }
        Self {
            directories,
            session_files: Vec::new(),
            entries: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Learns the session file and the entries that an original line names.
    pub(super) fn learn(&mut self, line: &Value) {
        match line {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value.as_str()) {
                        ("sessionFile", Some(file)) => remember(&mut self.session_files, file),
                        ("entryId" | "firstKeptEntryId", Some(id)) => {
                            remember(&mut self.entries, id)
                        }
                        _ => self.learn(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    /// Replaces values by placeholders.
    pub(super) fn named(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.named_text(text)),
            Value::Array(items) => items.iter().map(|item| self.named(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.named(value)))
                .collect(),
            Value::Number(number) if number.as_f64().is_some_and(|n| n > 1.0e12) => "<MS>".into(),
            other => other.clone(),
        }
    }

    /// Replaces values in a text by placeholders.
    pub(super) fn named_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, file) in self.session_files.iter().enumerate() {
            text = text.replace(file, &format!("<SESSION_FILE:{}>", number + 1));
        }
        for (name, directory) in &self.directories {
            text = text.replace(directory, name);
        }
        for (number, id) in self.entries.iter().enumerate() {
            text = text.replace(id, &format!("<ENTRY:{}>", number + 1));
        }
        static UUID: OnceLock<Regex> = OnceLock::new();
        static ISO: OnceLock<Regex> = OnceLock::new();
        static MS: OnceLock<Regex> = OnceLock::new();
        let uuid = pattern(
            &UUID,
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        );
        for id in uuid.find_iter(&text) {
            remember(&mut self.ids, id.as_str());
        }
        for (number, id) in self.ids.iter().enumerate() {
            text = text.replace(id, &format!("<UI:{}>", number + 1));
        }
        let iso = pattern(&ISO, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z");
        let text = iso.replace_all(&text, "<ISO>");
        pattern(&MS, r"\b1[5-9]\d{11}\b")
            .replace_all(&text, "<MS>")
            .into_owned()
    }

    /// Replaces placeholders in a recorded line by the values of this run.
    pub(super) fn real(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.real_text(text)),
            Value::Array(items) => items.iter().map(|item| self.real(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.real(value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// Replaces placeholders in a recorded text by the values of this run.
    pub(super) fn real_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, directory) in &self.directories {
            text = text.replace(name, directory);
        }
        let numbered = [
            ("UI", &self.ids),
            ("ENTRY", &self.entries),
            ("SESSION_FILE", &self.session_files),
        ];
        for (kind, values) in numbered {
            for (number, value) in values.iter().enumerate() {
                text = text.replace(&format!("<{kind}:{}>", number + 1), value);
            }
        }
        text
    }
}

fn remember(known: &mut Vec<String>, value: &str) {
    if !known.iter().any(|other| other == value) {
        known.push(value.to_owned());
    }
}

fn pattern<'a>(cell: &'a OnceLock<Regex>, text: &str) -> &'a Regex {
    cell.get_or_init(|| Regex::new(text).expect("a fixed pattern"))
}
