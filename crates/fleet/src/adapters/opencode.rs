//! Lines of `opencode run --format json`, and those of its server's stream that matter.
//!
//! A tool is told when it is done. Nothing is printed at the end: a step that ends by itself and used no tool is the last one.
//! After any other it goes on, whatever reason the step gives, or it exits.

use serde::Deserialize;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Micros, Reason, Step, Text, Tokens, ToolPhase,
    from_status,
};

/// Reads opencode's lines.
#[derive(Debug, Default)]
pub(crate) struct Opencode {
    /// The session it runs: the first that was named. Others belong to agents below it.
    session: Option<String>,
    /// Whether the step that runs has used a tool.
    tool_used: bool,
    /// Why the last step ended; nothing while one runs.
    last: Option<Reason>,
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
    #[serde(deserialize_with = "lenient::part")]
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
    #[serde(deserialize_with = "lenient::part")]
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
    #[serde(default, deserialize_with = "lenient::part")]
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
    #[serde(default, deserialize_with = "lenient::part")]
    error: Option<NamedError>,
    #[serde(default, deserialize_with = "lenient::part")]
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
    #[serde(default, deserialize_with = "lenient::part")]
    data: ErrorData,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ErrorData {
    #[serde(deserialize_with = "lenient::text")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient::part")]
    status_code: Option<u16>,
    #[serde(deserialize_with = "lenient::part")]
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
                self.is_ours(line.session.as_deref());
                self.tool_used = false;
                self.last = None;
                let session = line.session;
                events.push(ChildEvent::Started { session });
            }),
            b"text" => serde_json::from_slice::<Line<TextPart>>(line)
                .map(|line| events.push(ChildEvent::Text(Text::Whole(line.part.text)))),
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
                events.push(ChildEvent::Text(Text::Growing));
                Ok(())
            }
            _ => return Reading::Other,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Misfit,
        }
    }

    fn gist(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        match kind {
            // How it went on is seen by what follows.
            b"step_finish" => self.last = Some(Reason::Unknown),
            b"text" => events.push(ChildEvent::Text(Text::Growing)),
            _ => {}
        }
    }

    fn exit_is_enough(&self) -> bool {
        self.last.is_some_and(|reason| reason != Reason::ToolUse)
    }
}

impl Opencode {
    /// Whether this is the session it runs, and not one of an agent below it. What has no name is.
    fn is_ours(&mut self, session: Option<&str>) -> bool {
        match (session, &self.session) {
            (None, _) => true,
            (Some(session), Some(ours)) => session == ours,
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
            .map_or(Reason::Unknown, Reason::parse);
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
        if !self.tool_used && !matches!(reason, Reason::ToolUse | Reason::Unknown) {
            events.push(ChildEvent::Idle);
        }
    }

    /// Something about a session, as the server tells it.
    fn session(&mut self, kind: &[u8], properties: Properties, events: &mut Vec<ChildEvent>) {
        if !self.is_ours(properties.session.as_deref()) {
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
        return ChildFailure::new(FailureKind::Protocol, "an error without a word");
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
        _ => match from_status(error.data.status_code, &message) {
            // It knows its providers better than their words do.
            FailureKind::Api { status, retryable } => FailureKind::Api {
                status,
                retryable: retryable || (status.is_none() && error.data.is_retryable == Some(true)),
            },
            kind => kind,
        },
    };
    ChildFailure::new(kind, message)
}
