//! Converts the conversation to the `messages` of the Messages API: lists of parts, with tool results
//! collected in user messages. Texts are borrowed.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{Block, Content, Message, ToolResultMessage};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::compat;
use crate::http_request::{CacheControl, IMAGE_ONLY_TEXT, joined_text};

#[derive(Serialize)]
pub(super) struct WireMessage<'a> {
    role: &'static str,
    content: MessageContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessageContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: ResultContent<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
pub(super) struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

pub(super) fn messages<'a>(
    history: &'a [Arc<Message>],
    compat: &compat::Anthropic,
) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(history.len());
    // Consecutive tool results make one message.
    let mut results: Vec<Part<'a>> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            results.push(tool_result(result));
            continue;
        }
        flush_results(&mut messages, &mut results);
        let converted = match &**message {
            Message::User(user) => user_content(&user.content).map(|c| ("user", c)),
            Message::Assistant(answer) => {
                let parts = assistant_parts(&answer.content, compat);
                (!parts.is_empty()).then_some(("assistant", MessageContent::Parts(parts)))
            }
            _ => None,
        };
        messages.extend(converted.map(|(role, content)| WireMessage { role, content }));
    }
    flush_results(&mut messages, &mut results);
    messages
}

fn flush_results<'a>(messages: &mut Vec<WireMessage<'a>>, results: &mut Vec<Part<'a>>) {
    if !results.is_empty() {
        let content = MessageContent::Parts(std::mem::take(results));
        messages.push(WireMessage {
            role: "user",
            content,
        });
    }
}

fn user_content(content: &Content) -> Option<MessageContent<'_>> {
    match content {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(MessageContent::Text(text)),
        Content::Blocks(blocks) => {
            let parts: Vec<Part<'_>> = blocks.iter().filter_map(shown_part).collect();
            (!parts.is_empty()).then_some(MessageContent::Parts(parts))
        }
    }
}

/// Text and images. The API rejects blank text.
fn shown_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => Some(Part::Text {
            text: &text.text,
            cache_control: None,
        }),
        Block::Image { data, mime_type } => Some(Part::Image {
            source: ImageSource {
                r#type: "base64",
                media_type: mime_type,
                data,
            },
            cache_control: None,
        }),
        _ => None,
    }
}

fn assistant_parts<'a>(blocks: &'a [Block], compat: &compat::Anthropic) -> Vec<Part<'a>> {
    let part = |block: &'a Block| match block {
        Block::Text(_) | Block::Image { .. } => shown_part(block),
        Block::Thinking(thinking) => {
            let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
            if thinking.redacted == Some(true) {
                return Some(Part::RedactedThinking { data: signature });
            }
            if thinking.thinking.trim().is_empty() {
                return None;
            }
            if signature.is_empty() && !compat.empty_signature {
                return Some(Part::Text {
                    text: &thinking.thinking,
                    cache_control: None,
                });
            }
            Some(Part::Thinking {
                thinking: &thinking.thinking,
                signature,
            })
        }
        Block::ToolCall(call) => Some(Part::ToolUse {
            id: &call.id,
            name: &call.name,
            // The API rejects anything but an object, and would reject it again in every later
            // request.
            input: if call.arguments.is_object() {
                &call.arguments
            } else {
                empty_object()
            },
        }),
    };
    blocks.iter().filter_map(part).collect()
}

fn empty_object() -> &'static Value {
    static EMPTY: std::sync::LazyLock<Value> =
        std::sync::LazyLock::new(|| Value::Object(Map::new()));
    &EMPTY
}

fn tool_result(result: &ToolResultMessage) -> Part<'_> {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, Block::Image { .. }));
    let content = if has_image {
        let mut parts: Vec<Part<'_>> = result.content.iter().filter_map(shown_part).collect();
        if !parts.iter().any(|part| matches!(part, Part::Text { .. })) {
            parts.insert(
                0,
                Part::Text {
                    text: IMAGE_ONLY_TEXT,
                    cache_control: None,
                },
            );
        }
        ResultContent::Parts(parts)
    } else {
        ResultContent::Text(joined_text(&result.content))
    };
    Part::ToolResult {
        tool_use_id: &result.tool_call_id,
        content,
        is_error: result.is_error,
        cache_control: None,
    }
}

/// Marks the end of the conversation for caching, if the last message is the user's.
pub(super) fn cache_last_part(message: &mut WireMessage<'_>, cache: CacheControl) {
    if message.role != "user" {
        return;
    }
    if let MessageContent::Text(text) = message.content {
        message.content = MessageContent::Parts(vec![Part::Text {
            text,
            cache_control: None,
        }]);
    }
    let MessageContent::Parts(parts) = &mut message.content else {
        return;
    };
    if let Some(
        Part::Text { cache_control, .. }
        | Part::Image { cache_control, .. }
        | Part::ToolResult { cache_control, .. },
    ) = parts.last_mut()
    {
        *cache_control = Some(cache);
    }
}
