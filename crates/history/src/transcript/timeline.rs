//! Transcripts of timelines.

use serde_json::Value;

use super::{Author, Entry, Transcript, readable};
use crate::{Map, TimelineEntity, TimelineSnapshot};

impl Transcript {
    /// Converts the entities of a session. Kinds of the chat become a conversation; others are
    /// shown as they are.
    pub fn of_timeline(session: &str, snapshot: &TimelineSnapshot) -> Self {
        Self {
            title: session.to_owned(),
            facts: vec![
                ("session", session.to_owned()),
                ("events", snapshot.ordinal.to_string()),
            ],
            entries: snapshot.entities.iter().map(entry).collect(),
        }
    }
}

fn entry(entity: &TimelineEntity) -> Entry {
    let payload = match serde_json::from_str(&entity.payload) {
        Ok(Value::Object(payload)) => payload,
        _ => Map::new(),
    };
    let word = |name: &str| {
        payload
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let first = |names: &[&str]| {
        names
            .iter()
            .map(|name| word(name))
            .find(|word| !word.is_empty())
    };
    let code = |name: &str| payload.get(name).map(readable);
    let mut entry = match &*entity.kind {
        "ChatMessage" => {
            let author = match word("role") {
                "user" => Author::User,
                "assistant" => Author::Assistant,
                "thinking" => Author::Thinking,
                "system" => Author::System,
                "error" => Author::Error,
                _ => Author::Other,
            };
            Entry::new(author).text(first(&["content", "text"]))
        }
        "ChatToolCall" => Entry::new(Author::ToolCall).code(code("input")),
        "ChatToolResult" => Entry::new(Author::ToolResult)
            .code(code("result"))
            .text(first(&["error"])),
        kind => {
            let mut entry =
                Entry::new(Author::Other).code(Some(readable(&Value::Object(payload.clone()))));
            kind.clone_into(&mut entry.label);
            return entry;
        }
    };
    word("toolName").clone_into(&mut entry.label);
    let usual = ["", "accepted", "finished", "completed", "success"];
    if !usual.contains(&word("status")) {
        word("status").clone_into(&mut entry.note);
    }
    entry
}
