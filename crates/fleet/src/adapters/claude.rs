//! Adapter for `claude -p --output-format stream-json --verbose`.
//!
//! Every block of an answer repeats the usage of its request at the start of the answer, so those numbers are ignored.
//! The `result` at the end has all tokens and the whole cost; they are reported as one step.

use serde::Deserialize;
use serde_json::Value;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, FinishReason, Micros, Step, Text, Tokens,
    ToolPhase, classify_status,
};

/// The model name of messages that claude itself writes about a failure.
const SYNTHETIC: &str = "<synthetic>";

#[derive(Debug, Default)]
pub(crate) struct Claude {
    /// Ids and names of the running tools; results name only the id.
    running: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct SystemLine {
    #[serde(default, deserialize_with = "lenient::text")]
    subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct MessageLine {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    tool_use_id: Option<String>,
}

#[derive(Deserialize)]
struct ResultLine {
    #[serde(default, deserialize_with = "lenient::text")]
    subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    is_error: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    api_error_status: Option<u16>,
    #[serde(default, deserialize_with = "lenient::text")]
    result: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::number")]
    total_cost_usd: f64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    usage: Usage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    #[serde(deserialize_with = "lenient::count")]
    input_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    output_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    cache_read_input_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    cache_creation_input_tokens: u64,
}

impl Adapter for Claude {
    fn needs_whole(&self, kind: &[u8]) -> bool {
        matches!(kind, b"system" | b"assistant" | b"user" | b"result")
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let read = match kind {
            b"system" => serde_json::from_slice::<SystemLine>(line).map(|line| {
                if line.subtype.as_deref() == Some("init") {
                    let session = line.session_id;
                    events.push(ChildEvent::Started { session });
                }
            }),
            b"assistant" => serde_json::from_slice(line)
                .map(|line: MessageLine| self.assistant_message(line.message, events)),
            b"user" => serde_json::from_slice(line)
                .map(|line: MessageLine| self.user_message(line.message, events)),
            b"result" => serde_json::from_slice(line).map(|line| result(line, events)),
            b"stream_event" => {
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
            b"result" => events.push(ChildEvent::Idle),
            b"assistant" | b"user" => events.push(ChildEvent::Text(Text::Partial)),
            _ => {}
        }
    }
}

impl Claude {
    fn assistant_message(&mut self, message: Message, events: &mut Vec<ChildEvent>) {
        for block in lenient::items::<Block>(message.content) {
            match (block.kind.as_str(), block.text, block.name) {
                ("text", Some(text), _) if message.model.as_deref() != Some(SYNTHETIC) => {
                    events.push(ChildEvent::Text(Text::Complete(text)));
                }
                ("tool_use", _, Some(name)) => {
                    self.running
                        .push((block.id.unwrap_or_default(), name.clone()));
                    events.push(tool(name, ToolPhase::Started));
                }
                _ => events.push(ChildEvent::Text(Text::Partial)),
            }
        }
    }

    fn user_message(&mut self, message: Message, events: &mut Vec<ChildEvent>) {
        let blocks = lenient::items::<Block>(message.content);
        for id in blocks.into_iter().filter_map(|block| block.tool_use_id) {
            let found = self.running.iter().position(|(running, _)| *running == id);
            if let Some(found) = found {
                let (_, name) = self.running.swap_remove(found);
                events.push(tool(name, ToolPhase::Ended));
            }
        }
    }
}

fn tool(name: String, phase: ToolPhase) -> ChildEvent {
    ChildEvent::Tool {
        effect: Effect::of_tool(&name),
        name,
        phase,
    }
}

fn result(line: ResultLine, events: &mut Vec<ChildEvent>) {
    let subtype = line.subtype.unwrap_or_default();
    let failed = line.is_error || subtype.starts_with("error");
    let reason = if failed {
        FinishReason::Error
    } else {
        line.stop_reason
            .as_deref()
            .map_or(FinishReason::Stop, FinishReason::parse)
    };
    let message = line.result.unwrap_or_else(|| subtype.clone());
    if !failed && !message.is_empty() {
        events.push(ChildEvent::Text(Text::Complete(message.clone())));
    }
    events.push(ChildEvent::StepFinished(Step {
        reason,
        tokens: Tokens {
            input: line.usage.input_tokens,
            output: line.usage.output_tokens,
            cache_read: line.usage.cache_read_input_tokens,
            cache_write: line.usage.cache_creation_input_tokens,
        },
        cost: Some(Micros::from_dollars(line.total_cost_usd)),
    }));
    if failed {
        let kind = match subtype.as_str() {
            "error_max_budget_usd" => FailureKind::Budget,
            "error_max_structured_output_retries" => FailureKind::StructuredOutput,
            "error_max_turns" => FailureKind::Aborted,
            _ => classify_status(line.api_error_status, &message),
        };
        events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
    }
    events.push(ChildEvent::Idle);
}
