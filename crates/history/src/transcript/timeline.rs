//! A timeline to read: the entities of a session.

use serde_json::Value;

use super::{Entry, Transcript, Who, readable};
use crate::{Map, TimelineEntity, TimelineSnapshot};

impl Transcript {
    /// The entities of a session. Kinds the chat has are told as a conversation, others as they are.
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
            let who = match word("role") {
                "user" => Who::User,
                "assistant" => Who::Assistant,
                "thinking" => Who::Thinking,
                "system" => Who::System,
                "error" => Who::Error,
                _ => Who::Other,
            };
            Entry::new(who).text(first(&["content", "text"]))
        }
        "ChatToolCall" => Entry::new(Who::ToolCall).code(code("input")),
        "ChatToolResult" => Entry::new(Who::ToolResult)
            .code(code("result"))
            .text(first(&["error"])),
        kind => {
            let mut entry =
                Entry::new(Who::Other).code(Some(readable(&Value::Object(payload.clone()))));
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
