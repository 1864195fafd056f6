//! Lines of anything, by the rules of the plan.

use serde_json::Value;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::plan::JsonlRules;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Micros, Reason, Step, Text, Tokens, ToolPhase,
    from_text,
};

/// In a list of events: every one of them.
const ANY: &[u8] = b"*";

/// Reads lines by rules.
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
            Err(_) => Reading::Misfit,
        }
    }

    fn read_unnamed(&mut self, line: &[u8], events: &mut Vec<ChildEvent>) -> Reading {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Reading::Misfit;
        };
        let kind = match at(&line, &self.rules.event) {
            Some(Value::String(kind)) => kind.clone(),
            Some(kind @ (Value::Bool(_) | Value::Number(_))) => kind.to_string(),
            _ => return Reading::Other,
        };
        match self.needs_whole(kind.as_bytes()) {
            true => self.take(kind.as_bytes(), &line, events),
            false => events.push(self.unread(kind.as_bytes())),
        }
        Reading::Event
    }

    fn gist(&mut self, kind: &[u8], events: &mut Vec<ChildEvent>) {
        if named(&self.rules.failed, kind) {
            let message = "it failed, and why could not be read";
            let failure = ChildFailure::new(FailureKind::Protocol, message);
            events.push(ChildEvent::Failed(failure));
        }
        let last = [&self.rules.failed, &self.rules.done];
        events.push(match last.into_iter().any(|list| named(list, kind)) {
            true => ChildEvent::Idle,
            false => ChildEvent::Text(Text::Growing),
        });
    }
}

impl Jsonl {
    /// What a line means whose kind says it all.
    fn unread(&self, kind: &[u8]) -> ChildEvent {
        let rules = &self.rules;
        match named(&rules.progress, kind) || named(&rules.progress, ANY) {
            true => ChildEvent::Text(Text::Growing),
            false => ChildEvent::Alive,
        }
    }

    fn take(&self, kind: &[u8], line: &Value, events: &mut Vec<ChildEvent>) {
        let rules = &self.rules;
        let text = |path: &str| at(line, path).and_then(Value::as_str).map(str::to_owned);
        if named(&rules.text, kind)
            && let Some(text) = text(&rules.text_field)
        {
            events.push(ChildEvent::Text(Text::Whole(text)));
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
            let reason = match is_done {
                true => Reason::Stop,
                false => Reason::Unknown,
            };
            events.push(ChildEvent::StepFinished(Step {
                reason,
                tokens,
                cost,
            }));
        }
        if named(&rules.failed, kind) {
            let message = text(&rules.message_field);
            let kind = message.as_deref().map_or(FailureKind::Protocol, from_text);
            let message = message.unwrap_or_else(|| "it failed without a word".into());
            events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
            events.push(ChildEvent::Idle);
        }
        if is_done {
            events.push(ChildEvent::Idle);
        }
    }
}

/// What the line says about tokens and cost, if it says anything.
fn usage(rules: &JsonlRules, line: &Value) -> Option<(Tokens, Option<Micros>)> {
    let number = |path: &str| at(line, path).and_then(lenient::whole);
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

/// The value at a dotted path.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}
