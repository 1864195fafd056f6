//! Lines of `opencode run --format json`, and those of its server's stream that matter.
//!
//! A tool is told when it is done. Nothing is printed at the end: the step that asks for no tools is the last one, unless
//! another begins.

use serde::Deserialize;

use crate::adapter::{Adapter, Reading};
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Micros, Reason, Step, Text, Tokens, ToolPhase,
    from_status,
};

/// Reads opencode's lines.
#[derive(Debug)]
pub(crate) struct Opencode;

#[derive(Deserialize)]
struct Line<P> {
    #[serde(rename = "sessionID")]
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
    reason: String,
    cost: f64,
    tokens: FinishTokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FinishTokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

#[derive(Deserialize)]
struct ErrorLine {
    error: Option<NamedError>,
    properties: Option<Properties>,
}

#[derive(Deserialize)]
struct Properties {
    error: Option<NamedError>,
}

#[derive(Deserialize)]
struct NamedError {
    #[serde(default)]
    name: String,
    message: Option<String>,
    #[serde(default)]
    data: ErrorData,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ErrorData {
    message: Option<String>,
    status_code: Option<u16>,
    is_retryable: Option<bool>,
}

impl Adapter for Opencode {
    fn needs_whole(&self, kind: &[u8]) -> bool {
        matches!(
            kind,
            b"step_start" | b"text" | b"tool_use" | b"step_finish" | b"error" | b"session.error"
        )
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let read = match kind {
            b"step_start" => serde_json::from_slice::<Line<Start>>(line).map(|line| {
                let session = line.session;
                events.push(ChildEvent::Started { session });
            }),
            b"text" => serde_json::from_slice::<Line<TextPart>>(line)
                .map(|line| events.push(ChildEvent::Text(Text::Whole(line.part.text)))),
            b"tool_use" => serde_json::from_slice::<Line<ToolPart>>(line).map(|line| {
                events.push(ChildEvent::Tool {
                    effect: Effect::of_tool(&line.part.tool),
                    name: line.part.tool,
                    phase: ToolPhase::Done,
                });
            }),
            b"step_finish" => serde_json::from_slice::<Line<FinishPart>>(line)
                .map(|line| finish(&line.part, events)),
            b"error" | b"session.error" => {
                serde_json::from_slice::<ErrorLine>(line).map(|line| failed(line, events))
            }
            b"reasoning" => {
                events.push(ChildEvent::Text(Text::Growing));
                Ok(())
            }
            b"session.idle" => {
                events.push(ChildEvent::Idle);
                Ok(())
            }
            _ => return Reading::Other,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Noise,
        }
    }
}

fn finish(part: &FinishPart, events: &mut Vec<ChildEvent>) {
    let reason = Reason::parse(&part.reason);
    events.push(ChildEvent::StepFinished(Step {
        reason,
        tokens: Tokens {
            input: part.tokens.input,
            output: part.tokens.output + part.tokens.reasoning,
            cache_read: part.tokens.cache.read,
            cache_write: part.tokens.cache.write,
        },
        cost: Some(Micros::from_dollars(part.cost)),
    }));
    if reason != Reason::ToolUse {
        events.push(ChildEvent::Idle);
    }
}

fn failed(line: ErrorLine, events: &mut Vec<ChildEvent>) {
    let error = line
        .error
        .or(line.properties.and_then(|properties| properties.error));
    let Some(error) = error else {
        let failure = ChildFailure::new(FailureKind::Protocol, "an error without a word");
        return events.push(ChildEvent::Failed(failure));
    };
    let message = error.data.message.or(error.message);
    let message = message.unwrap_or_else(|| error.name.clone());
    let kind = match error.name.as_str() {
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
    events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
}
