//! The Responses API behind ChatGPT subscriptions, over server-sent events: its request and its errors.

use pinion_logins::account_id;
use pinion_message::{ThinkingLevel, now_millis};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::items::{Item, PromptRole, items};
use crate::compat;
use crate::http_request::{Headers, HttpRequest, api_key, base_url, cache_session};
use crate::request::Request;
use crate::sampling;
use crate::thinking::{Mapped, clamped, effort, mapped};
use crate::transform::transform_dropping_thinking;

/// The name of this program at the server.
const ORIGINATOR: &str = "pinion";
const DEFAULT_INSTRUCTIONS: &str = "You are a helpful assistant.";
/// The longest name of a session, in characters.
const MAX_SESSION: usize = 64;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    store: bool,
    stream: bool,
    instructions: &'a str,
    input: Vec<Item<'a>>,
    text: Value,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    tool_choice: Value,
    parallel_tool_calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(flatten)]
    sampling: Map<String, Value>,
}

pub(crate) fn build_codex(request: &Request) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let token = api_key(request).unwrap_or_default();
    let account = account_id(token).ok_or(
        "Failed to extract accountId from token. The login of openai-codex is damaged: sign in again with pi, or use the \
         provider openai (pinion login openai).",
    )?;
    let history = transform_dropping_thinking(&request.messages, model);
    let mut input = items(request, &history, PromptRole::Absent);
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|spec| {
            json!({
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
                "strict": null,
            })
        })
        .collect();
    if compat::has_additional_tools(model) && !tools.is_empty() {
        let item = Item::AdditionalTools {
            r#type: "additional_tools",
            role: "developer",
            tools: std::mem::take(&mut tools),
        };
        input.insert(0, item);
    }
    let prompt = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty());
    let session = cache_session(request).map(|session| {
        let end = session
            .char_indices()
            .nth(MAX_SESSION)
            .map_or(session.len(), |(at, _)| at);
        &session[..end]
    });
    let body = Body {
        model: &model.id,
        store: false,
        stream: true,
        instructions: prompt.unwrap_or(DEFAULT_INSTRUCTIONS),
        input,
        text: json!({"verbosity": "low"}),
        include: ["reasoning.encrypted_content"],
        prompt_cache_key: session,
        tool_choice: request
            .options
            .tool_choice
            .clone()
            .unwrap_or_else(|| json!("auto")),
        parallel_tool_calls: true,
        temperature: request.options.temperature,
        tools,
        reasoning: reasoning(request),
        sampling: sampling::members(request),
    };
    let mut headers = Headers::json("text/event-stream");
    headers.bearer("authorization", request);
    headers.set("chatgpt-account-id", &account);
    headers.set("originator", ORIGINATOR);
    headers.set("openai-beta", "responses=experimental");
    if let Some(session) = session {
        headers.set("session-id", session);
        headers.set("x-client-request-id", session);
    }
    headers.model(request);
    headers.into_request(address(base_url(request)), &body, request)
}

/// Completes an address that may already end in a part of the path.
fn address(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    }
}

fn reasoning(request: &Request) -> Option<Value> {
    let model = &*request.model;
    if let Some(level) = clamped(request) {
        return Some(json!({"effort": effort(model, level), "summary": "auto"}));
    }
    match mapped(model, ThinkingLevel::Off) {
        _ if !model.reasoning => None,
        Mapped::Unsupported => None,
        Mapped::Word(word) => Some(json!({"effort": word})),
        Mapped::Default => Some(json!({"effort": "none"})),
    }
}

/// The text for an error status, and whether another attempt is pointless.
pub(crate) fn codex_failure(status: u16, body: &str) -> (String, bool) {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let error = &json["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let codes = [
        "usage_limit_reached",
        "usage_not_included",
        "rate_limit_exceeded",
    ];
    let is_limit = codes.contains(&text("code")) || codes.contains(&text("type"));
    if error.is_object() && (is_limit || status == 429) {
        let plan = match text("plan_type") {
            "" => String::new(),
            plan => format!(" ({} plan)", plan.to_lowercase()),
        };
        let wait = match error["resets_at"].as_f64() {
            None => String::new(),
            Some(seconds) => {
                let left = (seconds * 1000.0 - now_millis() as f64) / 60_000.0;
                format!(" Try again in ~{} min.", left.max(0.0).round())
            }
        };
        return (
            format!("You have hit your ChatGPT usage limit{plan}.{wait}"),
            true,
        );
    }
    let message = match text("message") {
        "" => body.trim(),
        message => message,
    };
    match message {
        "" => (format!("{status} status code (no body)"), false),
        _ => (message.to_owned(), false),
    }
}
