//! `context_edit` entries, which leave a message out of the conversation or replace its content.
//!
//! The original stays in the file; the model, summaries and `get_messages` see the edit. An edit that cannot be parsed
//! leaves its target out, because its writer did not want the original to be sent.

use std::collections::HashMap;
use std::sync::Arc;

use pinion_message::{Content, Message};
use serde::Deserialize;

use crate::decode::FlatContent;
use crate::entry::{Body, Entry, EntryId, EntryKind};
use crate::json;

/// The edits on a path by the entry they change. The last edit of an entry overrides earlier ones.
#[derive(Debug, Default)]
pub struct Edits(HashMap<EntryId, Option<Content>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditTarget {
    target_id: String,
}

#[derive(Deserialize)]
struct EditLine {
    replacement: Replacement,
}

#[derive(Deserialize)]
struct Replacement {
    content: FlatContent,
}

impl Edits {
    /// Reads the edits on a path.
    pub fn of(path: &[&Entry]) -> Self {
        let edits = path
            .iter()
            .filter(|entry| entry.kind == EntryKind::ContextEdit)
            .filter_map(|entry| match &entry.body {
                Body::Line(line) => {
                    let EditTarget { target_id } = json::from_slice(line)?;
                    let replacement = json::from_slice::<EditLine>(line);
                    let content = replacement.map(|line| line.replacement.content.into_content());
                    Some((EntryId::from(target_id.as_str()), content))
                }
                _ => None,
            });
        Self(edits.collect())
    }

    /// Applies the edit of `entry` to its message. `None` if it is left out.
    pub fn apply(&self, entry: &Entry, message: Arc<Message>) -> Option<Arc<Message>> {
        match self.0.get(&entry.id) {
            None => Some(message),
            Some(None) => None,
            Some(Some(content)) => Some(Arc::new(with_content((*message).clone(), content))),
        }
    }

    /// Returns the message that `entry` adds to the conversation. `None` if it adds none, is left out or cannot be
    /// read.
    pub fn message_of(&self, entry: &Entry) -> Option<Arc<Message>> {
        self.apply(entry, entry.context_message()?)
    }
}

/// Replaces the content of a message and removes the members that repeat the old content.
fn with_content(mut message: Message, content: &Content) -> Message {
    let blocks = || match content {
        Content::Text(text) => vec![pinion_message::Block::text(text.clone())],
        Content::Blocks(blocks) => blocks.clone(),
    };
    let text = || content.joined_text("\n");
    match &mut message {
        Message::User(user) => {
            user.content = content.clone();
            user.attachments = None;
        }
        Message::Assistant(answer) => answer.content = blocks(),
        Message::ToolResult(result) => {
            result.content = blocks();
            result.details = None;
        }
        Message::Custom(custom) => {
            custom.content = content.clone();
            custom.details = None;
        }
        Message::BashExecution(bash) => {
            bash.output = text();
            bash.full_output_path = None;
        }
        Message::CompactionSummary(summary) => summary.summary = text(),
        Message::BranchSummary(summary) => summary.summary = text(),
        // The system prompt is not part of the conversation.
        Message::System(_) => {}
    }
    message
}
