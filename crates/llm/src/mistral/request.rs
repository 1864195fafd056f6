//! Builds Mistral's requests. Texts are borrowed from the conversation.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Content, Message, ToolResultMessage};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::http_request::{
    DataUrl, Headers, HttpRequest, IMAGE_ONLY_TEXT, cache_session, joined_text, url,
};
use crate::request::Request;
use crate::sampling;
use crate::thinking::{Mapped, clamped, mapped, max_tokens};
use crate::transform::transform;

/// Models that take an effort; the others have reasoning only as a mode.
const EFFORT_MODELS: [&str; 3] = [
    "mistral-small-2603",
    "mistral-small-latest",
    "mistral-medium-3.5",
];

/// The text of a tool result without output, because Mistral rejects empty text.
const NO_OUTPUT: &str = "(no tool output)";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    stream: bool,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_mode: Option<&'static str>,
    #[serde(flatten)]
    sampling: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        name: &'a str,
        content: Vec<Part<'a>>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
    Thinking { thinking: [Thought<'a>; 1] },
}

#[derive(Serialize)]
struct Thought<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    strict: bool,
    parameters: &'a Value,
}

pub(crate) fn build(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let history = transform(&request.messages, model);
    let level = clamped(request).filter(|_| model.reasoning);
    let by_effort = EFFORT_MODELS.contains(&model.id.as_str());
    let effort = level
        .filter(|_| by_effort)
        .map(|level| match mapped(model, level) {
            Mapped::Word(word) => word,
            _ => "high",
        });
    let tools = request.tools.iter().map(|spec| Tool {
        r#type: "function",
        function: Function {
            name: &spec.name,
            description: &spec.description,
            strict: false,
            parameters: &spec.parameters,
        },
    });
    let body = Body {
        model: &model.id,
        max_tokens: max_tokens(request),
        stream: true,
        messages: messages(request, &history),
        temperature: request.options.temperature,
        tools: tools.collect(),
        tool_choice: request.options.tool_choice.as_ref(),
        reasoning_effort: effort,
        prompt_mode: (level.is_some() && !by_effort).then_some("reasoning"),
        sampling: sampling::members(request),
    };
    let mut headers = Headers::json("text/event-stream");
    headers.bearer("authorization", request);
    headers.model(request);
    if let Some(session) = cache_session(request) {
        headers.set("x-affinity", session);
    }
    headers.into_request(url(request, "v1/chat/completions")?, &body, request)
}

fn messages<'a>(request: &'a Request, history: &'a [Arc<Message>]) -> Vec<WireMessage<'a>> {
    let mut messages = Vec::with_capacity(history.len() + 1);
    if let Some(content) = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty())
    {
        messages.push(WireMessage::System { content });
    }
    for message in history {
        match &**message {
            Message::User(user) => match &user.content {
                Content::Text(text) => messages.push(WireMessage::User {
                    content: UserContent::Text(text),
                }),
                Content::Blocks(blocks) => {
                    let parts: Vec<Part<'a>> = blocks.iter().filter_map(shown).collect();
                    if !parts.is_empty() {
                        messages.push(WireMessage::User {
                            content: UserContent::Parts(parts),
                        });
                    }
                }
            },
            Message::Assistant(answer) => messages.extend(assistant(answer)),
            Message::ToolResult(result) => messages.push(tool_result(result)),
            _ => {}
        }
    }
    messages
}

fn shown(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part::Text {
            text: (&text.text).into(),
        }),
        Block::Image { data, mime_type } => Some(Part::ImageUrl {
            image_url: DataUrl { mime_type, data },
        }),
        _ => None,
    }
}

fn assistant(answer: &AssistantMessage) -> Option<WireMessage<'_>> {
    let mut content = Vec::new();
    let mut tool_calls = Vec::new();
    for block in &answer.content {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => {
                content.push(Part::Text {
                    text: (&text.text).into(),
                });
            }
            Block::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
                let thought = Thought {
                    r#type: "text",
                    text: &thinking.thinking,
                };
                content.push(Part::Thinking {
                    thinking: [thought],
                });
            }
            Block::ToolCall(call) => tool_calls.push(WireCall {
                id: &call.id,
                r#type: "function",
                function: CalledFunction {
                    name: &call.name,
                    arguments: call.arguments.to_string(),
                },
            }),
            _ => {}
        }
    }
    let empty = content.is_empty() && tool_calls.is_empty();
    (!empty).then_some(WireMessage::Assistant {
        content,
        tool_calls,
    })
}

fn tool_result(result: &ToolResultMessage) -> WireMessage<'_> {
    let images = result
        .content
        .iter()
        .filter(|block| matches!(block, Block::Image { .. }));
    let mut content: Vec<Part<'_>> = images.filter_map(shown).collect();
    let mut text = joined_text(&result.content);
    if text.trim().is_empty() {
        let placeholder = if content.is_empty() {
            NO_OUTPUT
        } else {
            IMAGE_ONLY_TEXT
        };
        text = placeholder.into();
    }
    if result.is_error {
        text = format!("[tool error] {text}").into();
    }
    content.insert(0, Part::Text { text });
    WireMessage::Tool {
        tool_call_id: &result.tool_call_id,
        name: &result.tool_name,
        content,
    }
}
