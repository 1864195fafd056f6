//! Parses stored lines into messages, fast and with tolerance for other writers.
//!
//! The types of `pinion-message` describe the messages that pinion writes. Here one flat record accepts those of any
//! version: unknown members and block types are ignored, missing ones get a default, numbers may be fractions. A flat
//! record also avoids the buffering that a tagged enum needs.

use std::borrow::Cow;
use std::fmt;

use pinion_message::{
    AssistantMessage, BashExecutionMessage, Block, BranchSummaryMessage, CompactionSummaryMessage,
    Content, Cost, CustomMessage, Message, Millis, StopReason, SystemMessage, TextBlock,
    ThinkingBlock, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

use crate::{clock, json};

/// A string that is borrowed from the line if it has no escapes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Parses a whole number; accepts a fraction, `null` and an ISO time too.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    struct WholeVisitor;
    impl Visitor<'_> for WholeVisitor {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<i64, E> {
            Ok(number)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<i64, E> {
            Ok(i64::try_from(number).unwrap_or(i64::MAX))
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<i64, E> {
            Ok(number as i64)
        }

        fn visit_unit<E: de::Error>(self) -> Result<i64, E> {
            Ok(0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<i64, E> {
            Ok(clock::millis(text).unwrap_or(0))
        }
    }
    deserializer.deserialize_any(WholeVisitor)
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer).map(|number| number.max(0) as u64)
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0))
}

/// Parses a number of tokens or milliseconds that may be absent; anything else than a number counts as absent.
fn known_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_f64().map(|number| number.max(0.0) as u64))
}

#[derive(Deserialize)]
struct MessageLine {
    message: FlatMessage,
}

#[derive(Deserialize)]
struct TimeLine<'a> {
    #[serde(borrow, default)]
    timestamp: Option<Text<'a>>,
}

/// The members of all kinds of messages.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FlatMessage {
    role: String,
    content: FlatContent,
    #[serde(deserialize_with = "whole")]
    timestamp: Millis,
    attachments: Option<Value>,
    api: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    usage: Option<FlatUsage>,
    stop_reason: Option<String>,
    response_id: Option<String>,
    response_model: Option<String>,
    raw_stop_reason: Option<String>,
    error_message: Option<String>,
    #[serde(deserialize_with = "known_count")]
    duration_ms: Option<u64>,
    thinking_level: Option<String>,
    sections: Option<Map<String, Value>>,
    tools_added: Option<Value>,
    tools_removed: Option<Value>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    details: Option<Value>,
    is_error: Option<bool>,
    nested_calls: Option<Value>,
    command: Option<String>,
    output: Option<String>,
    exit_code: Option<f64>,
    cancelled: Option<bool>,
    truncated: Option<bool>,
    full_output_path: Option<String>,
    exclude_from_context: Option<bool>,
    custom_type: Option<String>,
    display: Option<bool>,
    summary: Option<String>,
    #[serde(deserialize_with = "tokens")]
    tokens_before: u64,
    from_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FlatUsage {
    #[serde(deserialize_with = "tokens")]
    input: u64,
    #[serde(deserialize_with = "tokens")]
    output: u64,
    #[serde(deserialize_with = "tokens")]
    cache_read: u64,
    #[serde(deserialize_with = "tokens")]
    cache_write: u64,
    #[serde(deserialize_with = "known_count")]
    reasoning: Option<u64>,
    #[serde(deserialize_with = "tokens")]
    total_tokens: u64,
    cost: Option<FlatCost>,
    #[serde(deserialize_with = "known_count")]
    cache_write_1h: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FlatCost {
    #[serde(deserialize_with = "dollars")]
    input: f64,
    #[serde(deserialize_with = "dollars")]
    output: f64,
    #[serde(deserialize_with = "dollars")]
    cache_read: f64,
    #[serde(deserialize_with = "dollars")]
    cache_write: f64,
    #[serde(deserialize_with = "dollars")]
    total: f64,
    total_from_provider: Option<bool>,
}

/// The members of all kinds of blocks.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FlatBlock {
    r#type: String,
    text: Option<String>,
    text_signature: Option<String>,
    thinking: Option<String>,
    thinking_signature: Option<String>,
    redacted: Option<bool>,
    data: Option<String>,
    mime_type: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    thought_signature: Option<String>,
}

pub(crate) enum FlatContent {
    Text(String),
    Blocks(Vec<Block>),
}

impl Default for FlatContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl<'de> Deserialize<'de> for FlatContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = FlatContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FlatContent, E> {
                Ok(FlatContent::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<FlatContent, E> {
                Ok(FlatContent::Text(text))
            }

            fn visit_unit<E: de::Error>(self) -> Result<FlatContent, E> {
                Ok(FlatContent::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<FlatContent, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element::<FlatBlock>()? {
                    blocks.extend(block.into_block());
                }
                Ok(FlatContent::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Parses the message of a `message` line.
pub(crate) fn message(line: &[u8]) -> Option<Message> {
    json::from_slice::<MessageLine>(line)?
        .message
        .into_message()
}

/// Parses the time at which a line was appended.
pub(crate) fn timestamp(line: &[u8]) -> Option<Millis> {
    let line: TimeLine<'_> = serde_json::from_slice(line).ok()?;
    clock::millis(&line.timestamp?.0)
}

/// Parses the message of a `custom_message` line.
pub(crate) fn custom_message(line: &[u8]) -> Option<Message> {
    let mut flat: FlatMessage = json::from_slice(line)?;
    flat.role = "custom".to_owned();
    flat.into_message()
}

/// Parses the message of a `branch_summary` line; `None` if the summary is empty.
pub(crate) fn branch_summary(line: &[u8]) -> Option<Message> {
    let mut flat: FlatMessage = json::from_slice(line)?;
    flat.role = "branchSummary".to_owned();
    flat.summary
        .as_ref()
        .filter(|summary| !summary.is_empty())?;
    flat.into_message()
}

impl FlatContent {
    pub(crate) fn into_content(self) -> Content {
        match self {
            Self::Text(text) => Content::Text(text),
            Self::Blocks(blocks) => Content::Blocks(blocks),
        }
    }

    fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::text(text)],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl FlatBlock {
    fn into_block(self) -> Option<Block> {
        Some(match self.r#type.as_str() {
            "text" => Block::Text(TextBlock {
                text: self.text?,
                text_signature: self.text_signature,
            }),
            "thinking" => Block::Thinking(ThinkingBlock {
                thinking: self.thinking.unwrap_or_default(),
                thinking_signature: self.thinking_signature,
                redacted: self.redacted,
            }),
            "image" => Block::Image {
                data: self.data?,
                mime_type: self.mime_type?,
            },
            "toolCall" => Block::ToolCall(ToolCall {
                id: self.id?,
                name: self.name?,
                arguments: self
                    .arguments
                    .unwrap_or_else(|| Value::Object(Default::default())),
                thought_signature: self.thought_signature,
                // Reported when it happened; clients of other dialects do not have this member.
                arguments_error: None,
            }),
            _ => return None,
        })
    }
}

impl From<FlatUsage> for Usage {
    fn from(flat: FlatUsage) -> Self {
        let cost = flat.cost.unwrap_or_default();
        Self {
            input: flat.input,
            output: flat.output,
            cache_read: flat.cache_read,
            cache_write: flat.cache_write,
            reasoning: flat.reasoning,
            total_tokens: flat.total_tokens,
            cache_write_1h: flat.cache_write_1h,
            cost: Cost {
                input: cost.input,
                output: cost.output,
                cache_read: cost.cache_read,
                cache_write: cost.cache_write,
                total: cost.total,
                total_from_provider: cost.total_from_provider,
            },
        }
    }
}

/// Reads the elements of a list that can be read.
fn list<T: de::DeserializeOwned>(value: Option<Value>) -> Vec<T> {
    let Some(Value::Array(items)) = value else {
        return Vec::new();
    };
    let read = items.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}

/// Parses a system message that is a member of another entry; anything else counts as absent.
pub(crate) fn optional_system_message<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemMessage>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let flat = serde_json::from_value::<FlatMessage>(value).ok();
    Ok(match flat.and_then(FlatMessage::into_message) {
        Some(Message::System(message)) => Some(message),
        _ => None,
    })
}

fn stop_reason(word: Option<&str>) -> StopReason {
    match word {
        Some("length") => StopReason::Length,
        Some("toolUse") => StopReason::ToolUse,
        Some("error") => StopReason::Error,
        Some("aborted") => StopReason::Aborted,
        _ => StopReason::Stop,
    }
}

impl FlatMessage {
    fn into_message(self) -> Option<Message> {
        let timestamp = self.timestamp;
        Some(match self.role.as_str() {
            "user" => Message::User(UserMessage {
                content: self.content.into_content(),
                timestamp,
                attachments: self.attachments,
            }),
            "assistant" => Message::Assistant(AssistantMessage {
                content: self.content.into_blocks(),
                api: self.api.unwrap_or_default(),
                provider: self.provider.unwrap_or_default(),
                model: self.model.unwrap_or_default(),
                usage: self.usage.unwrap_or_default().into(),
                stop_reason: stop_reason(self.stop_reason.as_deref()),
                timestamp,
                response_id: self.response_id,
                response_model: self.response_model,
                raw_stop_reason: self.raw_stop_reason,
                refused: false,
                error_message: self.error_message,
                duration_ms: self.duration_ms,
                thinking_level: self.thinking_level.and_then(|level| level.parse().ok()),
            }),
            "toolResult" => Message::ToolResult(ToolResultMessage {
                tool_call_id: self.tool_call_id?,
                tool_name: self.tool_name.unwrap_or_default(),
                content: self.content.into_blocks(),
                details: self.details,
                is_error: self.is_error.unwrap_or_default(),
                duration_ms: self.duration_ms,
                timestamp,
                nested_calls: self
                    .nested_calls
                    .and_then(|calls| serde_json::from_value(calls).ok()),
            }),
            "bashExecution" => Message::BashExecution(BashExecutionMessage {
                command: self.command?,
                output: self.output.unwrap_or_default(),
                exit_code: self.exit_code.map(|code| code as i32),
                cancelled: self.cancelled.unwrap_or_default(),
                truncated: self.truncated.unwrap_or_default(),
                full_output_path: self.full_output_path,
                timestamp,
                exclude_from_context: self.exclude_from_context,
            }),
            "custom" | "hookMessage" => Message::Custom(CustomMessage {
                custom_type: self.custom_type.unwrap_or_default(),
                content: self.content.into_content(),
                display: self.display.unwrap_or_default(),
                details: self.details,
                timestamp,
            }),
            "compactionSummary" => Message::CompactionSummary(CompactionSummaryMessage {
                summary: self.summary?,
                tokens_before: self.tokens_before,
                timestamp,
            }),
            "branchSummary" => Message::BranchSummary(BranchSummaryMessage {
                summary: self.summary?,
                from_id: self.from_id,
                timestamp,
            }),
            "system" => Message::System(SystemMessage {
                content: self.content.into_content(),
                sections: self.sections.unwrap_or_default(),
                timestamp,
                tools_added: list(self.tools_added),
                tools_removed: list(self.tools_removed),
            }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_read_back_equal() {
        let messages = [
            r#"{"role":"user","content":"hi","timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}],"timestamp":1}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"bash","arguments":{"b":1,"a":"ls"},"thoughtSignature":"x"}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0.5,"output":0.25,"cacheRead":0,"cacheWrite":0.125,"total":0.875}},"stopReason":"toolUse","timestamp":7,"responseId":"r","errorMessage":"x"}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"edit","content":[{"type":"text","text":"ok"}],"details":{"diff":"+1"},"isError":true,"timestamp":8}"#,
            r#"{"role":"bashExecution","command":"ls","output":"x\n","exitCode":2,"cancelled":false,"truncated":true,"fullOutputPath":"/tmp/x","timestamp":9,"excludeFromContext":true}"#,
            r#"{"role":"custom","customType":"lab","content":"x","display":true,"details":[1],"timestamp":9}"#,
            r#"{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"reasoning":1,"totalTokens":10,"cost":{"input":0.5,"output":0.25,"cacheRead":0,"cacheWrite":0.125,"total":0.875,"totalFromProvider":false},"cacheWrite1h":2},"stopReason":"stop","timestamp":7,"rawStopReason":"end_turn","durationMs":5,"thinkingLevel":"high"}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"ls","content":[],"isError":false,"durationMs":4,"timestamp":8}"#,
            r#"{"role":"system","content":"","sections":{"preamble":"p","old":null},"timestamp":9,"toolsAdded":[{"name":"ls","description":"d","parameters":{"type":"object"},"constrainedSampling":{"type":"json_schema"}}],"toolsRemoved":[{"name":"bash"}]}"#,
        ];
        for text in messages {
            let strict: Message = serde_json::from_str(text).unwrap();
            let line = format!(r#"{{"type":"message","id":"a","message":{text}}}"#);
            assert_eq!(message(line.as_bytes()), Some(strict), "{text}");
        }
    }

    #[test]
    fn unknown_members_of_other_writers_are_ignored() {
        let line = br#"{"message":{"role":"assistant","content":[{"type":"new","x":1},{"type":"text","text":"t"}],"usage":{"input":1.0,"cost":{"total":null}},"stopReason":"pending","timestamp":1.5}}"#;
        let Some(Message::Assistant(read)) = message(line) else {
            panic!("not read")
        };
        assert_eq!(read.content, vec![Block::text("t")]);
        assert_eq!(
            (read.stop_reason, read.timestamp, read.usage.input),
            (StopReason::Stop, 1, 1)
        );
        assert_eq!(
            message(br#"{"message":{"role":"later","content":"x"}}"#),
            None
        );
    }
}
