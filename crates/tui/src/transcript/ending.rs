//! The end of an answer that failed, was stopped or was cut, with advice.

use pinion_message::{AssistantMessage, StopReason};
use ratatui::text::Line;
use serde_json::Value;

use super::{Look, preview};
use crate::Abilities;

/// The abnormal end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerEnding {
    kind: EndingReason,
    /// The engine retries the request, so no advice is needed.
    is_retried: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EndingReason {
    Aborted,
    Cut,
    Failed(String),
}

impl AnswerEnding {
    /// Returns the abnormal end of this answer, if it has one.
    pub fn of(answer: &AssistantMessage) -> Option<Self> {
        let kind = match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse => return None,
            StopReason::Aborted => EndingReason::Aborted,
            StopReason::Length => EndingReason::Cut,
            StopReason::Error => {
                let error = answer.error_message.as_deref().unwrap_or("").trim();
                EndingReason::Failed(readable(error))
            }
        };
        Some(Self {
            kind,
            is_retried: false,
        })
    }

    /// Marks the request as retried by the engine.
    pub fn retried(&mut self) {
        self.is_retried = true;
    }

    /// Describes the end, with advice for this host.
    pub fn words(&self, host: Abilities) -> (String, Option<&'static str>) {
        match &self.kind {
            EndingReason::Aborted => ("Stopped.".into(), None),
            EndingReason::Cut => (
                "The answer was cut: it reached the model's output limit.".into(),
                Some("Send \"continue\" to get the rest."),
            ),
            EndingReason::Failed(error) if error.is_empty() => (
                "The request failed, and the provider gave no reason.".into(),
                self.advice("", host),
            ),
            EndingReason::Failed(error) => (
                format!("The request failed: {error}"),
                self.advice(error, host),
            ),
        }
    }

    fn advice(&self, error: &str, host: Abilities) -> Option<&'static str> {
        (!self.is_retried).then(|| advice(error, host))
    }

    pub fn lines(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let style = match &self.kind {
            EndingReason::Aborted => theme.dim,
            EndingReason::Cut => theme.warning,
            EndingReason::Failed(_) if self.is_retried => theme.warning,
            EndingReason::Failed(_) => theme.error,
        };
        let (what, advice) = self.words(look.host);
        let mut lines = preview::wrapped(&what, width, style);
        if let Some(advice) = advice {
            lines.extend(preview::wrapped(advice, width, theme.dim));
        }
        lines
    }
}

/// Extracts the message from an error that a provider wrapped in JSON, with the text before it.
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

/// Advice for errors that contain certain words.
struct Advice {
    signs: &'static [&'static str],
    /// Advice in a session, which has commands.
    session: &'static str,
    /// Advice in the chat of a Pinocchio command, whose settings are fixed at its start.
    turns: &'static str,
}

/// The first match applies.
const ADVICE: &[Advice] = &[
    Advice {
        signs: &["no api key found"],
        // The message itself explains how to set a key.
        session: "Then send the message again, or choose another model with /model.",
        turns: "Then send the message again, or start the command with another --profile.",
    },
    Advice {
        signs: &[
            "api key",
            "api_key",
            "401",
            "403",
            "unauthorized",
            "authentication",
            "permission",
        ],
        session: "Check the key of this provider, or choose another model with /model.",
        turns: "Check the key of this provider, or start the command with another --profile.",
    },
    Advice {
        signs: &[
            "quota",
            "billing",
            "credit",
            "insufficient",
            "usage limit",
            "monthly limit",
        ],
        session: "Waiting does not help: check your account with the provider, or choose another model with /model.",
        turns: "Waiting does not help: check your account with the provider, or start the command with another --profile.",
    },
    Advice {
        signs: &[
            "too long",
            "context length",
            "context window",
            "context_length",
            "too many tokens",
            "413",
        ],
        session: "The conversation is too long for this model: /compact shortens it, /model chooses another one.",
        turns: "The conversation is too long for this model: start the command with another --session-id, or with another --profile.",
    },
    Advice {
        signs: &[
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
        session: "The provider is busy. Send the message again in a moment, or choose another model with /model.",
        turns: "The provider is busy. Send the message again in a moment, or start the command with another --profile.",
    },
    Advice {
        signs: &["404", "not found", "not_found", "does not exist"],
        session: "The provider does not know this model: choose another one with /model.",
        turns: "The provider does not know this model: start the command with another --profile or --ai-engine.",
    },
    Advice {
        signs: &[
            "connect",
            "network",
            "dns",
            "timed out",
            "timeout",
            "certificate",
            "tls",
            "socket",
        ],
        session: "Check the network and the address of the provider, then send the message again.",
        turns: "Check the network and the address of the provider, then send the message again.",
    },
];

/// The advice if nothing matches.
const DEFAULT_ADVICE: Advice = Advice {
    signs: &[],
    session: "Send the message again, or choose another model with /model.",
    turns: "Send the message again, or start the command with another --profile.",
};

fn advice(error: &str, host: Abilities) -> &'static str {
    let error = error.to_lowercase();
    let fits = |advice: &&Advice| advice.signs.iter().any(|sign| error.contains(sign));
    let found = ADVICE.iter().find(fits).unwrap_or(&DEFAULT_ADVICE);
    match host {
        Abilities::Session => found.session,
        Abilities::Turns => found.turns,
    }
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
            let advice = advice(error, Abilities::Session);
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

    #[test]
    fn the_chat_of_a_command_is_not_sent_to_commands_it_does_not_have() {
        for Advice { turns, .. } in ADVICE.iter().chain([&DEFAULT_ADVICE]) {
            assert!(!turns.contains(['/']), "{turns}");
        }
        let unknown = advice("404 model: nothing", Abilities::Turns);
        assert!(unknown.contains("--ai-engine"), "{unknown}");
    }
}
