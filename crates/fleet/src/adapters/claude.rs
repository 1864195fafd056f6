//! Lines of `claude -p --output-format stream-json --verbose`.
//!
//! Every block of an answer repeats the usage of its request as it was when the answer began, so those numbers are no account
//! of anything. The `result` at the end has all tokens and all cost: they are told as one step.

use serde::Deserialize;
use serde_json::Value;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Micros, Reason, Step, Text, Tokens, ToolPhase,
    from_status,
};

/// Answers that no model gave: the program's own words about a failure.
const SYNTHETIC: &str = "<synthetic>";

/// Reads claude's lines.
#[derive(Debug, Default)]
pub(crate) struct Claude {
    /// Tools that run, so that a result can be told as the end of one: id and name.
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
    #[serde(default, deserialize_with = "lenient::part")]
    is_error: bool,
    #[serde(default, deserialize_with = "lenient::part")]
    api_error_status: Option<u16>,
    #[serde(default, deserialize_with = "lenient::text")]
    result: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::number")]
    total_cost_usd: f64,
    #[serde(default, deserialize_with = "lenient::part")]
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
                .map(|line: MessageLine| self.says(line.message, events)),
            b"user" => serde_json::from_slice(line)
                .map(|line: MessageLine| self.hears(line.message, events)),
            b"result" => serde_json::from_slice(line).map(|line| result(line, events)),
            b"stream_event" => {
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
            b"result" => events.push(ChildEvent::Idle),
            b"assistant" | b"user" => events.push(ChildEvent::Text(Text::Growing)),
            _ => {}
        }
    }
}

impl Claude {
    fn says(&mut self, message: Message, events: &mut Vec<ChildEvent>) {
        for block in lenient::items::<Block>(message.content) {
            match (block.kind.as_str(), block.text, block.name) {
                ("text", Some(text), _) if message.model.as_deref() != Some(SYNTHETIC) => {
                    events.push(ChildEvent::Text(Text::Whole(text)));
                }
                ("tool_use", _, Some(name)) => {
                    self.running
                        .push((block.id.unwrap_or_default(), name.clone()));
                    events.push(tool(name, ToolPhase::Begins));
                }
                _ => events.push(ChildEvent::Text(Text::Growing)),
            }
        }
    }

    fn hears(&mut self, message: Message, events: &mut Vec<ChildEvent>) {
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
    let reason = match failed {
        true => Reason::Error,
        false => line
            .stop_reason
            .as_deref()
            .map_or(Reason::Stop, Reason::parse),
    };
    let message = line.result.unwrap_or_else(|| subtype.clone());
    if !failed && !message.is_empty() {
        events.push(ChildEvent::Text(Text::Whole(message.clone())));
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
            _ => from_status(line.api_error_status, &message),
        };
        events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
    }
    events.push(ChildEvent::Idle);
}
