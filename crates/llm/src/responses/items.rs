//! Converts the conversation to the flat list of items of the Responses API, in which reasoning is
//! sent back exactly as it came. Texts are borrowed.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{
    AssistantMessage, Block, Content, Message, Model, ToolCall, ToolResultMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http_request::{DataUrl, joined_text};
use crate::request::Request;
use crate::tool_ids::short_hash;

/// The API rejects longer message ids.
const MAX_MESSAGE_ID: usize = 64;

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Item<'a> {
    Message {
        role: &'static str,
        content: ItemContent<'a>,
    },
    Reasoning(&'a RawValue),
    /// Tools that travel among the items.
    AdditionalTools {
        r#type: &'static str,
        role: &'static str,
        tools: Vec<Value>,
    },
    Answer(Answer<'a>),
    Call(FunctionCall<'a>),
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: ItemContent<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        detail: &'static str,
        image_url: DataUrl<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    r#type: &'static str,
    role: &'static str,
    content: [OutputText<'a>; 1],
    status: &'static str,
    id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
pub(super) struct OutputText<'a> {
    r#type: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    call_id: &'a str,
    name: &'a str,
    arguments: String,
}

/// The stored part of a message item: its id and its phase.
#[derive(Deserialize)]
pub(super) struct TextSignature<'a> {
    v: u64,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default, borrow)]
    phase: Option<Cow<'a, str>>,
}

/// The role of the system prompt among the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptRole {
    Developer,
    System,
    /// It is not an item.
    Absent,
}

impl PromptRole {
    fn role(self) -> Option<&'static str> {
        match self {
            Self::Developer => Some("developer"),
            Self::System => Some("system"),
            Self::Absent => None,
        }
    }
}

pub(super) fn items<'a>(
    request: &'a Request,
    history: &'a [Arc<Message>],
    prompt: PromptRole,
) -> Vec<Item<'a>> {
    let model = &*request.model;
    let mut items = Vec::with_capacity(history.len() + 1);
    let text = request.system_prompt.as_deref();
    if let Some(text) = text.filter(|text| !text.is_empty())
        && let Some(role) = prompt.role()
    {
        items.push(Item::Message {
            role,
            content: ItemContent::Text(text.into()),
        });
    }
    for (number, message) in history.iter().enumerate() {
        match &**message {
            Message::User(user) => {
                let parts = match &user.content {
                    Content::Text(text) => vec![Part::InputText { text }],
                    Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
                };
                if !parts.is_empty() {
                    items.push(Item::Message {
                        role: "user",
                        content: ItemContent::Parts(parts),
                    });
                }
            }
            Message::Assistant(answer) => push_answer(&mut items, answer, model, number),
            Message::ToolResult(result) => items.push(output(result, model)),
            _ => {}
        }
    }
    items
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part::InputText { text: &text.text }),
        Block::Image { data, mime_type } => Some(Part::InputImage {
            detail: "auto",
            image_url: DataUrl { mime_type, data },
        }),
        _ => None,
    }
}

fn push_answer<'a>(
    items: &mut Vec<Item<'a>>,
    answer: &'a AssistantMessage,
    model: &Model,
    number: usize,
) {
    // The server checks that a call with an item id follows its reasoning. Reasoning of another
    // model is not sent.
    let other_model =
        answer.provider == model.provider && answer.api == model.api && answer.model != model.id;
    for block in &answer.content {
        items.extend(match block {
            Block::Thinking(thinking) => {
                let item = thinking.thinking_signature.as_deref();
                item.and_then(|item| serde_json::from_str(item).ok())
                    .map(Item::Reasoning)
            }
            Block::Text(text) => {
                let (id, phase) = message_id(text.text_signature.as_deref(), number);
                Some(Item::Answer(Answer {
                    r#type: "message",
                    role: "assistant",
                    content: [OutputText {
                        r#type: "output_text",
                        text: &text.text,
                        annotations: [],
                    }],
                    status: "completed",
                    id,
                    phase,
                }))
            }
            Block::ToolCall(call) => Some(Item::Call(function_call(call, other_model))),
            Block::Image { .. } => None,
        });
    }
}

fn message_id(signature: Option<&str>, number: usize) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let Some(signature) = signature.filter(|signature| !signature.is_empty()) else {
        return (format!("msg_{number}").into(), None);
    };
    let (id, phase) = match serde_json::from_str::<TextSignature<'_>>(signature) {
        Ok(TextSignature { v: 1, id, phase }) => (id, phase),
        // Old sessions contain the bare id.
        _ => (signature.into(), None),
    };
    let known = |phase: &Cow<'_, str>| matches!(&**phase, "commentary" | "final_answer");
    let id = if id.len() > MAX_MESSAGE_ID {
        format!("msg_{}", short_hash(&id)).into()
    } else {
        id
    };
    (id, phase.filter(known))
}

fn function_call(call: &ToolCall, other_model: bool) -> FunctionCall<'_> {
    let (call_id, item) = match call.id.split_once('|') {
        Some((call_id, item)) => (call_id, Some(item)),
        None => (call.id.as_str(), None),
    };
    FunctionCall {
        r#type: "function_call",
        id: item.filter(|item| !(other_model && item.starts_with("fc_"))),
        call_id,
        name: &call.name,
        arguments: call.arguments.to_string(),
    }
}

fn output<'a>(result: &'a ToolResultMessage, model: &Model) -> Item<'a> {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, Block::Image { .. }));
    let output = if has_image && model.takes_images() {
        let parts = result.content.iter().filter_map(part);
        let filled = |part: &Part<'_>| !matches!(part, Part::InputText { text: "" });
        ItemContent::Parts(parts.filter(filled).collect())
    } else {
        ItemContent::Text(joined_text(&result.content))
    };
    let call_id = result.tool_call_id.split('|').next().unwrap_or_default();
    Item::Output {
        r#type: "function_call_output",
        call_id,
        output,
    }
}
