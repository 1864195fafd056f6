//! Converts the conversation to messages of Chat Completions, arranged as each server requires.
//! Texts are borrowed.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Content, Message, Model};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::compat;
use crate::http_request::{
    CacheControl, DataUrl, IMAGE_ONLY_TEXT, TOOL_IMAGES_HEADING, joined_text,
};
use crate::request::Request;

/// An assistant message for servers that require one between tool results and the user.
const TOOLS_READ: &str = "I have read the tool results.";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    Developer {
        content: MessageContent<'a>,
    },
    System {
        content: MessageContent<'a>,
    },
    User {
        content: MessageContent<'a>,
    },
    Assistant(Assistant<'a>),
    Tool {
        content: Cow<'a, str>,
        tool_call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

#[derive(Serialize, Default)]
pub(super) struct Assistant<'a> {
    content: Option<MessageContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessageContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
pub(super) struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
pub(super) struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

pub(super) fn messages<'a>(
    request: &'a Request,
    history: &'a [Arc<Message>],
    compat: &compat::Completions<'_>,
) -> Vec<WireMessage<'a>> {
    let model = &*request.model;
    let mut messages = Vec::with_capacity(history.len() + 1);
    if let Some(prompt) = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty())
    {
        let content = MessageContent::Text(prompt.into());
        messages.push(if model.reasoning && compat.developer_role {
            WireMessage::Developer { content }
        } else {
            WireMessage::System { content }
        });
    }
    // Images of a run of tool results follow after the run.
    let mut images: Vec<Part<'a>> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            let text = joined_text(&result.content);
            let content = if text.is_empty() {
                IMAGE_ONLY_TEXT.into()
            } else {
                text
            };
            let name = compat.tool_result_name.then_some(result.tool_name.as_str());
            messages.push(WireMessage::Tool {
                content,
                tool_call_id: &result.tool_call_id,
                name,
            });
            if model.takes_images() {
                images.extend(result.content.iter().filter_map(image_part));
            }
            continue;
        }
        flush_images(&mut messages, &mut images, compat);
        match &**message {
            Message::User(user) => {
                if let Some(content) = user_content(&user.content) {
                    if matches!(messages.last(), Some(WireMessage::Tool { .. }))
                        && compat.assistant_after_tool_result
                    {
                        messages.push(filler());
                    }
                    messages.push(WireMessage::User { content });
                }
            }
            Message::Assistant(answer) => messages.extend(assistant(answer, model, compat)),
            _ => {}
        }
    }
    flush_images(&mut messages, &mut images, compat);
    messages
}

fn flush_images<'a>(
    messages: &mut Vec<WireMessage<'a>>,
    images: &mut Vec<Part<'a>>,
    compat: &compat::Completions<'_>,
) {
    if images.is_empty() {
        return;
    }
    if compat.assistant_after_tool_result {
        messages.push(filler());
    }
    let mut parts = vec![Part::Text {
        text: TOOL_IMAGES_HEADING.into(),
        cache_control: None,
    }];
    parts.append(images);
    messages.push(WireMessage::User {
        content: MessageContent::Parts(parts),
    });
}

fn filler<'a>() -> WireMessage<'a> {
    let content = Some(MessageContent::Text(TOOLS_READ.into()));
    WireMessage::Assistant(Assistant {
        content,
        ..Assistant::default()
    })
}

fn user_content(content: &Content) -> Option<MessageContent<'_>> {
    match content {
        Content::Text(text) => Some(MessageContent::Text(text.into())),
        Content::Blocks(blocks) => {
            let parts: Vec<Part<'_>> = blocks.iter().filter_map(user_part).collect();
            (!parts.is_empty()).then_some(MessageContent::Parts(parts))
        }
    }
}

fn user_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part::Text {
            text: (&text.text).into(),
            cache_control: None,
        }),
        other => image_part(other),
    }
}

fn image_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Image { data, mime_type } => Some(Part::ImageUrl {
            image_url: ImageUrl {
                url: DataUrl { mime_type, data },
            },
        }),
        _ => None,
    }
}

fn assistant<'a>(
    answer: &'a AssistantMessage,
    model: &Model,
    compat: &compat::Completions<'_>,
) -> Option<WireMessage<'a>> {
    let mut wire = Assistant::default();
    let texts: Vec<&str> = shown(answer.content.iter().filter_map(Block::as_text));
    let thoughts: Vec<&str> = shown(answer.content.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
        _ => None,
    }));
    if compat.thinking_as_text && !thoughts.is_empty() {
        let texts = texts.iter().map(|&text| Cow::Borrowed(text));
        let parts = std::iter::once(thoughts.join("\n\n").into()).chain(texts);
        let part = |text| Part::Text {
            text,
            cache_control: None,
        };
        wire.content = Some(MessageContent::Parts(parts.map(part).collect()));
    } else {
        wire.content = match texts[..] {
            [] => compat
                .assistant_after_tool_result
                .then(|| MessageContent::Text("".into())),
            [only] => Some(MessageContent::Text(only.into())),
            _ => Some(MessageContent::Text(texts.concat().into())),
        };
        echo_thinking(&mut wire, answer, &thoughts);
    }
    for call in answer.tool_calls() {
        wire.tool_calls.push(WireCall {
            id: &call.id,
            r#type: "function",
            function: CalledFunction {
                name: &call.name,
                arguments: call.arguments.to_string(),
            },
        });
        let details = call.thought_signature.as_deref();
        let details = details.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        wire.reasoning_details.extend(details);
    }
    let empty = match &wire.content {
        None => true,
        Some(MessageContent::Text(text)) => text.is_empty(),
        Some(MessageContent::Parts(parts)) => parts.is_empty(),
    };
    if empty && wire.tool_calls.is_empty() {
        return None;
    }
    let wordless = wire.reasoning_content.is_none();
    if compat.reasoning_content_required && model.reasoning && wordless {
        wire.reasoning_content = Some("".into());
    }
    Some(WireMessage::Assistant(wire))
}

/// Sends thinking back in the member it came in.
///
/// Only the three names servers use are accepted: the name comes from a session file, and must not
/// add other members to the request.
fn echo_thinking<'a>(wire: &mut Assistant<'a>, answer: &'a AssistantMessage, thoughts: &[&'a str]) {
    let name = answer.content.iter().find_map(|block| match block {
        Block::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
            thinking.thinking_signature.as_deref()
        }
        _ => None,
    });
    let member = match name {
        Some("reasoning_content") => &mut wire.reasoning_content,
        Some("reasoning") => &mut wire.reasoning,
        Some("reasoning_text") => &mut wire.reasoning_text,
        _ => return,
    };
    *member = Some(match thoughts {
        [only] => Cow::Borrowed(*only),
        _ => thoughts.join("\n").into(),
    });
}

fn shown<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    texts.filter(|text| !text.trim().is_empty()).collect()
}

/// Marks the system prompt and the last text of the conversation for caching.
pub(super) fn mark_for_cache(messages: &mut [WireMessage<'_>], cache: CacheControl) {
    for message in messages.iter_mut() {
        if let WireMessage::Developer { content } | WireMessage::System { content } = message {
            mark_text(content, cache);
        }
    }
    for message in messages.iter_mut().rev() {
        let content = match message {
            WireMessage::User { content } => content,
            WireMessage::Assistant(Assistant {
                content: Some(content),
                ..
            }) => content,
            _ => continue,
        };
        if mark_text(content, cache) {
            return;
        }
    }
}

/// Marks the last text, if there is one.
fn mark_text(content: &mut MessageContent<'_>, cache: CacheControl) -> bool {
    if let MessageContent::Text(text) = content {
        if text.is_empty() {
            return false;
        }
        let text = std::mem::take(text);
        *content = MessageContent::Parts(vec![Part::Text {
            text,
            cache_control: None,
        }]);
    }
    let MessageContent::Parts(parts) = content else {
        return false;
    };
    for part in parts.iter_mut().rev() {
        if let Part::Text { cache_control, .. } = part {
            *cache_control = Some(cache);
            return true;
        }
    }
    false
}
