//! Adapter for `opencode run --format json`, and for the relevant events of opencode's server.
//!
//! opencode reports a tool when it is done, and prints nothing at the end. A step that used no tool and ended normally is
//! the last one. After any other step opencode continues or exits, whatever reason the step has.

use serde::Deserialize;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, FinishReason, Micros, Step, Text, Tokens,
    ToolPhase, classify_status,
};

#[derive(Debug, Default)]
pub(crate) struct Opencode {
    /// The main session: the first one named. Others belong to subagents.
    session: Option<String>,
    /// The current step has used a tool.
    tool_used: bool,
    /// The reason why the last step ended; `None` while a step runs.
    last: Option<FinishReason>,
}

#[derive(Deserialize)]
struct Line<P> {
    #[serde(rename = "sessionID", default, deserialize_with = "lenient::text")]
    session: Option<String>,
    part: P,
}

#[derive(Deserialize)]
struct Start {}

#[derive(Deserialize)]
struct TextPart {
    text: String,
}

#[derive(Deserialize)]
struct ToolPart {
    tool: String,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct FinishPart {
    #[serde(deserialize_with = "lenient::text")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient::number")]
    cost: f64,
    #[serde(deserialize_with = "lenient::or_default")]
    tokens: FinishTokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FinishTokens {
    #[serde(deserialize_with = "lenient::count")]
    input: u64,
    #[serde(deserialize_with = "lenient::count")]
    output: u64,
    #[serde(deserialize_with = "lenient::count")]
    reasoning: u64,
    #[serde(deserialize_with = "lenient::or_default")]
    cache: Cache,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cache {
    #[serde(deserialize_with = "lenient::count")]
    read: u64,
    #[serde(deserialize_with = "lenient::count")]
    write: u64,
}

#[derive(Deserialize)]
struct ErrorLine {
    #[serde(default, deserialize_with = "lenient::or_default")]
    error: Option<NamedError>,
}

#[derive(Deserialize)]
struct SessionLine {
    properties: Properties,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "sessionID", default, deserialize_with = "lenient::text")]
    session: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    error: Option<NamedError>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct NamedError {
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    message: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    data: ErrorData,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ErrorData {
    #[serde(deserialize_with = "lenient::text")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient::or_default")]
    status_code: Option<u16>,
    #[serde(deserialize_with = "lenient::or_default")]
    is_retryable: Option<bool>,
}

impl Adapter for Opencode {
    fn needs_whole(&self, kind: &[u8]) -> bool {
        matches!(
            kind,
            b"step_start"
                | b"text"
                | b"tool_use"
                | b"step_finish"
                | b"error"
                | b"session.idle"
                | b"session.status"
                | b"session.error"
        )
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let read = match kind {
            b"step_start" => serde_json::from_slice::<Line<Start>>(line).map(|line| {
                self.is_main_session(line.session.as_deref());
                self.tool_used = false;
                self.last = None;
                let session = line.session;
                events.push(ChildEvent::Started { session });
            }),
            b"text" => serde_json::from_slice::<Line<TextPart>>(line)
                .map(|line| events.push(ChildEvent::Text(Text::Complete(line.part.text)))),
            b"tool_use" => serde_json::from_slice::<Line<ToolPart>>(line).map(|line| {
                self.tool_used = true;
                events.push(ChildEvent::Tool {
                    effect: Effect::of_tool(&line.part.tool),
                    name: line.part.tool,
                    phase: ToolPhase::Done,
                });
            }),
            b"step_finish" => serde_json::from_slice::<Line<FinishPart>>(line)
                .map(|line| self.finish(&line.part, events)),
            b"error" => serde_json::from_slice::<ErrorLine>(line)
                .map(|line| events.push(ChildEvent::Failed(failure(line.error)))),
            b"session.idle" | b"session.status" | b"session.error" => {
                serde_json::from_slice::<SessionLine>(line)
                    .map(|line| self.session(kind, line.properties, events))
            }
            b"reasoning" => {
                events.push(ChildEvent::Text(Text::Partial));
                Ok(())
            }
            _ => return Reading::Ignored,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Invalid,
        }
    }

    fn read_kind_only(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        match kind {
            // The next lines show whether opencode continues.
            b"step_finish" => self.last = Some(FinishReason::Unknown),
            b"text" => events.push(ChildEvent::Text(Text::Partial)),
            _ => {}
        }
    }

    fn clean_exit_means_done(&self) -> bool {
        self.last
            .is_some_and(|reason| reason != FinishReason::ToolUse)
    }
}

impl Opencode {
    /// Reports whether this is the main session, not one of a subagent. Lines without a session belong to the main one.
    fn is_main_session(&mut self, session: Option<&str>) -> bool {
        match (session, &self.session) {
            (None, _) => true,
            (Some(session), Some(main)) => session == main,
            (Some(session), None) => {
                self.session = Some(session.to_owned());
                true
            }
        }
    }

    fn finish(&mut self, part: &FinishPart, events: &mut Vec<ChildEvent>) {
        let reason = part
            .reason
            .as_deref()
            .map_or(FinishReason::Unknown, FinishReason::parse);
        self.last = Some(reason);
        events.push(ChildEvent::StepFinished(Step {
            reason,
            tokens: Tokens {
                input: part.tokens.input,
                output: part.tokens.output.saturating_add(part.tokens.reasoning),
                cache_read: part.tokens.cache.read,
                cache_write: part.tokens.cache.write,
            },
            cost: Some(Micros::from_dollars(part.cost)),
        }));
        if !self.tool_used && !matches!(reason, FinishReason::ToolUse | FinishReason::Unknown) {
            events.push(ChildEvent::Idle);
        }
    }

    /// Handles an event of the server about a session.
    fn session(&mut self, kind: &[u8], properties: Properties, events: &mut Vec<ChildEvent>) {
        if !self.is_main_session(properties.session.as_deref()) {
            return;
        }
        match (kind, properties.status) {
            (b"session.error", _) => events.push(ChildEvent::Failed(failure(properties.error))),
            (b"session.status", Some(status)) if status.kind == "idle" => {
                events.push(ChildEvent::Idle);
            }
            (b"session.status", _) => {}
            _ => events.push(ChildEvent::Idle),
        }
    }
}

fn failure(error: Option<NamedError>) -> ChildFailure {
    let Some(error) = error else {
        return ChildFailure::new(
            FailureKind::Protocol,
            "opencode reported an error without a message",
        );
    };
    let name = error.name.unwrap_or_default();
    let message = error.data.message.or(error.message);
    let message = message.unwrap_or_else(|| name.clone());
    let kind = match name.as_str() {
        "ProviderAuthError" => FailureKind::ProviderAuth,
        "MessageOutputLengthError" => FailureKind::OutputLength,
        "MessageAbortedError" => FailureKind::Aborted,
        "StructuredOutputError" => FailureKind::StructuredOutput,
        "ContextOverflowError" => FailureKind::ContextOverflow,
        _ => match classify_status(error.data.status_code, &message) {
            // opencode's own classification is more reliable than the message.
            FailureKind::Api { status, retryable } => FailureKind::Api {
                status,
                retryable: retryable || (status.is_none() && error.data.is_retryable == Some(true)),
            },
            kind => kind,
        },
    };
    ChildFailure::new(kind, message)
}
