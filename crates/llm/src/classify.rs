//! Classifies failed answers: worth another try, or too long for the model. Providers report this
//! in prose, so it is read from the error text. The patterns are those of pi's newest releases, and
//! the table tests contain every known text.
//!
//! Differences between releases: a used-up quota is not retried (unless the server names a delay),
//! `400 (no body)` is an overflow only at Cerebras, and any text that begins with `413` is one.

use std::sync::LazyLock;

use pinion_message::{AssistantMessage, StopReason};
use regex::Regex;

/// Failures that may pass without a change. Matched against lower-case text; `.?` is one character
/// or none.
const RETRYABLE: &[&str] = &[
    "overloaded",
    "provider.?returned.?error",
    "rate.?limit",
    "too many requests",
    "429|500|502|503|504|520|524",
    "service.?unavailable",
    "server.?error",
    "internal.?error",
    "network.?error",
    "connection.?error",
    "connection.?refused",
    "connection.?lost",
    "websocket.?(closed|error)",
    "other side closed",
    "fetch failed",
    "upstream.?connect",
    "reset before headers",
    "socket hang up",
    "ended without",
    "stream ended before",
    "http2 request did not get a response",
    "time.?out|timed out",
    "terminated",
    "retry delay",
    "resource.?exhausted",
    "bad gateway",
    "getaddrinfo|enotfound|eai_again|dns error",
];

/// Limits that waiting a few seconds does not lift.
const QUOTA_EXHAUSTED: &[&str] = &[
    "insufficient.?quota",
    "quota.?exceeded",
    "exceeded your current quota",
    "billing",
    "out of budget",
    "monthly.?limit",
    "usage.?limit",
    "insufficient.?(funds|balance|credit)",
];

/// Error texts of providers for a prompt that does not fit.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "input token count.*exceeds the maximum",
    "maximum prompt length is [0-9]+",
    "reduce the length of the messages",
    "maximum context length is [0-9]+ tokens",
    "exceeds (the )?(model's )?maximum context length of [0-9]+ tokens",
    r"exceeds (the )?(model's )?maximum context length \([0-9]+\)",
    "exceeds the limit of [0-9]+",
    "exceeds the available context size",
    "greater than the context length",
    r"longer than the model's context length",
    "context window exceed(s limit|ed)",
    "exceeded model token limit",
    "too large for model with [0-9]+ maximum context length",
    "maximum allowed input length of [0-9]+ tokens",
    "but the configured context size is [0-9]+",
    "range of input length should be",
    "model_context_window_exceeded",
    "exceeded (max )?context length",
    "context[_ ]length[_ ]exceeded",
    "too many tokens",
    "token limit exceeded",
    "^413",
];

/// Texts that mention tokens but mean a rate.
const NOT_OVERFLOW: &[&str] = &[
    "^(throttling error|service unavailable):",
    "rate limit",
    "too many requests",
];

/// Cerebras answers an overflow with a status and nothing else.
const NO_BODY: &[&str] = &[r"^4(00|13) *(status code)? *\(no body\)"];

/// Reports whether running the turn again may succeed.
///
/// Only answers that ended in an error qualify, and never a context overflow.
pub fn is_retryable(message: &AssistantMessage) -> bool {
    static RETRY: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(RETRYABLE));
    static SPENT: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(QUOTA_EXHAUSTED));
    let Some(text) = error_text(message) else {
        return false;
    };
    if overflow_text(message, &text) {
        return false;
    }
    // Google words a per-minute limit like a used-up quota, but adds a delay.
    if matches(&SPENT, &text) && !text.contains("retrydelay") {
        return false;
    }
    matches(&RETRY, &text)
}

/// Reports whether the provider refused to answer because of the content, which no retry changes.
pub(crate) fn is_refusal(message: &AssistantMessage) -> bool {
    /// The words of providers for such an end.
    const REFUSALS: [&str; 13] = [
        "refusal",
        "sensitive",
        "content_filter",
        "safety",
        "recitation",
        "language",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "image_prohibited_content",
        "image_recitation",
        "model_armor",
    ];
    if message.stop_reason != StopReason::Error {
        return false;
    }
    let raw = message.raw_stop_reason.as_deref().unwrap_or_default();
    let text = message.error_message.as_deref().unwrap_or_default();
    REFUSALS.iter().any(|word| raw.eq_ignore_ascii_case(word))
        || text.starts_with("The provider blocked the prompt: ")
        || text == "Response incomplete: content_filter"
}

/// Reports whether the conversation no longer fits the model.
///
/// Besides error texts it detects two silent forms: a normal end whose prompt is larger than the
/// window, and a length stop without output whose prompt fills it. `context_window` zero means
/// unknown.
pub fn is_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    if let Some(text) = error_text(message) {
        return overflow_text(message, &text);
    }
    if context_window == 0 {
        return false;
    }
    let prompt = message.usage.input.saturating_add(message.usage.cache_read);
    match message.stop_reason {
        StopReason::Stop => prompt > context_window,
        StopReason::Length => {
            message.usage.output == 0 && prompt as f64 >= 0.99 * context_window as f64
        }
        _ => false,
    }
}

fn overflow_text(message: &AssistantMessage, text: &str) -> bool {
    static FITS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(NOT_OVERFLOW));
    static OVER: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(OVERFLOW));
    static EMPTY: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(NO_BODY));
    if matches(&FITS, text) {
        return false;
    }
    matches(&OVER, text) || (message.provider == "cerebras" && matches(&EMPTY, text))
}

fn error_text(message: &AssistantMessage) -> Option<String> {
    if message.stop_reason != StopReason::Error {
        return None;
    }
    message
        .error_message
        .as_ref()
        .map(|text| text.to_ascii_lowercase())
}

/// `None` only if a pattern above does not compile, which a test rules out.
fn any_of(patterns: &[&str]) -> Option<Regex> {
    Regex::new(&format!("(?s:{})", patterns.join("|"))).ok()
}

fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for patterns in [RETRYABLE, QUOTA_EXHAUSTED, OVERFLOW, NOT_OVERFLOW, NO_BODY] {
            for pattern in patterns {
                assert!(Regex::new(pattern).is_ok(), "{pattern}");
            }
            assert!(any_of(patterns).is_some());
        }
    }
}
