//! The members that switch thinking on and off, which every Completions server names differently.

use serde_json::{Map, Value, json};

use crate::compat::{Completions, ThinkingFormat};
use crate::request::Request;
use crate::thinking::{Mapped, budget, clamped, effort, mapped};
use pinion_message::ThinkingLevel;

/// The members to add to the body; none for models that do not think.
pub(super) fn thinking_params(request: &Request, compat: &Completions<'_>) -> Map<String, Value> {
    let model = &*request.model;
    let mut params = Map::new();
    if !model.reasoning {
        return params;
    }
    let level = clamped(request);
    let word = level.map(|level| effort(model, level));
    let off = mapped(model, ThinkingLevel::Off);
    let mut set = |name: &str, value: Value| params.insert(name.to_owned(), value);
    match (compat.thinking, word) {
        (ThinkingFormat::OpenAi, Some(word)) if compat.reasoning_effort => {
            set("reasoning_effort", json!(word));
        }
        (ThinkingFormat::OpenAi, None) => {
            if let (Mapped::Word(word), true) = (off, compat.reasoning_effort) {
                set("reasoning_effort", json!(word));
            }
        }
        (ThinkingFormat::OpenRouter, Some(word)) => {
            set("reasoning", json!({ "effort": word }));
        }
        (ThinkingFormat::OpenRouter, None) => match off {
            Mapped::Unsupported => {}
            Mapped::Word(word) => {
                set("reasoning", json!({ "effort": word }));
            }
            Mapped::Default => {
                set("reasoning", json!({ "effort": "none" }));
            }
        },
        (ThinkingFormat::DeepSeek, Some(word)) => {
            set("thinking", json!({ "type": "enabled" }));
            set("reasoning_effort", json!(word));
        }
        (ThinkingFormat::DeepSeek, None) => {
            set("thinking", json!({ "type": "disabled" }));
        }
        (ThinkingFormat::EnableThinking, word) => {
            set("enable_thinking", json!(word.is_some()));
        }
        (ThinkingFormat::QwenChatTemplate, word) => {
            let kwargs = json!({ "enable_thinking": word.is_some(), "preserve_thinking": true });
            set("chat_template_kwargs", kwargs);
        }
        (ThinkingFormat::Together, word) => {
            set("reasoning", json!({ "enabled": word.is_some() }));
            if let (Some(word), true) = (word, compat.reasoning_effort) {
                set("reasoning_effort", json!(word));
            }
        }
        (ThinkingFormat::StringThinking, Some(word)) => {
            set("thinking", json!(word));
        }
        (ThinkingFormat::StringThinking, None) => {
            if let Mapped::Word(word) = off {
                set("thinking", json!(word));
            }
        }
        (ThinkingFormat::ChatTemplate, word) => {
            set("chat_template_kwargs", filled_template(compat, word));
        }
        (ThinkingFormat::Baseten, word) => {
            set("chat_template_args", filled_template(compat, word));
        }
        (ThinkingFormat::OpenAi | ThinkingFormat::Unknown, _) => {}
    }
    if let (Some(field), Some(level)) = (compat.thinking_budget_field, level) {
        params.insert(field.to_owned(), json!(budget(level, &request.options)));
    }
    params
}

/// The model's own template members, with each `{"$var": …}` replaced by its value.
fn filled_template(compat: &Completions<'_>, word: Option<&str>) -> Value {
    let fill = |value: &Value| match value.get("$var").and_then(Value::as_str) {
        Some("thinking.enabled") => json!(word.is_some()),
        Some("thinking.effort" | "thinking.level") => json!(word.unwrap_or("none")),
        _ => value.clone(),
    };
    let members = compat.chat_template.into_iter().flatten();
    Value::Object(
        members
            .map(|(name, value)| (name.clone(), fill(value)))
            .collect(),
    )
}
