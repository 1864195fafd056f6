//! A request in the words of the Messages API. Texts are borrowed from the conversation; only the
//! finished JSON is a copy. Subscription tokens are sent as bearer tokens, without pretending to
//! be any other program.

use std::borrow::Cow;
use std::sync::Arc;

use pinion_message::{Block, Content, Message, ThinkingLevel, ToolResultMessage, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::compat;
use crate::outgoing::{
    CacheControl, Headers, HttpRequest, SEE_IMAGE, api_key, cache_session, joined_text, url,
};
use crate::request::Request;
use crate::thinking::{Mapped, budget, cap_and_budget, mapped, max_tokens};
use crate::transform::transform;

/// The API insists on a cap; used for models that state none.
const FALLBACK_MAX_TOKENS: u64 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Part<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: TurnContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TurnContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
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
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager_input_streaming: Option<bool>,
    input_schema: InputSchema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The API takes these three members of a schema and no others.
#[derive(Serialize)]
struct InputSchema<'a> {
    r#type: &'static str,
    properties: Cow<'a, Value>,
    required: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Disabled,
    Enabled {
        budget_tokens: u64,
        display: &'static str,
    },
    Adaptive {
        display: &'static str,
    },
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

/// The request as it goes out.
pub(crate) fn build(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let compat = compat::Anthropic::of(model);
    let cache = CacheControl::new(request.options.cache_retention, compat.long_cache);
    let history = transform(&request.messages, model);
    let mut messages = turns(&history, &compat);
    if let (Some(cache), Some(last)) = (cache, messages.last_mut()) {
        cache_last_part(last, cache);
    }
    let (max_tokens, thinking, output_config) = thinking(request, &compat);
    let thinks = matches!(
        thinking,
        Some(Thinking::Enabled { .. } | Thinking::Adaptive { .. })
    );
    let system = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty());
    let body = Body {
        model: &model.id,
        messages,
        max_tokens,
        stream: true,
        system: system.map(|text| {
            [Part::Text {
                text,
                cache_control: cache,
            }]
        }),
        temperature: request
            .options
            .temperature
            .filter(|_| !thinks && compat.temperature),
        tools: tools(&request.tools, &compat, cache),
        thinking,
        output_config,
        metadata: request
            .options
            .user_id
            .as_deref()
            .map(|user_id| Metadata { user_id }),
    };
    headers(request, &compat).into_request(url(model, "v1/messages")?, &body, request)
}

fn headers(request: &Request, compat: &compat::Anthropic) -> Headers {
    let mut headers = Headers::json("application/json");
    let key = api_key(request).unwrap_or_default();
    let subscription = key.contains("sk-ant-oat");
    match request.model.provider.as_str() {
        "cloudflare-ai-gateway" => headers.bearer("cf-aig-authorization", request),
        "github-copilot" => headers.bearer("authorization", request),
        _ if subscription => headers.bearer("authorization", request),
        _ if !key.is_empty() => headers.set("x-api-key", key),
        _ => {}
    }
    headers.set("anthropic-version", "2023-06-01");
    let mut betas = Vec::new();
    if subscription {
        betas.push("oauth-2025-04-20");
    }
    if !request.tools.is_empty() && !compat.eager_tool_input {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if !compat.adaptive_thinking {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","));
    }
    headers.model(request);
    if let Some(session) = cache_session(request).filter(|_| compat.session_headers) {
        headers.set("x-session-affinity", session);
    }
    headers
}

/// The output cap, and how to think.
fn thinking<'a>(
    request: &'a Request,
    compat: &compat::Anthropic,
) -> (u64, Option<Thinking>, Option<OutputConfig<'a>>) {
    const DISPLAY: &str = "summarized";
    let model = &*request.model;
    let base = max_tokens(request).unwrap_or(FALLBACK_MAX_TOKENS);
    if !model.reasoning {
        return (base, None, None);
    }
    let level = request.options.reasoning.unwrap_or_default();
    if level == ThinkingLevel::Off {
        // Some models cannot be told not to think.
        let disabled = mapped(model, level) != Mapped::Unsupported;
        return (base, disabled.then_some(Thinking::Disabled), None);
    }
    if compat.adaptive_thinking {
        let effort = match (mapped(model, level), level) {
            (Mapped::Word(word), _) => word,
            (_, ThinkingLevel::Minimal | ThinkingLevel::Low) => "low",
            (_, ThinkingLevel::Medium) => "medium",
            _ => "high",
        };
        let adaptive = Thinking::Adaptive { display: DISPLAY };
        return (base, Some(adaptive), Some(OutputConfig { effort }));
    }
    let model_max = if model.max_tokens == 0 {
        u64::MAX
    } else {
        model.max_tokens
    };
    let (cap, budget) = cap_and_budget(base, model_max, budget(level, &request.options));
    let thinking = match budget {
        0 => Thinking::Disabled,
        budget_tokens => Thinking::Enabled {
            budget_tokens,
            display: DISPLAY,
        },
    };
    (cap, Some(thinking), None)
}

fn tools<'a>(
    tools: &'a [ToolSpec],
    compat: &compat::Anthropic,
    cache: Option<CacheControl>,
) -> Vec<Tool<'a>> {
    let member = |tool: &'a ToolSpec, name: &str, default: fn() -> Value| {
        tool.parameters
            .get(name)
            .map_or_else(|| Cow::Owned(default()), Cow::Borrowed)
    };
    let mut tools: Vec<Tool<'a>> = tools
        .iter()
        .map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            eager_input_streaming: compat.eager_tool_input.then_some(true),
            input_schema: InputSchema {
                r#type: "object",
                properties: member(tool, "properties", || Value::Object(Map::new())),
                required: member(tool, "required", || Value::Array(Vec::new())),
            },
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut().filter(|_| compat.cache_on_tools) {
        last.cache_control = cache;
    }
    tools
}

fn turns<'a>(history: &'a [Arc<Message>], compat: &compat::Anthropic) -> Vec<Turn<'a>> {
    let mut turns = Vec::with_capacity(history.len());
    // Consecutive tool results make one turn.
    let mut results: Vec<Part<'a>> = Vec::new();
    for message in history {
        if let Message::ToolResult(result) = &**message {
            results.push(tool_result(result));
            continue;
        }
        flush_results(&mut turns, &mut results);
        let turn = match &**message {
            Message::User(user) => user_content(&user.content).map(|c| ("user", c)),
            Message::Assistant(answer) => {
                let parts = assistant_parts(&answer.content, compat);
                (!parts.is_empty()).then_some(("assistant", TurnContent::Parts(parts)))
            }
            _ => None,
        };
        turns.extend(turn.map(|(role, content)| Turn { role, content }));
    }
    flush_results(&mut turns, &mut results);
    turns
}

fn flush_results<'a>(turns: &mut Vec<Turn<'a>>, results: &mut Vec<Part<'a>>) {
    if !results.is_empty() {
        let content = TurnContent::Parts(std::mem::take(results));
        turns.push(Turn {
            role: "user",
            content,
        });
    }
}

fn user_content(content: &Content) -> Option<TurnContent<'_>> {
    match content {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(TurnContent::Text(text)),
        Content::Blocks(blocks) => {
            let parts: Vec<Part<'_>> = blocks.iter().filter_map(shown_part).collect();
            (!parts.is_empty()).then_some(TurnContent::Parts(parts))
        }
    }
}

/// Text and images; blank text is refused by the API.
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
            // Anything but an object is refused, and would be refused again on every later turn.
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
                    text: SEE_IMAGE,
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

/// Marks the end of the conversation, if the user spoke last.
fn cache_last_part(turn: &mut Turn<'_>, cache: CacheControl) {
    if turn.role != "user" {
        return;
    }
    if let TurnContent::Text(text) = turn.content {
        turn.content = TurnContent::Parts(vec![Part::Text {
            text,
            cache_control: None,
        }]);
    }
    let TurnContent::Parts(parts) = &mut turn.content else {
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
