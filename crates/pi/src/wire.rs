//! Messages as the classic protocol prints them.

use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Message, StopReason, Usage};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// A message on the wire: as stored, without what classic clients have never seen.
pub(crate) struct WireMessage<'a>(pub &'a Message);

/// A list of messages on the wire.
pub(crate) struct WireMessages<'a>(pub &'a [Arc<Message>]);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer<'a> {
    role: &'static str,
    content: &'a [Block],
    api: &'a str,
    provider: &'a str,
    model: &'a str,
    usage: &'a Usage,
    stop_reason: StopReason,
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Message::Assistant(answer) => wire_answer(answer).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for message in self.0 {
            list.serialize_element(&WireMessage(message))?;
        }
        list.end()
    }
}

fn wire_answer(answer: &AssistantMessage) -> WireAnswer<'_> {
    WireAnswer {
        role: "assistant",
        content: &answer.content,
        api: &answer.api,
        provider: &answer.provider,
        model: &answer.model,
        usage: &answer.usage,
        stop_reason: answer.stop_reason,
        timestamp: answer.timestamp,
        error_message: answer.error_message.as_deref(),
    }
}
