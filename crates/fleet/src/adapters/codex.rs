//! Adapter for `codex exec --json`, which reports tokens for a whole turn and no cost.

use std::collections::HashSet;

use serde::Deserialize;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, FinishReason, Step, Text, Tokens, ToolPhase,
    classify_text,
};

#[derive(Debug, Default)]
pub(crate) struct Codex {
    /// Ids of the items that have started.
    started_items: HashSet<String>,
}

#[derive(Deserialize)]
struct ThreadLine {
    #[serde(default, deserialize_with = "lenient::text")]
    thread_id: Option<String>,
}

#[derive(Deserialize)]
struct ItemLine {
    item: Item,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(rename = "type", alias = "item_type")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct TurnLine {
    #[serde(default, deserialize_with = "lenient::or_default")]
    usage: Usage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    #[serde(deserialize_with = "lenient::count")]
    input_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    cached_input_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    cache_write_input_tokens: u64,
    #[serde(deserialize_with = "lenient::count")]
    output_tokens: u64,
}

#[derive(Deserialize)]
struct ErrorLine {
    #[serde(default, deserialize_with = "lenient::text")]
    message: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default, deserialize_with = "lenient::text")]
    message: Option<String>,
}

impl Adapter for Codex {
    fn needs_whole(&self, kind: &[u8]) -> bool {
        matches!(
            kind,
            b"thread.started"
                | b"item.started"
                | b"item.completed"
                | b"turn.completed"
                | b"turn.failed"
                | b"error"
        )
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let read = match kind {
            b"thread.started" => serde_json::from_slice::<ThreadLine>(line).map(|line| {
                let session = line.thread_id;
                events.push(ChildEvent::Started { session });
            }),
            b"turn.started" => {
                events.push(ChildEvent::Started { session: None });
                Ok(())
            }
            b"item.started" => {
                serde_json::from_slice(line).map(|line: ItemLine| self.started(line.item, events))
            }
            b"item.completed" => {
                serde_json::from_slice(line).map(|line: ItemLine| self.ended(line.item, events))
            }
            b"item.updated" => {
                events.push(ChildEvent::Text(Text::Partial));
                Ok(())
            }
            b"turn.completed" => serde_json::from_slice::<TurnLine>(line).map(|line| {
                events.push(ChildEvent::StepFinished(step(&line.usage)));
                events.push(ChildEvent::Idle);
            }),
            b"turn.failed" => serde_json::from_slice::<ErrorLine>(line).map(|line| {
                events.push(ChildEvent::Failed(failure(line)));
                events.push(ChildEvent::Idle);
            }),
            b"error" => serde_json::from_slice::<ErrorLine>(line)
                .map(|line| events.push(ChildEvent::Failed(failure(line)))),
            _ => return Reading::Ignored,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Invalid,
        }
    }

    fn read_kind_only(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        match kind {
            b"turn.completed" => events.push(ChildEvent::Idle),
            b"turn.failed" => {
                let message =
                    "the turn failed; its error message is not readable, see the log of the child";
                let failure = ChildFailure::new(FailureKind::Protocol, message);
                events.extend([ChildEvent::Failed(failure), ChildEvent::Idle]);
            }
            b"item.started" | b"item.completed" => events.push(ChildEvent::Text(Text::Partial)),
            _ => {}
        }
    }
}

impl Codex {
    fn started(&mut self, item: Item, events: &mut Vec<ChildEvent>) {
        match item.kind.as_str() {
            "agent_message" | "reasoning" | "error" => {
                events.push(ChildEvent::Text(Text::Partial));
            }
            _ => {
                self.started_items.insert(item.id.unwrap_or_default());
                events.push(tool(item.kind, ToolPhase::Started));
            }
        }
    }

    fn ended(&mut self, item: Item, events: &mut Vec<ChildEvent>) {
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text.unwrap_or_default();
                events.push(ChildEvent::Text(Text::Complete(text)));
            }
            "reasoning" => events.push(ChildEvent::Text(Text::Partial)),
            // A warning: an error that ends the turn has an event of its own.
            "error" => {}
            _ => {
                let phase = if self.started_items.remove(&item.id.unwrap_or_default()) {
                    ToolPhase::Ended
                } else {
                    ToolPhase::Done
                };
                events.push(tool(item.kind, phase));
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

fn step(usage: &Usage) -> Step {
    let cached = usage
        .cached_input_tokens
        .saturating_add(usage.cache_write_input_tokens);
    Step {
        reason: FinishReason::Stop,
        tokens: Tokens {
            input: usage.input_tokens.saturating_sub(cached),
            output: usage.output_tokens,
            cache_read: usage.cached_input_tokens,
            cache_write: usage.cache_write_input_tokens,
        },
        cost: None,
    }
}

fn failure(line: ErrorLine) -> ChildFailure {
    let message = line.error.and_then(|error| error.message).or(line.message);
    let Some(message) = message else {
        return ChildFailure::new(
            FailureKind::Protocol,
            "the turn failed without an error message",
        );
    };
    let kind = match message.to_ascii_lowercase() {
        words if words.starts_with("reconnecting") => FailureKind::Api {
            status: None,
            retryable: true,
        },
        _ => classify_text(&message),
    };
    ChildFailure::new(kind, message)
}
