//! An entity while it changes.

use std::sync::Arc;

use pinion_proto::Message;

use crate::message::{Undecodable, decode};
use crate::pb::{self, Text};

#[derive(Debug)]
pub(super) struct Entity {
    pub kind: Arc<str>,
    pub id: Arc<str>,
    pub created: u64,
    pub last: u64,
    pub body: Body,
    pub change: Change,
    /// The length of its growing text when a store last received it.
    pub stored_length: usize,
}

#[derive(Debug)]
pub(super) enum Body {
    /// As a store had it, or of a kind that does not grow.
    Stored(Arc<str>),
    /// `text` and `content` are empty here.
    Message(Box<Growing<pb::ChatMessageEntity>>),
    /// `input` is empty here.
    Call(Box<Growing<pb::ToolCallEntity>>),
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Growing<M> {
    pub message: M,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    No,
    Grew,
    Otherwise,
}

impl Entity {
    pub fn is_gone(&self) -> bool {
        matches!(self.body, Body::Gone)
    }

    pub fn growing_size(&self) -> usize {
        match &self.body {
            Body::Message(growing) => growing.text.len(),
            Body::Call(growing) => growing.text.len(),
            Body::Stored(_) | Body::Gone => 0,
        }
    }

    /// Returns the protobuf JSON; `None` if the entity was removed.
    pub fn payload(&self) -> Option<Arc<str>> {
        Some(match &self.body {
            Body::Stored(payload) => Arc::clone(payload),
            Body::Message(growing) => {
                let text = Text::new(&growing.text);
                let message = pb::ChatMessageEntity {
                    text: text.clone(),
                    content: text,
                    ..growing.message.clone()
                };
                message.to_json().into()
            }
            Body::Call(growing) => {
                let message = pb::ToolCallEntity {
                    input: Text::new(&growing.text),
                    ..growing.message.clone()
                };
                message.to_json().into()
            }
            Body::Gone => return None,
        })
    }
}

impl<M> Growing<M> {
    /// Replaces the text by `text`, unless `text` is empty.
    pub fn replace_text(&mut self, text: &str) {
        if !text.is_empty() {
            text.clone_into(&mut self.text);
        }
    }
}

impl Growing<pb::ChatMessageEntity> {
    pub fn name_parent(&mut self, parent: &str) {
        if !parent.is_empty() && *self.message.parent_message_id != *parent {
            self.message.parent_message_id = Text::new(parent);
        }
    }
}

/// Parses a stored entity. A malformed one becomes empty, so that it fails once and not with each event.
pub(super) fn read<M: Message>(payload: &str, failure: &mut Result<(), Undecodable>) -> M {
    decode(payload).unwrap_or_else(|error| {
        *failure = Err(error);
        M::default()
    })
}

pub(super) fn first<'a>(preferred: &'a str, otherwise: &'a str) -> &'a str {
    if preferred.is_empty() {
        otherwise
    } else {
        preferred
    }
}

/// Replaces `old` by `new` unless `new` is empty.
pub(super) fn overwrite(old: &mut Text, new: &Text) {
    if !new.is_empty() {
        old.clone_from(new);
    }
}

/// Copies the members of `new` that are not empty.
pub(super) fn merge(old: &mut Option<pb::CorrelationInfo>, new: Option<&pb::CorrelationInfo>) {
    let Some(new) = new else { return };
    let old = old.get_or_insert_default();
    overwrite(&mut old.session_id, &new.session_id);
    overwrite(&mut old.run_id, &new.run_id);
    overwrite(&mut old.turn_id, &new.turn_id);
    overwrite(&mut old.provider_call_id, &new.provider_call_id);
    overwrite(&mut old.segment_id, &new.segment_id);
    overwrite(&mut old.tool_call_id, &new.tool_call_id);
}
