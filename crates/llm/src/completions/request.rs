//! Builds requests of Chat Completions. Texts are borrowed from the conversation; only the finished
//! JSON is a copy.

use std::sync::Arc;

use pinion_message::{Message, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::messages::{WireMessage, mark_for_cache, messages};
use super::params::thinking_params;
use crate::compat::{self, SessionHeaders};
use crate::http_request::{CacheControl, Headers, HttpRequest, cache_session, url};
use crate::request::{CacheRetention, Request};
use crate::sampling;
use crate::thinking::max_tokens;
use crate::transform::transform;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a Value>,
    /// Members that depend on the server.
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

pub(crate) fn build(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let options = &request.options;
    let compat = compat::Completions::of(model);
    let history = transform(&request.messages, model);
    let mut messages = messages(request, &history, &compat);
    let mut tools = tools(&request.tools, &history, &compat);
    if compat.anthropic_cache
        && let Some(cache) = CacheControl::new(options.cache_retention, compat.long_cache)
    {
        mark_for_cache(&mut messages, cache);
        if let Some(last) = tools.as_deref_mut().and_then(|tools| tools.last_mut()) {
            last.cache_control = Some(cache);
        }
    }
    let long = options.cache_retention == CacheRetention::Long && compat.long_cache;
    let keyed = long || model.base_url.contains("api.openai.com");
    let body = Body {
        model: &model.id,
        messages,
        stream: true,
        prompt_cache_key: cache_session(request).filter(|_| keyed),
        prompt_cache_retention: long.then_some("24h"),
        temperature: options.temperature,
        tools,
        tool_choice: options.tool_choice.as_ref(),
        others: other_members(request, &compat),
    };
    headers(request, &compat).into_request(url(request, "chat/completions")?, &body, request)
}

fn headers(request: &Request, compat: &compat::Completions<'_>) -> Headers {
    let mut headers = Headers::json("application/json");
    match request.model.provider.as_str() {
        "cloudflare-ai-gateway" => headers.bearer("cf-aig-authorization", request),
        _ => headers.bearer("authorization", request),
    }
    headers.model(request);
    if let Some(session) = cache_session(request) {
        let names: &[&str] = match compat.session_headers {
            SessionHeaders::None => &[],
            SessionHeaders::OpenAi => &["session_id", "x-client-request-id", "x-session-affinity"],
            SessionHeaders::Nameless => &["x-client-request-id", "x-session-affinity"],
            SessionHeaders::OpenRouter => &["x-session-id"],
        };
        for name in names {
            headers.set(name, session);
        }
    }
    headers
}

fn other_members(request: &Request, compat: &compat::Completions<'_>) -> Map<String, Value> {
    let model = &*request.model;
    let mut others = Map::new();
    if compat.usage_in_streaming {
        others.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    if compat.store {
        others.insert("store".to_owned(), json!(false));
    }
    if let Some(tokens) = max_tokens(request) {
        others.insert(compat.max_tokens_field.to_owned(), json!(tokens));
    }
    if compat.tool_stream && !request.tools.is_empty() {
        others.insert("tool_stream".to_owned(), json!(true));
    }
    others.extend(thinking_params(request, compat));
    others.extend(sampling::members(request));
    if let Some(routing) = compat.open_router_routing
        && model.base_url.contains("openrouter.ai")
    {
        others.insert("provider".to_owned(), Value::Object(routing.clone()));
    }
    if let Some(routing) = compat.vercel_routing
        && model.base_url.contains("ai-gateway.vercel.sh")
    {
        let member = |name: &str| Some((name.to_owned(), routing.get(name)?.clone()));
        let gateway: Map<String, Value> =
            ["only", "order"].into_iter().filter_map(member).collect();
        others.insert("providerOptions".to_owned(), json!({ "gateway": gateway }));
    }
    others
}

/// The tools. The list is empty, not absent, if the history has calls, because some servers require
/// it then.
fn tools<'a>(
    specs: &'a [ToolSpec],
    history: &[Arc<Message>],
    compat: &compat::Completions<'_>,
) -> Option<Vec<Tool<'a>>> {
    let calls = |message: &Arc<Message>| match &**message {
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        Message::ToolResult(_) => true,
        _ => false,
    };
    if specs.is_empty() && !history.iter().any(calls) {
        return None;
    }
    let tool = |spec: &'a ToolSpec| Tool {
        r#type: "function",
        function: Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
            strict: compat.strict_mode.then_some(false),
        },
        cache_control: None,
    };
    Some(specs.iter().map(tool).collect())
}
