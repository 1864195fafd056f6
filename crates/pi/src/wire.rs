//! Prints messages in the form of each dialect.

use std::sync::Arc;

use pinion_message::shape::{AnswerBlock, ImageBlock};
use pinion_message::{
    AssistantMessage, BashExecutionMessage, Block, BranchSummaryMessage, CompactionSummaryMessage,
    Content, CustomMessage, Message, SystemMessage, ThinkingLevel, ToolResultMessage, Usage,
    UserMessage,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::early::DOCUMENT;

/// A message on the wire: the stored message without members that the dialect does not have.
pub(crate) struct WireMessage<'a> {
    message: &'a Message,
    dialect: Dialect,
    stage: Stage,
}

/// The progress of a message.
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

/// The answer of a model.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssistantMessage")]
pub(crate) struct WireAnswer<'a> {
    role: &'static str,
    #[schemars(with = "Vec<AnswerBlock>")]
    content: &'a [Block],
    /// The provider's API that produced it.
    api: &'a str,
    provider: &'a str,
    model: &'a str,
    usage: Usage,
    #[schemars(with = "WireStopReason")]
    stop_reason: &'static str,
    /// The time of the request, in milliseconds since 1970.
    #[schemars(range(min = 0))]
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    response_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    response_model: Option<&'a str>,
    /// The provider's own word for the reason why the answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    raw_stop_reason: Option<&'a str>,
    /// The error, with stop reasons `error` and `aborted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    /// Milliseconds from the request to the end of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    duration_ms: Option<u64>,
    /// The thinking level of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    thinking_level: Option<ThinkingLevel>,
}

/// The reason why an answer ended.
#[derive(JsonSchema)]
#[schemars(rename = "StopReason", rename_all = "camelCase")]
#[allow(dead_code, reason = "for the schema: the words of `WireAnswer`")]
enum WireStopReason {
    /// The model finished. In classic updates also: the answer is still streamed.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model calls tools.
    ToolUse,
    /// The request failed.
    Error,
    /// The user aborted.
    Aborted,
    /// The answer is still streamed.
    #[schemars(extend("x-since" = "modern"))]
    Pending,
}

/// A message; `role` is its kind.
#[derive(JsonSchema)]
#[schemars(rename = "Message", tag = "role", rename_all = "camelCase")]
#[allow(dead_code, reason = "for the schema: what `WireMessage` prints")]
enum Shape<'a> {
    #[schemars(rename = "user", extend("x-until" = "early"))]
    EarlyUser(EarlyUser<'a>),
    #[schemars(extend("x-since" = "classic"))]
    User(UserMessage),
    Assistant(WireAnswer<'a>),
    ToolResult(ToolResultMessage),
    BashExecution(BashExecutionMessage),
    Custom(CustomMessage),
    CompactionSummary(CompactionSummaryMessage),
    BranchSummary(BranchSummaryMessage),
    #[schemars(extend("x-since" = "modern"))]
    System(SystemMessage),
}

impl JsonSchema for WireMessage<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Shape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Shape<'static>>()
    }
}

impl JsonSchema for WireMessages<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Messages".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Vec<Shape<'static>>>()
    }
}

impl<'a> WireMessage<'a> {
    /// Wraps a complete message.
    pub fn of(message: &'a Message, dialect: Dialect) -> Self {
        Self {
            message,
            dialect,
            stage: Stage::Complete,
        }
    }

    /// Wraps a message that begins.
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
            usage: if is_modern {
                answer.usage
            } else {
                answer.usage.without_details()
            },
            stop_reason: if is_modern && is_growing {
                "pending"
            } else {
                answer.stop_reason.as_str()
            },
            timestamp: answer.timestamp,
            response_id: answer.response_id.as_deref().filter(|_| is_modern),
            response_model: answer.response_model.as_deref().filter(|_| is_modern),
            raw_stop_reason: answer.raw_stop_reason.as_deref().filter(|_| is_modern),
            error_message: answer.error_message.as_deref(),
            duration_ms: answer.duration_ms.filter(|_| is_modern),
            thinking_level: answer.thinking_level.filter(|_| is_modern),
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
            // A session of a later client was opened.
            Message::ToolResult(result)
                if result.duration_ms.is_some() && self.dialect != Dialect::Modern =>
            {
                let mut result = result.clone();
                result.duration_ms = None;
                Message::ToolResult(result).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

/// A user message in the early dialect, with its attachments.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EarlyUserMessage")]
struct EarlyUser<'a> {
    role: &'static str,
    content: EarlyContent<'a>,
    /// The attachments, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>")]
    attachments: Option<&'a Value>,
    /// The time of its creation, in milliseconds since 1970.
    #[schemars(range(min = 0))]
    timestamp: i64,
}

/// Plain text, or blocks in order.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum EarlyContent<'a> {
    Text(&'a str),
    Blocks(#[schemars(with = "Vec<EarlyShape>")] Vec<EarlyBlock<'a>>),
}

/// Text, a document as text, or an image.
#[derive(JsonSchema)]
#[schemars(rename = "EarlyBlock", tag = "type", rename_all = "camelCase")]
#[allow(dead_code, reason = "for the schema: what `EarlyBlock` prints")]
enum EarlyShape {
    Text(EarlyText),
    Image(ImageBlock),
}

/// A text block.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-optional" = true))]
#[allow(dead_code, reason = "for the schema: what `EarlyBlock` prints")]
struct EarlyText {
    text: String,
    text_signature: Option<String>,
    /// The text was extracted from an attached document.
    is_document: Option<bool>,
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
    /// Wraps complete messages.
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
