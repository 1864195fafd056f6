//! Converts a script's request to the engine's form, with defaults for members that scripts tend to leave out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinion_llm::{CacheRetention, HttpRetry, Request, RequestOptions, Timeouts};
use pinion_message::{Message, Model, Secret, ThinkingLevel, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The roles of messages that are sent to a model.
const ROLES: [&str; 3] = ["user", "assistant", "toolResult"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestInput {
    model: Value,
    system_prompt: Option<String>,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    options: OptionsInput,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OptionsInput {
    api_key: Option<String>,
    headers: Option<BTreeMap<String, Value>>,
    reasoning: Option<String>,
    session_id: Option<String>,
    cache_retention: Option<String>,
    max_tokens: Option<f64>,
    temperature: Option<f64>,
    thinking_budgets: Option<BTreeMap<String, f64>>,
    tool_choice: Option<Value>,
    user_id: Option<String>,
    timeout_ms: Option<f64>,
    max_retries: Option<f64>,
    max_retry_delay_ms: Option<f64>,
}

/// The parts of the exchange that a script wants to see.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Interest {
    /// The body of the request, before it is sent.
    pub(super) payload: bool,
    /// The head of the response.
    pub(super) response: bool,
}

/// Returns the parts that the script's request names; `None` if there are none.
pub(super) fn interest(text: &str) -> Option<Interest> {
    #[derive(Deserialize)]
    struct Watching {
        #[serde(default)]
        watch: Interest,
    }
    let Watching { watch } = serde_json::from_str(text).ok()?;
    (watch.payload || watch.response).then_some(watch)
}

/// Parses the model in `text`.
pub(super) fn model(text: &str) -> Result<Model, String> {
    serde_json::from_str(text)
        .map_err(|error| error.to_string())
        .and_then(model_of)
}

/// Parses the request in `text`. The error is a message for the script's author.
pub(super) fn request(text: &str, cancel: CancellationToken) -> Result<Request, String> {
    let input: RequestInput = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let messages = input
        .messages
        .into_iter()
        .filter(is_for_models)
        .map(message);
    let tools = input
        .tools
        .into_iter()
        .map(tool)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Request {
        model: Arc::new(model_of(input.model)?),
        system_prompt: input
            .system_prompt
            .filter(|text| !text.is_empty())
            .map(Into::into),
        messages: messages.collect::<Result<_, _>>()?,
        tools: tools.into(),
        options: options(input.options),
        cancel,
    })
}

fn is_for_models(message: &Value) -> bool {
    ROLES.iter().any(|role| message["role"] == *role)
}

fn with_defaults(value: Value, defaults: Value) -> Value {
    match (value, defaults) {
        (Value::Object(mut members), Value::Object(defaults)) => {
            for (name, default) in defaults {
                if members.get(&name).is_none_or(Value::is_null) {
                    members.insert(name, default);
                }
            }
            Value::Object(members)
        }
        (value, _) => value,
    }
}

fn model_of(value: Value) -> Result<Model, String> {
    let id = value["id"].clone();
    let defaults = json!({
        "name": id, "provider": "", "api": "", "baseUrl": "", "reasoning": false, "input": ["text"], "cost": {},
        "contextWindow": 128_000, "maxTokens": 16_384,
    });
    let mut value = with_defaults(value, defaults);
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    serde_json::from_value(value).map_err(|error| format!("This is not a model: {error}"))
}

fn message(value: Value) -> Result<Arc<Message>, String> {
    let defaults = match value["role"].as_str() {
        Some("assistant") => json!({ "content": [], "stopReason": "stop" }),
        Some("toolResult") => json!({ "content": [], "toolName": "", "toolCallId": "" }),
        _ => json!({ "content": "" }),
    };
    let role = value["role"].as_str().unwrap_or_default().to_owned();
    serde_json::from_value(with_defaults(value, defaults))
        .map(Arc::new)
        .map_err(|error| format!("A {role} message cannot be read: {error}"))
}

fn tool(value: Value) -> Result<ToolSpec, String> {
    let defaults =
        json!({ "description": "", "parameters": { "type": "object", "properties": {} } });
    serde_json::from_value(with_defaults(value, defaults))
        .map_err(|error| format!("A tool cannot be read: {error}"))
}

fn options(options: OptionsInput) -> RequestOptions {
    let level = |text: &str| {
        text.parse::<ThinkingLevel>()
            .ok()
            .filter(|&level| level != ThinkingLevel::Off)
    };
    let whole = |number: f64| (number >= 0.0).then_some(number as u64);
    let budgets = options.thinking_budgets.unwrap_or_default();
    let retry = HttpRetry::default();
    RequestOptions {
        api_key: options.api_key.map(Secret::from),
        reasoning: options.reasoning.as_deref().and_then(level),
        session_id: options.session_id,
        cache_retention: match options.cache_retention.as_deref() {
            Some("none") => CacheRetention::None,
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        max_tokens: options.max_tokens.and_then(whole),
        temperature: options.temperature,
        headers: headers(options.headers.unwrap_or_default()),
        thinking_budgets: budgets
            .into_iter()
            .filter_map(|(name, tokens)| Some((level(&name)?, whole(tokens)?)))
            .collect(),
        tool_choice: options.tool_choice.filter(|choice| !choice.is_null()),
        user_id: options.user_id,
        retry: HttpRetry {
            max_retries: options
                .max_retries
                .map_or(retry.max_retries, |retries| retries as u32),
            max_delay: match options.max_retry_delay_ms {
                // Zero removes the limit.
                Some(0.0) => Duration::MAX,
                Some(most) if most > 0.0 => crate::ops::duration_from_millis(most),
                _ => retry.max_delay,
            },
        },
        timeouts: match options.timeout_ms {
            Some(most) if most > 0.0 => {
                let most = crate::ops::duration_from_millis(most);
                Timeouts {
                    first_byte: most,
                    ..Timeouts::default()
                }
            }
            _ => Timeouts::default(),
        },
        ..RequestOptions::default()
    }
}

fn headers(given: BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    given
        .into_iter()
        .filter_map(|(name, value)| Some((name, text(value)?)))
        .collect()
}
