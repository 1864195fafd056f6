//! How an answer ended that did not end well, and what to do about it.

use pinion_message::{AssistantMessage, StopReason};
use ratatui::text::Line;
use serde_json::Value;

use super::preview;
use crate::theme::Theme;

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    kind: EndingKind,
    /// Whether the same is asked again by itself, so that there is nothing to do.
    is_retried: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EndingKind {
    Aborted,
    Cut,
    Failed(String),
}

impl Ending {
    /// How this answer ended, if not well.
    pub fn of(answer: &AssistantMessage) -> Option<Self> {
        let kind = match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse => return None,
            StopReason::Aborted => EndingKind::Aborted,
            StopReason::Length => EndingKind::Cut,
            StopReason::Error => {
                let error = answer.error_message.as_deref().unwrap_or("").trim();
                EndingKind::Failed(readable(error))
            }
        };
        Some(Self {
            kind,
            is_retried: false,
        })
    }

    /// Says that the same is asked again by itself.
    pub fn retried(&mut self) {
        self.is_retried = true;
    }

    /// What happened and what to do, in words.
    pub fn words(&self) -> (String, Option<&'static str>) {
        match &self.kind {
            EndingKind::Aborted => ("Stopped.".into(), None),
            EndingKind::Cut => (
                "The answer was cut: it reached the model's output limit.".into(),
                Some("Say \"go on\" to get the rest."),
            ),
            EndingKind::Failed(error) if error.is_empty() => (
                "The request failed, and the provider did not say why.".into(),
                self.advice("").filter(|_| !self.is_retried),
            ),
            EndingKind::Failed(error) => (
                format!("The request failed: {error}"),
                self.advice(error).filter(|_| !self.is_retried),
            ),
        }
    }

    fn advice(&self, error: &str) -> Option<&'static str> {
        advice(error)
    }

    pub fn lines(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let style = match &self.kind {
            EndingKind::Aborted => theme.dim,
            EndingKind::Cut => theme.warning,
            EndingKind::Failed(_) if self.is_retried => theme.warning,
            EndingKind::Failed(_) => theme.error,
        };
        let (what, advice) = self.words();
        let mut lines = preview::wrapped(&what, width, style);
        if let Some(advice) = advice {
            lines.extend(preview::wrapped(advice, width, theme.dim));
        }
        lines
    }
}

/// The sentence in an error that providers wrap into JSON, after what stands before it.
pub(crate) fn readable(error: &str) -> String {
    let Some(start) = error.find('{') else {
        return error.to_owned();
    };
    let Ok(body) = serde_json::from_str::<Value>(&error[start..]) else {
        return error.to_owned();
    };
    let nested = body
        .pointer("/error/message")
        .or_else(|| body.get("message"));
    let message = nested.or_else(|| body.get("error")).and_then(Value::as_str);
    match message {
        Some(message) => format!("{}{message}", &error[..start]),
        None => error.to_owned(),
    }
}

/// What may help, by the words providers use; the first that fits counts.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &["no api key found"],
        // The message itself says how to set one.
        "Then send the message again, or choose another model with /model.",
    ),
    (
        &[
            "api key",
            "api_key",
            "401",
            "403",
            "unauthorized",
            "authentication",
            "permission",
        ],
        "Check the key of this provider, or choose another model with /model.",
    ),
    (
        &[
            "quota",
            "billing",
            "credit",
            "insufficient",
            "usage limit",
            "monthly limit",
        ],
        "Waiting does not help: look at your account with the provider, or choose another model with /model.",
    ),
    (
        &[
            "too long",
            "context length",
            "context window",
            "context_length",
            "too many tokens",
            "413",
        ],
        "The conversation is too long for this model: /compact shortens it, /model chooses another one.",
    ),
    (
        &[
            "overloaded",
            "529",
            "429",
            "rate limit",
            "too many requests",
            "503",
            "502",
            "500",
            "unavailable",
        ],
        "The provider is busy. Send the message again in a moment, or choose another model with /model.",
    ),
    (
        &["404", "not found", "not_found", "does not exist"],
        "The provider does not know this model: choose another one with /model.",
    ),
    (
        &[
            "connect",
            "network",
            "dns",
            "timed out",
            "timeout",
            "certificate",
            "tls",
            "socket",
        ],
        "Check the network and the address of the provider, then send the message again.",
    ),
];

fn advice(error: &str) -> Option<&'static str> {
    let error = error.to_lowercase();
    let fits = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let found = ADVICE.iter().find(|(words, _)| fits(words));
    Some(found.map_or(
        "Send the message again, or choose another model with /model.",
        |(_, advice)| advice,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_is_taken_out_of_json() {
        let overloaded =
            r#"529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(readable(overloaded), "529 Overloaded");
        assert_eq!(readable(r#"{"message":"no"}"#), "no");
        assert_eq!(readable(r#"{"error":"bad"}"#), "bad");
        assert_eq!(readable("broken {json"), "broken {json");
        assert_eq!(readable(r#"odd {"a":1}"#), r#"odd {"a":1}"#);
    }

    #[test]
    fn every_kind_of_failure_has_its_advice() {
        let has = |error: &str, word: &str| {
            let advice = advice(error).unwrap();
            assert!(advice.contains(word), "{error}: {advice}");
        };
        has("No API key found for anthropic.\n\nSet X", "Then send");
        has("401 invalid x-api-key", "Check the key");
        has("You exceeded your current quota", "account");
        has("prompt is too long: 210000 tokens", "/compact");
        has("529 Overloaded", "busy");
        has("404 model: nothing", "does not know");
        has("dns error", "network");
        has("something else", "Send the message again");
    }
}
