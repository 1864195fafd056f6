//! Makes recordings comparable: what differs from run to run is replaced by placeholders.
//!
//! | original | placeholder |
//! |---|---|
//! | sandbox root, and all below it | `/sandbox/…` |
//! | installation directory of the program | `/sandbox/pkg` |
//! | address of the model server | `127.0.0.1:9999` |
//! | numeric `timestamp`, ISO times, times in file names | `<TS>`, `<ISO>`, `<FILE_TS>` |
//! | UUIDs, eight-digit entry ids | `<UUID:n>`, `<ENTRY:n>`, numbered by first appearance |
//! | random parts of temporary file names and call ids | `<HEX>`, `name_<MS>_n` |
//! | texts of more than 6000 characters | beginning, `<LONG chars=N sha256=H>`, end |
//!
//! In requests, prose is replaced as well: system prompts by the markers (`MARK_…`) they contain, descriptions
//! of tools, instructions of a summarising request, and keys.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Number, Value, json};
use sha2::{Digest, Sha256};

use super::Recording;
use crate::Program;

/// A recording in which two runs of the same behaviour are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    /// Standard output and what the runner did.
    pub output: Vec<Value>,
    /// Requests to the model.
    pub requests: Vec<Value>,
    /// Session files, each preceded by `{"__file": name}`.
    pub sessions: Vec<Value>,
    /// Standard error.
    pub stderr: String,
    /// The wanted files.
    pub files: Value,
}

impl Normal {
    /// Replaces what differs from run to run.
    pub fn of(recording: &Recording, program: &Program) -> Self {
        let mut names = Names::new(recording, program);
        let output = recording
            .output
            .iter()
            .map(|line| short(names.value(line)))
            .collect();
        let requests = recording
            .requests
            .iter()
            .map(|request| short(names.value(&without_prose(request))))
            .collect();
        let mut sessions = Vec::new();
        for (name, lines) in &recording.sessions {
            sessions.push(json!({"__file": names.text(name)}));
            sessions.extend(lines.iter().map(|line| short(names.session_entry(line))));
        }
        let stderr = names.text(&recording.stderr);
        let files = names.value(&recording.files);
        Self {
            output,
            requests,
            sessions,
            stderr,
            files,
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed expression")
}

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static ISO: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static FILE_TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b20\d\d-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z"));
static TEMPORARY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(pi-[a-z]+-)[0-9a-f]{8,}(\.(?:log|txt|html|md))"));
static CALL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b([a-zA-Z][a-zA-Z_]*)_1[0-9]{12}_(\d+)\b"));
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern("MARK_[A-Z0-9_]+"));

const ENTRY_FIELDS: [&str; 5] = [
    "entryId",
    "firstKeptEntryId",
    "parentId",
    "targetId",
    "fromId",
];

/// Names given so far; an id has the same number in output, requests and sessions.
struct Names {
    fixed: Vec<(String, String)>,
    uuids: HashMap<String, String>,
    entries: Vec<(String, String)>,
}

impl Names {
    fn new(recording: &Recording, program: &Program) -> Self {
        let root = recording.root.to_string_lossy().into_owned();
        let folder = root.trim_matches('/').replace('/', "-");
        let mut fixed = vec![
            (format!("--{folder}-work--"), "--sandbox-work--".to_owned()),
            (root, "/sandbox".to_owned()),
            (folder, "sandbox".to_owned()),
            (
                format!("127.0.0.1:{}", recording.port),
                "127.0.0.1:9999".to_owned(),
            ),
        ];
        for directory in &program.installed_in {
            fixed.push((
                directory.to_string_lossy().into_owned(),
                "/sandbox/pkg".to_owned(),
            ));
        }
        fixed.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self {
            fixed,
            uuids: HashMap::new(),
            entries: Vec::new(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.fixed {
            if text.contains(from) {
                text = text.replace(from, to);
            }
        }
        text = FILE_TIME.replace_all(&text, "<FILE_TS>").into_owned();
        text = ISO.replace_all(&text, "<ISO>").into_owned();
        text = self.without_uuids(&text);
        text = TEMPORARY.replace_all(&text, "${1}<HEX>${2}").into_owned();
        text = CALL.replace_all(&text, "${1}_<MS>_${2}").into_owned();
        for (id, name) in &self.entries {
            if text.contains(id) {
                text = text.replace(id, name);
            }
        }
        text
    }

    fn without_uuids(&mut self, text: &str) -> String {
        let replace = |found: &Captures<'_>| {
            let (id, range) = (&found[0], found.get(0).map_or(0..0, |m| m.range()));
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let glued = text[..range.start].ends_with(hex) || text[range.end..].starts_with(hex);
            if glued {
                return id.to_owned();
            }
            let number = self.uuids.len() + 1;
            self.uuids
                .entry(id.to_owned())
                .or_insert_with(|| format!("<UUID:{number}>"))
                .clone()
        };
        UUID.replace_all(text, replace).into_owned()
    }

    fn entry(&mut self, id: &str) -> String {
        if let Some((_, name)) = self.entries.iter().find(|(known, _)| known == id) {
            return name.clone();
        }
        let name = format!("<ENTRY:{}>", self.entries.len() + 1);
        self.entries.push((id.to_owned(), name.clone()));
        name
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.object(fields, false),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) => Value::Number(rounded(number)),
            other => other.clone(),
        }
    }

    fn session_entry(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.object(fields, true),
            other => self.value(other),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, entry: bool) -> Value {
        let entry = entry || fields.contains_key("parentId") && fields.contains_key("timestamp");
        let mut out = Map::new();
        for (name, value) in fields {
            let id = value.as_str().filter(|id| is_entry_id(id));
            let names_entry = ENTRY_FIELDS.contains(&name.as_str()) || entry && name == "id";
            let replaced = match id {
                _ if name == "timestamp" && value.is_number() => json!("<TS>"),
                Some(id) if names_entry => Value::String(self.entry(id)),
                _ => {
                    let name = self.text(name);
                    out.insert(name, self.value(value));
                    continue;
                }
            };
            out.insert(name.clone(), replaced);
        }
        Value::Object(out)
    }
}

fn is_entry_id(text: &str) -> bool {
    text.len() == 8
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Ten digits are enough for money, and 1.0 is 1.
fn rounded(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            let float: f64 = format!("{float:.9e}").parse().unwrap_or(float);
            if float.fract() == 0.0 && float.abs() < 9e15 {
                return Number::from(float as i64);
            }
            Number::from_f64(float).unwrap_or_else(|| number.clone())
        }
        _ => number.clone(),
    }
}

/// Brings a recorded value into the form in which values are compared: numbers as [`Normal`] has them.
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(rounded(number)),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(n, v)| (n.clone(), canonical(v)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Replaces the middle of very long texts by their length and digest.
fn short(value: Value) -> Value {
    const LONG: usize = 6000;
    match value {
        Value::String(text) if text.len() > LONG && !text.contains("<LONG ") => {
            let chars = text.chars().count();
            if chars <= LONG {
                return Value::String(text);
            }
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let head: String = text.chars().take(200).collect();
            let tail: String = text.chars().skip(chars - 300).collect();
            Value::String(format!("{head}<LONG chars={chars} sha256={hex}>{tail}"))
        }
        Value::Array(items) => items.into_iter().map(short).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (name, short(value)))
                .collect(),
        ),
        other => other,
    }
}

/// A logged request without the words that every agent has its own of.
fn without_prose(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(headers) = request["headers"].as_object_mut() {
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            if let Some(value) = headers.get_mut(name) {
                *value = json!("<KEY>");
            }
        }
    }
    let Some(body) = request["body"].as_object_mut() else {
        return request;
    };
    for name in ["system", "instructions"] {
        if let Some(value) = body.get_mut(name) {
            each_text(value, &marks);
        }
    }
    if let Some(parts) = body
        .get_mut("systemInstruction")
        .and_then(|s| s.get_mut("parts"))
    {
        each_text(parts, &marks);
    }
    for list in ["messages", "input", "contents"] {
        for message in body
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let system = matches!(message["role"].as_str(), Some("system" | "developer"));
            let content = if list == "contents" {
                "parts"
            } else {
                "content"
            };
            if let Some(content) = message.get_mut(content) {
                each_text(
                    content,
                    if system {
                        &marks
                    } else {
                        &without_instructions
                    },
                );
            }
        }
    }
    if let Some(tools) = body.get_mut("tools") {
        hide_descriptions(tools);
    }
    request
}

/// Changes a content that is a text, or the texts of its parts.
fn each_text(content: &mut Value, change: &dyn Fn(&str) -> String) {
    match content {
        Value::String(text) => *text = change(text),
        Value::Array(parts) => {
            for part in parts {
                if let Some(Value::String(text)) = part.get_mut("text") {
                    *text = change(text);
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn marks(text: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for mark in MARK.find_iter(text) {
        if !seen.contains(&mark.as_str()) {
            seen.push(mark.as_str());
        }
    }
    let with = if seen.is_empty() { "" } else { " with " };
    format!("<SYSTEM_PROMPT{with}{}>", seen.join(" "))
}

/// Of a summarising request only what it quotes, and what the user asked it to focus on.
fn without_instructions(text: &str) -> String {
    let quoted: Vec<&str> = ["conversation", "previous-summary"]
        .iter()
        .filter_map(|tag| {
            let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
            let start = text.find(&open)?;
            let length = text[start..].find(&close)? + close.len();
            Some(&text[start..start + length])
        })
        .collect();
    if quoted.is_empty() {
        return text.to_owned();
    }
    let focus = text
        .find("Additional focus:")
        .map_or(String::new(), |at| format!("\n{}", &text[at..]));
    format!("{}\n<SUMMARISER_PROMPT>{focus}", quoted.join("\n"))
}

pub(crate) fn hide_descriptions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_descriptions),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => *text = "<DESC>".into(),
                    other => hide_descriptions(other),
                }
            }
        }
        _ => {}
    }
}
