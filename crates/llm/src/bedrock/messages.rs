//! Converts the conversation to messages of the Converse API. Texts are borrowed.

use std::borrow::Cow;
use std::sync::Arc;

use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{Engine, alphabet};
use pinion_message::{AssistantMessage, Block, Content, Message, ToolResultMessage};
use serde::Serialize;
use serde_json::Value;

use super::Names;

/// Stands for a message without text: the API rejects empty ones.
const EMPTY: &str = "<empty>";
/// Stands in an error result for an image that follows later.
const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

#[derive(Serialize)]
pub(super) struct WireMessage<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
pub(super) struct Image<'a> {
    format: &'static str,
    source: ImageSource<'a>,
}

#[derive(Serialize)]
struct ImageSource<'a> {
    bytes: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    tool_use_id: Cow<'a, str>,
    name: &'a str,
    input: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult<'a> {
    tool_use_id: Cow<'a, str>,
    content: Vec<Part<'a>>,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText(ReasoningText<'a>),
    RedactedContent(Cow<'a, str>),
}

#[derive(Serialize)]
pub(super) struct ReasoningText<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

/// The end of a part of the prompt that is cached.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CachePoint {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CachePoint {
    pub(super) fn new(long: bool) -> Self {
        Self {
            r#type: "default",
            ttl: long.then_some("1h"),
        }
    }
}

/// The messages. The error is a sentence for the user.
pub(super) fn messages<'a>(
    history: &'a [Arc<Message>],
    names: &Names,
) -> Result<Vec<WireMessage<'a>>, String> {
    let mut messages: Vec<WireMessage<'a>> = Vec::with_capacity(history.len());
    let mut results = Results::default();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            results.add(result, names)?;
            continue;
        }
        messages.extend(results.take());
        match &**message {
            Message::User(user) => messages.push(WireMessage {
                role: "user",
                content: user_parts(&user.content)?,
            }),
            Message::Assistant(answer) => {
                let content = answer_parts(answer, names);
                if !content.is_empty() {
                    messages.push(WireMessage {
                        role: "assistant",
                        content,
                    });
                }
            }
            _ => {}
        }
    }
    messages.extend(results.take());
    Ok(messages)
}

fn text(text: &str) -> Option<Part<'_>> {
    (!text.trim().is_empty()).then_some(Part::Text(Cow::Borrowed(text)))
}

fn image<'a>(data: &'a str, mime_type: &str) -> Result<Part<'a>, String> {
    let format = match mime_type {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => return Err(format!("Unknown image type: {other}")),
    };
    Ok(Part::Image(Image {
        format,
        source: ImageSource { bytes: data },
    }))
}

fn parts<'a>(blocks: &'a [Block]) -> Result<Vec<Part<'a>>, String> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text(block) => parts.extend(text(&block.text)),
            Block::Image { data, mime_type } => parts.push(image(data, mime_type)?),
            _ => {}
        }
    }
    Ok(parts)
}

fn or_empty(mut parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    if parts.is_empty() {
        parts.push(Part::Text(Cow::Borrowed(EMPTY)));
    }
    parts
}

fn user_parts(content: &Content) -> Result<Vec<Part<'_>>, String> {
    Ok(or_empty(match content {
        Content::Text(content) => text(content).into_iter().collect(),
        Content::Blocks(blocks) => parts(blocks)?,
    }))
}

fn answer_parts<'a>(answer: &'a AssistantMessage, names: &Names) -> Vec<Part<'a>> {
    let blocks = answer.content.iter();
    blocks
        .filter_map(|block| match block {
            Block::Text(block) => text(&block.text),
            Block::Thinking(block) => {
                let signature = block.thinking_signature.as_deref().unwrap_or_default();
                if block.redacted == Some(true) {
                    let redacted = Reasoning::RedactedContent(sound_base64(signature));
                    return (!signature.is_empty()).then_some(Part::ReasoningContent(redacted));
                }
                if names.is_claude() && signature.is_empty() {
                    return text(&block.thinking);
                }
                if block.thinking.trim().is_empty() {
                    return None;
                }
                Some(Part::ReasoningContent(Reasoning::ReasoningText(
                    ReasoningText {
                        text: &block.thinking,
                        signature: Some(signature).filter(|_| names.is_claude()),
                    },
                )))
            }
            Block::ToolCall(call) => Some(Part::ToolUse(ToolUse {
                tool_use_id: tool_id(&call.id),
                name: &call.name,
                input: without_empty_keys(&call.arguments),
            })),
            Block::Image { .. } => None,
        })
        .collect()
}

/// Bytes in strict base64, which the API requires; other programs store it more loosely.
fn sound_base64(text: &str) -> Cow<'_, str> {
    const LOOSE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    match LOOSE.decode(text) {
        Ok(bytes) => Cow::Owned(STANDARD.encode(bytes)),
        Err(_) => Cow::Borrowed(text),
    }
}

/// An id in the alphabet and the length that the API accepts.
fn tool_id(id: &str) -> Cow<'_, str> {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.len() <= 64 && id.chars().all(is_sound) {
        return Cow::Borrowed(id);
    }
    let units = id.encode_utf16().take(64);
    let sound = units.map(|unit| match u8::try_from(unit).map(char::from) {
        Ok(c) if is_sound(c) => c,
        _ => '_',
    });
    Cow::Owned(sound.collect())
}

/// The API rejects members without a name.
fn without_empty_keys(value: &Value) -> Cow<'_, Value> {
    fn has(value: &Value) -> bool {
        match value {
            Value::Object(members) => members
                .iter()
                .any(|(name, value)| name.is_empty() || has(value)),
            Value::Array(items) => items.iter().any(has),
            _ => false,
        }
    }
    fn clean(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.shift_remove("");
                members.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            _ => {}
        }
    }
    if !has(value) {
        return Cow::Borrowed(value);
    }
    let mut cleaned = value.clone();
    clean(&mut cleaned);
    Cow::Owned(cleaned)
}

/// A run of tool results, which is one message.
#[derive(Default)]
struct Results<'a> {
    parts: Vec<Part<'a>>,
    /// Images of error results, with their captions.
    images: Vec<Part<'a>>,
}

impl<'a> Results<'a> {
    fn add(&mut self, result: &'a ToolResultMessage, names: &Names) -> Result<(), String> {
        let mut content = parts(&result.content)?;
        // Claude rejects images in error results.
        if result.is_error && names.is_claude() {
            let is_image = |part: &Part<'_>| matches!(part, Part::Image(_));
            if content.iter().any(is_image) {
                let (images, mut kept): (Vec<_>, Vec<_>) = content.into_iter().partition(is_image);
                kept.push(Part::Text(Cow::Borrowed(IMAGE_FOLLOWS)));
                let (id, name) = (&result.tool_call_id, &result.tool_name);
                let caption = format!("Images from the error result of tool call {id} ({name}):");
                self.images.push(Part::Text(Cow::Owned(caption)));
                self.images.extend(images);
                content = kept;
            }
        }
        self.parts.push(Part::ToolResult(ToolResult {
            tool_use_id: tool_id(&result.tool_call_id),
            content: or_empty(content),
            status: if result.is_error { "error" } else { "success" },
        }));
        Ok(())
    }

    fn take(&mut self) -> Option<WireMessage<'a>> {
        let mut content = std::mem::take(&mut self.parts);
        content.append(&mut self.images);
        (!content.is_empty()).then_some(WireMessage {
            role: "user",
            content,
        })
    }
}
