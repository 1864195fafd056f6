//! Converts the conversation to Google's `contents`: lists of parts, with function responses from the
//! user, and thought signatures, which are sent only to the model that made them. Texts are
//! borrowed.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Content, Message, Model, ToolResultMessage};
use serde::Serialize;
use serde_json::Value;

use crate::http_request::{IMAGE_ONLY_TEXT, TOOL_IMAGES_HEADING, joined_text};
use crate::tool_ids::needs_call_ids;

#[derive(Serialize)]
pub(super) struct WireContent<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

impl<'a> WireContent<'a> {
    pub(super) fn text(role: &'static str, text: &'a str) -> Self {
        Self {
            role,
            parts: vec![Part {
                text: Some(text),
                ..Part::default()
            }],
        }
    }
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    name: &'a str,
    args: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct FunctionResponse<'a> {
    name: &'a str,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// Reports whether function responses may contain images: from Gemini 3 on, and for models that are
/// not Gemini.
fn nests_images(id: &str) -> bool {
    match id.to_ascii_lowercase().split_once("gemini-") {
        None => true,
        Some((_, version)) => {
            let major: String = version.chars().take_while(char::is_ascii_digit).collect();
            // `gemini-flash-latest` has no number and is new.
            major.parse::<u32>().map_or(true, |major| major >= 3)
        }
    }
}

pub(super) fn contents<'a>(history: &'a [Arc<Message>], model: &Model) -> Vec<WireContent<'a>> {
    let mut contents: Vec<WireContent<'a>> = Vec::with_capacity(history.len());
    // Consecutive results are one content; images that they cannot contain make the next one.
    let mut results: Vec<Part<'a>> = Vec::new();
    let mut images: Vec<Part<'a>> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            push_result(&mut results, &mut images, result, model);
            continue;
        }
        flush_results(&mut contents, &mut results, &mut images);
        let (role, parts): (_, Vec<Part<'a>>) = match &**message {
            Message::User(user) => ("user", user_parts(&user.content)),
            Message::Assistant(answer) => ("model", model_parts(answer, model)),
            _ => continue,
        };
        if !parts.is_empty() {
            contents.push(WireContent { role, parts });
        }
    }
    flush_results(&mut contents, &mut results, &mut images);
    contents
}

fn flush_results<'a>(
    contents: &mut Vec<WireContent<'a>>,
    results: &mut Vec<Part<'a>>,
    images: &mut Vec<Part<'a>>,
) {
    if !results.is_empty() {
        contents.push(WireContent {
            role: "user",
            parts: std::mem::take(results),
        });
    }
    if !images.is_empty() {
        let mut parts = vec![Part {
            text: Some(TOOL_IMAGES_HEADING),
            ..Part::default()
        }];
        parts.append(images);
        contents.push(WireContent {
            role: "user",
            parts,
        });
    }
}

fn user_parts(content: &Content) -> Vec<Part<'_>> {
    match content {
        Content::Text(text) => vec![Part {
            text: Some(text),
            ..Part::default()
        }],
        Content::Blocks(blocks) => blocks.iter().filter_map(user_part).collect(),
    }
}

fn user_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part {
            text: Some(&text.text),
            ..Part::default()
        }),
        other => image_part(other),
    }
}

fn image_part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Image { data, mime_type } => Some(Part {
            inline_data: Some(InlineData { mime_type, data }),
            ..Part::default()
        }),
        _ => None,
    }
}

fn model_parts<'a>(answer: &'a AssistantMessage, model: &Model) -> Vec<Part<'a>> {
    let own = answer.provider == model.provider && answer.model == model.id;
    let signature =
        |text: &'a Option<String>| text.as_deref().filter(|text| own && is_base64(text));
    let part = |block: &'a Block| match block {
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => Some(Part {
            text: Some(&text.text),
            thought_signature: signature(&text.text_signature),
            ..Part::default()
        }),
        Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
        Block::Thinking(thinking) => Some(Part {
            text: Some(&thinking.thinking),
            thought: own.then_some(true),
            thought_signature: signature(&thinking.thinking_signature),
            ..Part::default()
        }),
        Block::ToolCall(call) => Some(Part {
            function_call: Some(FunctionCall {
                name: &call.name,
                args: &call.arguments,
                id: needs_call_ids(&model.id).then_some(call.id.as_str()),
            }),
            thought_signature: signature(&call.thought_signature),
            ..Part::default()
        }),
        Block::Image { .. } => None,
    };
    answer.content.iter().filter_map(part).collect()
}

fn push_result<'a>(
    results: &mut Vec<Part<'a>>,
    images: &mut Vec<Part<'a>>,
    result: &'a ToolResultMessage,
    model: &Model,
) {
    let mut shown: Vec<Part<'a>> = Vec::new();
    if model.takes_images() {
        shown.extend(result.content.iter().filter_map(image_part));
    }
    let text = joined_text(&result.content);
    let text = if text.is_empty() && !shown.is_empty() {
        IMAGE_ONLY_TEXT.into()
    } else {
        text
    };
    let nested = nests_images(&model.id);
    results.push(Part {
        function_response: Some(FunctionResponse {
            name: &result.tool_name,
            response: if result.is_error {
                Outcome::Error(text)
            } else {
                Outcome::Output(text)
            },
            parts: if nested {
                std::mem::take(&mut shown)
            } else {
                Vec::new()
            },
            id: needs_call_ids(&model.id).then_some(result.tool_call_id.as_str()),
        }),
        ..Part::default()
    });
    images.append(&mut shown);
}

/// Google rejects signatures that are not base64; other APIs store other values in their place.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}
