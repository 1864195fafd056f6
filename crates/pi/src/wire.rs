//! Messages as the dialects print them.

use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Content, Message, Usage, UserMessage};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::early::DOCUMENT;

/// A message on the wire: as stored, without what clients of the dialect have never seen.
pub(crate) struct WireMessage<'a> {
    message: &'a Message,
    dialect: Dialect,
    stage: Stage,
}

/// How far a message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Complete,
    Beginning,
}

/// A list of messages on the wire.
pub(crate) struct WireMessages<'a> {
    messages: &'a [Arc<Message>],
    dialect: Dialect,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer<'a> {
    role: &'static str,
    content: &'a [Block],
    api: &'a str,
    provider: &'a str,
    model: &'a str,
    usage: &'a Usage,
    stop_reason: &'static str,
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
}

impl<'a> WireMessage<'a> {
    /// A complete message.
    pub fn of(message: &'a Message, dialect: Dialect) -> Self {
        Self {
            message,
            dialect,
            stage: Stage::Complete,
        }
    }

    /// A message that begins.
    pub fn beginning(message: &'a Message, dialect: Dialect) -> Self {
        Self {
            stage: Stage::Beginning,
            ..Self::of(message, dialect)
        }
    }

    fn answer(&self, answer: &'a AssistantMessage) -> WireAnswer<'a> {
        let is_modern = self.dialect == Dialect::Modern;
        let is_growing = self.stage == Stage::Beginning && answer.error_message.is_none();
        WireAnswer {
            role: "assistant",
            content: &answer.content,
            api: &answer.api,
            provider: &answer.provider,
            model: &answer.model,
            usage: &answer.usage,
            stop_reason: match is_modern && is_growing {
                true => "pending",
                false => answer.stop_reason.as_str(),
            },
            timestamp: answer.timestamp,
            response_id: answer.response_id.as_deref().filter(|_| is_modern),
            response_model: answer.response_model.as_deref().filter(|_| is_modern),
            error_message: answer.error_message.as_deref(),
        }
    }
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.message {
            Message::Assistant(answer) => self.answer(answer).serialize(serializer),
            Message::User(user) if self.dialect == Dialect::Early => {
                EarlyUser::of(user).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

/// What was said, with its attachments where early pi has them.
#[derive(Serialize)]
struct EarlyUser<'a> {
    role: &'static str,
    content: EarlyContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<&'a Value>,
    timestamp: i64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EarlyContent<'a> {
    Text(&'a str),
    Blocks(Vec<EarlyBlock<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EarlyBlock<'a> {
    #[serde(flatten)]
    block: &'a Block,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_document: bool,
}

impl<'a> EarlyUser<'a> {
    fn of(user: &'a UserMessage) -> Self {
        let has_attachments = user.attachments.is_some();
        let block = |(at, block): (usize, &'a Block)| EarlyBlock {
            block,
            is_document: has_attachments
                && at > 0
                && block
                    .as_text()
                    .is_some_and(|text| text.starts_with(DOCUMENT)),
        };
        Self {
            role: "user",
            content: match &user.content {
                Content::Text(text) => EarlyContent::Text(text),
                Content::Blocks(blocks) => {
                    EarlyContent::Blocks(blocks.iter().enumerate().map(block).collect())
                }
            },
            attachments: user.attachments.as_ref(),
            timestamp: user.timestamp,
        }
    }
}

impl<'a> WireMessages<'a> {
    /// Complete messages.
    pub fn of(messages: &'a [Arc<Message>], dialect: Dialect) -> Self {
        Self { messages, dialect }
    }
}

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.messages.len()))?;
        for message in self.messages {
            list.serialize_element(&WireMessage::of(message, self.dialect))?;
        }
        list.end()
    }
}
