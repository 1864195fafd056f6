//! What may be asked of the scheduler.

use pinion_clip::manifest::Manifest;
use pinion_status::{Code, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ALIAS;
use crate::cron;

/// The longest id.
const LONGEST_ID: usize = 64;
/// The longest input or description.
const LONGEST_TEXT: usize = 64 * 1024;

/// What is asked.
#[derive(Debug)]
pub(crate) enum Request {
    List,
    Add(Wish),
    Remove(String),
    Pause(String),
    Resume(String),
    Run(String),
    History(String),
}

/// A schedule somebody wants.
#[derive(Debug)]
pub(crate) struct Wish {
    pub id: String,
    pub clip: String,
    pub command: String,
    pub cron: String,
    /// JSON text, or nothing.
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
    /// The input of a scheduled call, which may have been left out.
    pub fn input(text: &str) -> &str {
        if text.is_empty() { "{}" } else { text }
    }

    /// Reads a call.
    pub fn read(command: &str, input: &[u8]) -> Result<Self, Failure> {
        let id = || read::<IdInput>(command, input).map(|input| input.id);
        Ok(match command {
            "list" => Self::List,
            "add" => Self::Add(wish(read(command, input)?)?),
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

fn wish(input: AddInput) -> Result<Wish, Failure> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let id = input.id;
    if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(plain) {
        return Err(Failure::invalid(format!(
            "{id:?} is no id: use letters, digits, - _ . and at most {LONGEST_ID} of them"
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
    if text.len() > LONGEST_TEXT || input.description.len() > LONGEST_TEXT {
        let message = format!("input and description have at most {LONGEST_TEXT} bytes each");
        return Err(Failure::new(Code::ResourceExhausted, message));
    }
    Ok(Wish {
        id,
        clip: input.clip,
        command: input.command,
        cron: input.cron,
        input: text,
        description: input.description,
    })
}

/// What the scheduler says about itself.
pub(crate) fn manifest() -> Manifest {
    let text = json!({"type": "string"});
    let input = |required: &[&str], members: Value| {
        json!({"type": "object", "properties": members, "required": required}).to_string()
    };
    let id = || input(&["id"], json!({"id": text}));
    let add = input(
        &["id", "clip", "command", "cron"],
        json!({
            "id": {"type": "string", "description": "A name for it"},
            "clip": {"type": "string", "description": "Which clip to call"},
            "command": {"type": "string", "description": "Which of its commands"},
            "cron": {"type": "string", "description": "When: minute hour day month weekday, with seconds in front if wanted"},
            "input": {"description": "The input of the call: an object, or JSON text"},
            "description": {"type": "string", "description": "What for"},
        }),
    );
    Manifest::read(&json!({
        "name": ALIAS,
        "package": "@pinix/scheduler",
        "version": "0.1.0",
        "domain": "system",
        "description": "Calls clips by the clock.",
        "commands": [
            {"name": "list", "description": "All schedules", "input": input(&[], json!({}))},
            {"name": "add", "description": "Call a command by the clock", "input": add},
            {"name": "remove", "description": "Forget a schedule", "input": id()},
            {"name": "pause", "description": "Leave a schedule out until it is resumed", "input": id()},
            {"name": "resume", "description": "Go on with a schedule that was paused", "input": id()},
            {"name": "run", "description": "Make the call now, too", "input": id()},
            {"name": "history", "description": "What came of the last calls", "input": id()},
        ],
    }))
}
