//! The thinking settings of each family of models, in `additionalModelRequestFields`, and the output cap.

use pinion_message::ThinkingLevel;
use serde_json::{Value, json};

use super::Names;
use super::address::is_government;
use crate::request::Request;
use crate::thinking::{Mapped, budget, cap_and_budget, mapped};

/// Claude models that choose their own thinking budget.
const ADAPTIVE: [&str; 8] = [
    "opus-4-6",
    "opus-4-7",
    "opus-4-8",
    "sonnet-4-6",
    "opus-5",
    "sonnet-5",
    "haiku-5",
    "fable-5",
];
/// Adaptive models without the newer controls.
const FIRST_ADAPTIVE: [&str; 2] = ["opus-4-6", "sonnet-4-6"];

/// The level to ask for; `None` is off.
fn level(request: &Request) -> Option<ThinkingLevel> {
    let asked = request.options.reasoning?;
    let asked = match mapped(&request.model, asked) {
        Mapped::Unsupported => request.model.clamp_thinking(asked),
        _ => asked,
    };
    Some(asked).filter(|&level| request.model.reasoning && level != ThinkingLevel::Off)
}

/// The output cap and the fields, which are absent unless the model thinks.
pub(super) fn thinking(
    request: &Request,
    names: &Names,
    base: Option<u64>,
) -> (Option<u64>, Option<Value>) {
    let Some(level) = level(request) else {
        return (base, None);
    };
    if names.is_claude() {
        return claude(request, names, level, base);
    }
    let word = |fallback: &'static str| match mapped(&request.model, level) {
        Mapped::Word(word) => word.to_owned(),
        _ => fallback.to_owned(),
    };
    let fields = if names.has("gpt-oss") {
        let effort = match level {
            ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            _ => "high",
        };
        Some(json!({"reasoning_effort": effort}))
    } else if names.has("gpt-") {
        let effort = match level {
            ThinkingLevel::Minimal => "low",
            level => level.as_str(),
        };
        Some(json!({"reasoning": {"effort": word(effort)}}))
    } else {
        None
    };
    (base, fields)
}

fn claude(
    request: &Request,
    names: &Names,
    level: ThinkingLevel,
    base: Option<u64>,
) -> (Option<u64>, Option<Value>) {
    let government = is_government(request);
    if names.has_any(&ADAPTIVE) {
        let mut thinking = json!({"type": "adaptive"});
        if !government {
            thinking["display"] = "summarized".into();
        }
        let newer = !names.has_any(&FIRST_ADAPTIVE);
        let effort = match (mapped(&request.model, level), level) {
            (Mapped::Word(word), _) => word,
            (_, ThinkingLevel::Minimal | ThinkingLevel::Low) => "low",
            (_, ThinkingLevel::Medium) => "medium",
            (_, ThinkingLevel::Xhigh) if newer => "xhigh",
            _ => "high",
        };
        let binds = newer && !government;
        if binds {
            thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        }
        let mut fields = json!({"thinking": thinking, "output_config": {"effort": effort}});
        if binds {
            fields["anthropic_beta"] = json!(["thinking-binding-controls-2026-08-01"]);
        }
        return (base, Some(fields));
    }
    let model_max = match request.model.max_tokens {
        0 => u64::MAX,
        known => known,
    };
    let (cap, tokens) = cap_and_budget(
        base.unwrap_or(model_max),
        model_max,
        budget(level, &request.options),
    );
    let mut thinking = json!({"type": "enabled", "budget_tokens": tokens});
    if !government {
        thinking["display"] = "summarized".into();
    }
    let fields =
        json!({"thinking": thinking, "anthropic_beta": ["interleaved-thinking-2025-05-14"]});
    (Some(cap), Some(fields))
}
