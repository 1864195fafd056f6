//! Builds requests of the Messages API. Texts are borrowed from the conversation; only the finished
//! JSON is a copy. Subscription tokens are sent as bearer tokens, without imitating another
//! program.

use std::borrow::Cow;

use pinion_message::{ThinkingLevel, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use super::messages::{Part, WireMessage, cache_last_part, messages};
use crate::compat;
use crate::http_request::{CacheControl, Headers, HttpRequest, api_key, cache_session, url};
use crate::identity::CloudIdentity;
use crate::request::Request;
use crate::sampling;
use crate::thinking::{Mapped, budget, cap_and_budget, mapped, max_tokens};
use crate::transform::transform;

/// The output cap of models that state none, because the API requires one.
const FALLBACK_MAX_TOKENS: u64 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
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
    #[serde(flatten)]
    sampling: Map<String, Value>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

pub(crate) fn build(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let compat = compat::Anthropic::of(model);
    let cache = CacheControl::new(request.options.cache_retention, compat.long_cache);
    let history = transform(&request.messages, model);
    let mut messages = messages(&history, &compat);
    if let (Some(cache), Some(last)) = (cache, messages.last_mut()) {
        cache_last_part(last, cache);
    }
    let (max_tokens, thinking, effort) = thinking(request, &compat);
    let format = sampling::output_format(request);
    let shaped = effort.is_some() || format.is_some();
    let thinks = matches!(
        thinking,
        Some(Thinking::Enabled { .. } | Thinking::Adaptive { .. })
    );
    let mut drawing = sampling::members(request);
    if thinks {
        // The API rejects it for a model that thinks.
        drawing.shift_remove("top_k");
    }
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
        output_config: shaped.then_some(OutputConfig { effort, format }),
        metadata: request
            .options
            .user_id
            .as_deref()
            .map(|user_id| Metadata { user_id }),
        sampling: drawing,
    };
    headers(request, &compat).into_request(url(request, "v1/messages")?, &body, request)
}

fn headers(request: &Request, compat: &compat::Anthropic) -> Headers {
    let mut headers = Headers::json("application/json");
    let key = api_key(request).unwrap_or_default();
    let workload = matches!(request.options.identity, Some(CloudIdentity::Workload));
    let subscription = key.contains("sk-ant-oat") || workload;
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

/// The output cap, the thinking setting and the effort.
fn thinking<'a>(
    request: &'a Request,
    compat: &compat::Anthropic,
) -> (u64, Option<Thinking>, Option<&'a str>) {
    const DISPLAY: &str = "summarized";
    let model = &*request.model;
    let base = max_tokens(request).unwrap_or(FALLBACK_MAX_TOKENS);
    if !model.reasoning {
        return (base, None, None);
    }
    let level = request.options.reasoning.unwrap_or_default();
    if level == ThinkingLevel::Off {
        // Some models cannot switch thinking off.
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
        return (base, Some(adaptive), Some(effort));
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
