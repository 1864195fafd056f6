//! Lines of `codex exec --json`. It tells tokens for a whole turn and no cost.

use std::collections::HashSet;

use serde::Deserialize;

use crate::adapter::{Adapter, Reading};
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Reason, Step, Text, Tokens, ToolPhase, from_text,
};

/// Reads codex's lines.
#[derive(Debug, Default)]
pub(crate) struct Codex {
    /// Items that have begun.
    begun: HashSet<String>,
}

#[derive(Deserialize)]
struct ThreadLine {
    thread_id: Option<String>,
}

#[derive(Deserialize)]
struct ItemLine {
    item: Item,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", alias = "item_type")]
    kind: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct TurnLine {
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct ErrorLine {
    message: Option<String>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ErrorBody {
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
                serde_json::from_slice(line).map(|line: ItemLine| self.begins(line.item, events))
            }
            b"item.completed" => {
                serde_json::from_slice(line).map(|line: ItemLine| self.ended(line.item, events))
            }
            b"item.updated" => {
                events.push(ChildEvent::Text(Text::Growing));
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
            _ => return Reading::Other,
        };
        match read {
            Ok(()) => Reading::Event,
            Err(_) => Reading::Noise,
        }
    }
}

impl Codex {
    fn begins(&mut self, item: Item, events: &mut Vec<ChildEvent>) {
        match item.kind.as_str() {
            "agent_message" | "reasoning" | "error" => {
                events.push(ChildEvent::Text(Text::Growing));
            }
            _ => {
                self.begun.insert(item.id);
                events.push(tool(item.kind, ToolPhase::Begins));
            }
        }
    }

    fn ended(&mut self, item: Item, events: &mut Vec<ChildEvent>) {
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text.unwrap_or_default();
                events.push(ChildEvent::Text(Text::Whole(text)));
            }
            "reasoning" => events.push(ChildEvent::Text(Text::Growing)),
            // A warning: what ends a turn is told as such.
            "error" => {}
            _ => {
                let phase = match self.begun.remove(&item.id) {
                    true => ToolPhase::Ended,
                    false => ToolPhase::Done,
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
    let cached = usage.cached_input_tokens + usage.cache_write_input_tokens;
    Step {
        reason: Reason::Stop,
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
    let message = message.unwrap_or_else(|| "the turn failed without a word".into());
    let kind = match message.to_ascii_lowercase() {
        words if words.starts_with("reconnecting") => FailureKind::Api {
            status: None,
            retryable: true,
        },
        _ => from_text(&message),
    };
    ChildFailure::new(kind, message)
}
