//! Lines of anything, by the rules of the plan.

use serde_json::Value;

use crate::adapter::{Adapter, Reading};
use crate::lenient;
use crate::plan::JsonlRules;
use crate::{
    ChildEvent, ChildFailure, Effect, FailureKind, Micros, Reason, Step, Text, Tokens, ToolPhase,
    from_text,
};

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
        let rules = &self.rules;
        if !self.needs_whole(kind) {
            if rules.progress.is_empty() || named(&rules.progress, kind) {
                events.push(ChildEvent::Text(Text::Growing));
                return Reading::Event;
            }
            return Reading::Other;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Reading::Misfit;
        };
        let text = |path: &str| at(&line, path).and_then(Value::as_str).map(str::to_owned);
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
        let step = step(rules, &line);
        if named(&rules.step, kind) || (named(&rules.done, kind) && step.is_some()) {
            events.push(ChildEvent::StepFinished(step.unwrap_or(Step {
                reason: Reason::Unknown,
                tokens: Tokens::default(),
                cost: None,
            })));
        }
        if named(&rules.failed, kind) {
            let message = text(&rules.message_field);
            let kind = message.as_deref().map_or(FailureKind::Protocol, from_text);
            let message = message.unwrap_or_else(|| "it failed without a word".into());
            events.push(ChildEvent::Failed(ChildFailure::new(kind, message)));
            events.push(ChildEvent::Idle);
        }
        if named(&rules.done, kind) {
            events.push(ChildEvent::Idle);
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

/// What the line says about tokens and cost, if it says anything.
fn step(rules: &JsonlRules, line: &Value) -> Option<Step> {
    let number = |path: &str| at(line, path).and_then(lenient::whole);
    let (input, output) = (number(&rules.input_field), number(&rules.output_field));
    let cost = at(line, &rules.cost_field).and_then(Value::as_f64);
    if input.is_none() && output.is_none() && cost.is_none() {
        return None;
    }
    Some(Step {
        reason: Reason::Unknown,
        tokens: Tokens {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            ..Tokens::default()
        },
        cost: cost.map(Micros::from_dollars),
    })
}

/// The value at a dotted path.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}
