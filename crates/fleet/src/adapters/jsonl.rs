//! Adapter for any program that prints lines of JSON, by the rules of the plan.

use serde_json::Value;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::plan::JsonlRules;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, FinishReason, Micros, Step, Text, Tokens,
    ToolPhase, classify_text,
};

/// Stands for all events in a list of events.
const ANY: &[u8] = b"*";

#[derive(Debug)]
pub(crate) struct Jsonl {
    rules: JsonlRules,
}

impl Jsonl {
    pub fn new(rules: JsonlRules) -> Self {
        Self { rules }
    }
}

fn named(list: &[String], kind: &[u8]) -> bool {
    list.iter().any(|name| name.as_bytes() == kind)
}

impl Adapter for Jsonl {
    fn member(&self) -> &[u8] {
        self.rules.event.as_bytes()
    }

    fn needs_whole(&self, kind: &[u8]) -> bool {
        let rules = &self.rules;
        [
            &rules.text,
            &rules.step,
            &rules.tool,
            &rules.failed,
            &rules.done,
        ]
        .into_iter()
        .any(|list| named(list, kind))
    }

    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        if !self.needs_whole(kind) {
            events.push(self.unread(kind));
            return Reading::Event;
        }
        match serde_json::from_slice(line) {
            Ok(line) => {
                self.take(kind, &line, events);
                Reading::Event
            }
            Err(_) => Reading::Invalid,
        }
    }

    fn read_unnamed(&mut self, line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Reading::Invalid;
        };
        let kind = match at(&line, &self.rules.event) {
            Some(Value::String(kind)) => kind.clone(),
            Some(kind @ (Value::Bool(_) | Value::Number(_))) => kind.to_string(),
            _ => return Reading::Ignored,
        };
        if self.needs_whole(kind.as_bytes()) {
            self.take(kind.as_bytes(), &line, events);
        } else {
            events.push(self.unread(kind.as_bytes()));
        }
        Reading::Event
    }

    fn read_kind_only(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        if named(&self.rules.failed, kind) {
            let message = "it failed; its error message is not readable, see the log of the child";
            let failure = ChildFailure::new(FailureKind::Protocol, message);
            events.push(ChildEvent::Failed(failure));
        }
        let ends = named(&self.rules.failed, kind) || named(&self.rules.done, kind);
        events.push(if ends {
            ChildEvent::Idle
        } else {
            ChildEvent::Text(Text::Partial)
        });
    }
}

impl Jsonl {
    /// Returns the event of a line that is known by its kind alone.
    fn unread(&self, kind: &[u8]) -> ChildEvent {
        let rules = &self.rules;
        if named(&rules.progress, kind) || named(&rules.progress, ANY) {
            ChildEvent::Text(Text::Partial)
        } else {
            ChildEvent::Alive
        }
    }

    fn take(&self, kind: &[u8], line: &Value, events: &mut Vec<ChildEvent>) {
        let rules = &self.rules;
        let text = |path: &str| at(line, path).and_then(Value::as_str).map(str::to_owned);
        if named(&rules.text, kind)
            && let Some(text) = text(&rules.text_field)
        {
            events.push(ChildEvent::Text(Text::Complete(text)));
        }
        if named(&rules.tool, kind) {
            let name = text(&rules.tool_field).unwrap_or_else(|| "tool".into());
            events.push(ChildEvent::Tool {
                effect: Effect::of_tool(&name),
                name,
                phase: ToolPhase::Done,
            });
        }
        let is_done = named(&rules.done, kind);
        let usage = usage(rules, line);
        if named(&rules.step, kind) || (is_done && usage.is_some()) {
            let (tokens, cost) = usage.unwrap_or_default();
            let reason = if is_done {
                FinishReason::Stop
            } else {
                FinishReason::Unknown
            };
            events.push(ChildEvent::StepFinished(Step {
                reason,
                tokens,
                cost,
            }));
        }
        if named(&rules.failed, kind) {
            let message = text(&rules.message_field);
            let kind = message
                .as_deref()
                .map_or(FailureKind::Protocol, classify_text);
            let message = message.unwrap_or_else(|| "it failed without an error message".into());
            events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
            events.push(ChildEvent::Idle);
        }
        if is_done {
            events.push(ChildEvent::Idle);
        }
    }
}

/// Returns the tokens and cost in a line; `None` if it has neither.
fn usage(rules: &JsonlRules, line: &Value) -> Option<(Tokens, Option<Micros>)> {
    let number = |path: &str| at(line, path).and_then(lenient::whole_number);
    let (input, output) = (number(&rules.input_field), number(&rules.output_field));
    let cost = at(line, &rules.cost_field).and_then(Value::as_f64);
    if input.is_none() && output.is_none() && cost.is_none() {
        return None;
    }
    let tokens = Tokens {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        ..Tokens::default()
    };
    Some((tokens, cost.map(Micros::from_dollars)))
}

/// Returns the value at a path with dots.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}
