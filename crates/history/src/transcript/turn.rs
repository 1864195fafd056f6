//! Transcripts of turns.

use std::collections::HashMap;

use serde_json::Value;

use super::{Author, Entry, Part, Transcript, moment, readable};
use crate::{Block, BlockKind, SavedTurn, Turn};

impl From<&SavedTurn> for Transcript {
    fn from(saved: &SavedTurn) -> Self {
        let turn = &saved.turn;
        let mut facts = vec![
            ("session", saved.session.clone()),
            ("turn", turn.id.clone()),
            ("phase", saved.phase.clone()),
            ("saved", moment(saved.at_ms)),
        ];
        if saved.conversation != saved.session {
            facts.insert(0, ("conversation", saved.conversation.clone()));
        }
        let result = turn.metadata.get(Turn::INFERENCE_RESULT);
        for (name, key) in [
            ("provider", "provider"),
            ("model", "model"),
            ("ended", "stop_reason"),
        ] {
            let known = result.and_then(|result| result.get(key)?.as_str());
            facts.extend(known.map(|known| (name, known.to_owned())));
        }
        facts.retain(|(_, value)| !value.is_empty());
        let mut tools = HashMap::new();
        Self {
            title: saved.session.clone(),
            facts,
            entries: turn
                .blocks
                .iter()
                .map(|block| entry(block, &mut tools))
                .collect(),
        }
    }
}

/// Converts a block; `tools` holds the names of tools by the ids of their calls so far.
fn entry<'a>(block: &'a Block, tools: &mut HashMap<&'a str, &'a str>) -> Entry {
    let text = block.payload_text("text");
    match block.kind {
        BlockKind::User => images(block, Entry::new(Author::User).text(text)),
        BlockKind::LlmText => Entry::new(Author::Assistant).text(text),
        BlockKind::System => Entry::new(Author::System).text(text),
        BlockKind::Reasoning => {
            let summary = block.payload.get("summary").map(readable);
            let entry = Entry::new(Author::Thinking).text(text);
            match text {
                Some(text) if !text.is_empty() => entry,
                _ => entry.code(summary),
            }
        }
        BlockKind::ToolCall => {
            let name = block.payload_text("name").unwrap_or_default();
            tools.insert(block.payload_text("id").unwrap_or(&block.id), name);
            let mut entry =
                Entry::new(Author::ToolCall).code(block.payload.get("args").map(readable));
            name.clone_into(&mut entry.label);
            entry
        }
        BlockKind::ToolUse => {
            let name = block.payload_text("id").and_then(|id| tools.get(id));
            let error = block
                .payload_text("error")
                .filter(|error| !error.is_empty());
            let mut entry = Entry::new(Author::ToolResult)
                .code(block.payload.get("result").map(readable))
                .text(error);
            name.copied()
                .unwrap_or_default()
                .clone_into(&mut entry.label);
            if error.is_some() {
                entry.note = "failed".to_owned();
            }
            entry
        }
        BlockKind::Other => {
            let rest = if block.payload.is_empty() {
                None
            } else {
                Some(readable(&Value::Object(block.payload.clone())))
            };
            Entry::new(Author::Other).code(rest)
        }
    }
}

/// Adds the names of images, which are not shown because they may be large or external.
fn images(block: &Block, mut entry: Entry) -> Entry {
    let images = block.payload.get("images").and_then(Value::as_array);
    for image in images.into_iter().flatten() {
        let member = |name: &str| image.get(name).and_then(Value::as_str);
        let kind = member("media_type").unwrap_or("image");
        let place = member("url")
            .or(member("file_id"))
            .filter(|place| !place.starts_with("data:"));
        entry.parts.push(Part::Text(match place {
            Some(place) => format!("[{kind}: {place}]"),
            None => format!("[{kind}]"),
        }));
    }
    entry
}
