//! Reads test vectors into requests.

#![allow(dead_code, reason = "each test file uses a part of this")]

pub mod expectation;
pub mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinion_llm::{CacheRetention, Request, RequestOptions, without_lone_surrogates};
use pinion_message::{Message, Model, Secret, ThinkingLevel, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    // Some vectors hold half surrogate pairs on purpose.
    let text = without_lone_surrogates(&text);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in `folder` whose names end in `suffix`, in order.
pub fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(vectors().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
}

pub fn rows(table: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(vectors().join("tables").join(table)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn tools() -> Value {
    read(&vectors().join("requests/anthropic-messages/01-basic-off.json"))["context"]["tools"]
        .clone()
}

/// The conversation every response vector was recorded with.
pub fn hello() -> Value {
    json!({
        "systemPrompt": "You are a test agent.",
        "messages": [{"role": "user", "content": "Hello", "timestamp": 1}],
        "tools": tools(),
    })
}

/// A request as a vector describes it, with `BASE` replaced by `base`.
pub fn request(vector: &Value, context: &Value, base: &str) -> Request {
    let mut model = vector["model"].clone();
    let url = model["baseUrl"].as_str().unwrap().replace("BASE", base);
    model["baseUrl"] = json!(url);
    let model: Model = serde_json::from_value(model).unwrap();
    let messages: Vec<Message> = serde_json::from_value(context["messages"].clone()).unwrap();
    let tools: Vec<ToolSpec> =
        serde_json::from_value(context.get("tools").cloned().unwrap_or(json!([]))).unwrap();
    Request {
        model: Arc::new(model),
        system_prompt: context["systemPrompt"].as_str().map(Arc::from),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools.into(),
        options: options(&vector["options"]),
        cancel: CancellationToken::new(),
    }
}

/// The context of a request vector; some hold half surrogate pairs on purpose.
pub fn context(vector: &Value) -> Value {
    match vector.get("contextJsonText") {
        Some(text) => {
            serde_json::from_str(&without_lone_surrogates(text.as_str().unwrap())).unwrap()
        }
        None => vector["context"].clone(),
    }
}

pub fn options(from: &Value) -> RequestOptions {
    let mut options = RequestOptions {
        api_key: Some(Secret::from("test-key".to_owned())),
        ..RequestOptions::default()
    };
    let text = |name: &str| from.get(name).and_then(Value::as_str);
    options.reasoning = text("reasoning").map(|level| level.parse::<ThinkingLevel>().unwrap());
    options.session_id = text("sessionId").map(str::to_owned);
    options.cache_retention = match text("cacheRetention") {
        Some("none") => CacheRetention::None,
        Some("long") => CacheRetention::Long,
        _ => CacheRetention::Short,
    };
    options.max_tokens = from.get("maxTokens").and_then(Value::as_u64);
    options.temperature = from.get("temperature").and_then(Value::as_f64);
    options.tool_choice = from.get("toolChoice").cloned();
    options.user_id = from
        .pointer("/metadata/user_id")
        .and_then(Value::as_str)
        .map(str::to_owned);
    for (name, value) in from
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        options
            .headers
            .insert(name.clone(), value.as_str().unwrap().to_owned());
    }
    if let Some(retries) = from.get("maxRetries").and_then(Value::as_u64) {
        options.retry.max_retries = retries as u32;
    }
    if let Some(timeout) = from.get("timeoutMs").and_then(Value::as_u64) {
        options.timeouts.first_byte = Duration::from_millis(timeout);
    }
    options
}

/// Images that results cannot contain come after the whole run of results, not between them.
pub fn images_after_results(contents: &Value) -> Value {
    let mut turns: Vec<Value> = Vec::new();
    let (mut results, mut images) = (Vec::new(), Vec::new());
    for turn in contents.as_array().unwrap().iter().chain([&json!(null)]) {
        let parts = turn["parts"].as_array().cloned().unwrap_or_default();
        match parts.first() {
            Some(first) if first.get("functionResponse").is_some() => results.extend(parts),
            Some(first) if first["text"] == "Tool result image:" => {
                images.extend(
                    if images.is_empty() {
                        &parts[..]
                    } else {
                        &parts[1..]
                    }
                    .to_vec(),
                );
            }
            _ => {
                for parts in [std::mem::take(&mut results), std::mem::take(&mut images)] {
                    if !parts.is_empty() {
                        turns.push(json!({"role": "user", "parts": parts}));
                    }
                }
                turns.extend((!turn.is_null()).then(|| turn.clone()));
            }
        }
    }
    Value::Array(turns)
}
