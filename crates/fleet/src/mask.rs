//! Masks secrets in the journal, the report and the terminal. Only the logs of children contain their output unchanged.
//!
//! Three kinds of secrets are masked: keys known to the host program, values of environment variables whose names mark
//! them as secret, and the values of HTTP headers that carry a key.

use std::sync::Arc;

use pinion_message::{is_secret_variable, mask_headers};
use serde_json::Value;

use crate::journal::FleetEvent;
use crate::{ChildFailure, Host, Plan};

/// The replacement of a secret.
const MASKED: &str = "***";
/// Masks secrets in events.
pub(crate) struct SecretMask {
    host: Arc<dyn Host>,
    /// Secret values from the plan's and the process's environment variables, longest first.
    values: Vec<String>,
}

impl SecretMask {
    pub fn new(host: Arc<dyn Host>, plan: &Plan) -> Self {
        let children = plan.children.iter().chain(&plan.judge);
        let planned = children.flat_map(|child| child.env.clone());
        let inherited = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut values: Vec<String> = planned
            .chain(inherited)
            .filter(|(name, value)| is_secret_variable(name, value))
            .map(|(_, value)| value)
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { host, values }
    }

    /// Masks secrets in all texts of an event that come from a child or the operating system.
    pub fn event(&self, event: &mut FleetEvent) {
        match event {
            FleetEvent::ChildTool { tool, .. } => self.text(tool),
            FleetEvent::AttemptEnded {
                failure, session, ..
            } => {
                self.failure(failure);
                session.iter_mut().for_each(|session| self.text(session));
            }
            FleetEvent::ChildEnded {
                failure,
                result,
                output,
                ..
            } => {
                self.failure(failure);
                result.iter_mut().for_each(|result| self.text(result));
                output.iter_mut().for_each(|output| self.value(output));
            }
            FleetEvent::Warning { message } => self.text(message),
            FleetEvent::RunStarted { .. }
            | FleetEvent::RunResumed { .. }
            | FleetEvent::ChildStarted { .. }
            | FleetEvent::ChildStep { .. }
            | FleetEvent::ChildQuiet { .. }
            | FleetEvent::Breaker { .. }
            | FleetEvent::RunEnded { .. } => {}
        }
    }

    fn failure(&self, failure: &mut Option<ChildFailure>) {
        if let Some(failure) = failure {
            self.text(&mut failure.message);
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&self, text: &mut String) {
        self.host.mask_secrets(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), MASKED);
            }
        }
        if let Some(masked) = mask_headers(text) {
            *text = masked;
        }
    }
}
