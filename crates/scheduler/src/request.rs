//! Requests to the scheduler.

use pinion_clip::manifest::Manifest;
use pinion_status::{Code, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ALIAS;
use crate::cron;

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 64;
/// The longest input or description, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) enum Request {
    List,
    Add(NewSchedule),
    Remove(String),
    Pause(String),
    Resume(String),
    Run(String),
    History(String),
}

/// A schedule to add.
#[derive(Debug)]
pub(crate) struct NewSchedule {
    pub id: String,
    pub clip: String,
    pub command: String,
    pub cron: String,
    /// JSON text, or empty.
    pub input: String,
    pub description: String,
}

#[derive(Deserialize)]
struct AddInput {
    id: String,
    clip: String,
    command: String,
    cron: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct IdInput {
    id: String,
}

impl Request {
    /// Returns the input of a scheduled call; `{}` if it was left out.
    pub fn input(text: &str) -> &str {
        if text.is_empty() { "{}" } else { text }
    }

    /// Parses a call.
    pub fn read(command: &str, input: &[u8]) -> Result<Self, Failure> {
        let id = || read::<IdInput>(command, input).map(|input| input.id);
        Ok(match command {
            "list" => Self::List,
            "add" => Self::Add(new_schedule(read(command, input)?)?),
            "remove" => Self::Remove(id()?),
            "pause" => Self::Pause(id()?),
            "resume" => Self::Resume(id()?),
            "run" => Self::Run(id()?),
            "history" => Self::History(id()?),
            other => {
                let message = format!("clip \"{ALIAS}\" does not support command \"{other}\"");
                return Err(Failure::new(Code::NotFound, message));
            }
        })
    }
}

fn read<T: DeserializeOwned>(command: &str, input: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(input)
        .map_err(|error| Failure::invalid(format!("the input of {ALIAS} {command}: {error}")))
}

fn new_schedule(input: AddInput) -> Result<NewSchedule, Failure> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let id = input.id;
    if id.is_empty() || id.len() > MAX_ID_BYTES || !id.chars().all(plain) {
        return Err(Failure::invalid(format!(
            "{id:?} is not a valid id: use letters, digits, - _ . and at most {MAX_ID_BYTES} of them"
        )));
    }
    for (name, text) in [("clip", &input.clip), ("command", &input.command)] {
        if text.is_empty() {
            return Err(Failure::invalid(format!("{name} is empty")));
        }
    }
    cron::parse(&input.cron)?;
    let text = match input.input {
        Value::Null => String::new(),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(_) => text,
            Err(_) if text.trim().is_empty() => String::new(),
            Err(error) => {
                return Err(Failure::invalid(format!("input is not JSON: {error}")));
            }
        },
        other => other.to_string(),
    };
    if text.len() > MAX_TEXT_BYTES || input.description.len() > MAX_TEXT_BYTES {
        let message = format!("input and description have at most {MAX_TEXT_BYTES} bytes each");
        return Err(Failure::new(Code::ResourceExhausted, message));
    }
    Ok(NewSchedule {
        id,
        clip: input.clip,
        command: input.command,
        cron: input.cron,
        input: text,
        description: input.description,
    })
}

/// Returns the scheduler's manifest.
pub(crate) fn manifest() -> Manifest {
    let text = json!({"type": "string"});
    let input = |required: &[&str], members: Value| {
        json!({"type": "object", "properties": members, "required": required}).to_string()
    };
    let id = || input(&["id"], json!({"id": text}));
    let add = input(
        &["id", "clip", "command", "cron"],
        json!({
            "id": {"type": "string", "description": "The id of the schedule"},
            "clip": {"type": "string", "description": "The clip to call"},
            "command": {"type": "string", "description": "The command of the clip"},
            "cron": {"type": "string", "description": "The times: minute hour day month weekday, optionally with seconds first"},
            "input": {"description": "The input of the call: an object, or JSON text"},
            "description": {"type": "string", "description": "The purpose of the schedule"},
        }),
    );
    Manifest::read(&json!({
        "name": ALIAS,
        "package": "@pinix/scheduler",
        "version": "0.1.0",
        "domain": "system",
        "description": "Calls clips on a schedule.",
        "commands": [
            {"name": "list", "description": "List all schedules", "input": input(&[], json!({}))},
            {"name": "add", "description": "Call a command on a schedule", "input": add},
            {"name": "remove", "description": "Remove a schedule", "input": id()},
            {"name": "pause", "description": "Pause a schedule until it is resumed", "input": id()},
            {"name": "resume", "description": "Resume a paused schedule", "input": id()},
            {"name": "run", "description": "Make an additional call now", "input": id()},
            {"name": "history", "description": "Show the results of the last calls", "input": id()},
        ],
    }))
}
