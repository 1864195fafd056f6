//! Masks secrets in the journal, the report and the terminal. Only the logs of children contain their output unchanged.
//!
//! Three kinds of secrets are masked: keys known to the host program, values of environment variables whose names mark
//! them as secret, and the values of HTTP headers that carry a key.

use std::sync::Arc;

use serde_json::Value;

use crate::journal::FleetEvent;
use crate::{ChildFailure, Host, Plan};

/// The replacement of a secret.
const MASKED: &str = "***";
/// The length from which a value counts as a key; shorter ones are ordinary words.
const SHORTEST: usize = 8;
/// Headers that carry keys, in lower case.
const HEADERS: [&str; 4] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
];
/// Authentication schemes that may precede the key in such a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

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
            .filter(|(name, value)| is_secret(name, value))
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
        if let Some(masked) = without_headers(text) {
            *text = masked;
        }
    }
}

/// Reports whether a variable of this name and value holds a key.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let endings = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
    let looks_secret = value.len() >= SHORTEST
        && !value.contains(char::is_whitespace)
        && !value.starts_with('/')
        && (value.len() >= 2 * SHORTEST || value.contains(|c: char| c.is_ascii_digit()));
    looks_secret && endings.iter().any(|end| name.ends_with(end))
}

/// Masks the values of headers that carry keys; returns `None` if there is no such header.
fn without_headers(text: &str) -> Option<String> {
    let small = text.to_ascii_lowercase();
    let mut masked = String::new();
    // The end of the part that is already copied.
    let mut copied = 0;
    for (at, name) in headers(&small) {
        if at < copied {
            continue;
        }
        if let Some((start, end)) = value_after(&small, at + name.len()) {
            masked.push_str(&text[copied..start]);
            masked.push_str(MASKED);
            copied = end;
        }
    }
    if copied == 0 {
        return None;
    }
    masked.push_str(&text[copied..]);
    Some(masked)
}

/// Returns the positions of such headers, in order.
fn headers(small: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<_> = HEADERS
        .iter()
        .flat_map(|name| small.match_indices(name).map(|(at, _)| (at, *name)))
        .collect();
    found.sort_unstable();
    found
}

/// Returns the range of the key in the header whose name ends at `at`: after a colon or an equals sign, quotes and a
/// scheme.
fn value_after(small: &str, at: usize) -> Option<(usize, usize)> {
    let is_filling = |c: char| matches!(c, '"' | '\'' | '\\' | ' ' | '\t');
    let skip = |at: usize| small.len() - small[at..].trim_start_matches(is_filling).len();
    let at = skip(at);
    if !small[at..].starts_with([':', '=']) {
        return None;
    }
    let mut start = skip(at + 1);
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ',' | ';' | '}' | ')' | ']');
    let end_of = |at: usize| at + small[at..].find(is_end).unwrap_or(small.len() - at);
    let mut end = end_of(start);
    let has_scheme = SCHEMES.contains(&&small[start..end]);
    if has_scheme {
        start = skip(end);
        end = end_of(start);
    }
    // A short word after the colon is prose about the header, not a key.
    let is_key = if has_scheme {
        end > start
    } else {
        end - start >= SHORTEST
    };
    is_key.then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_in_headers_are_masked() {
        for (text, masked) in [
            (
                "401: Authorization: Bearer sk-1 refused",
                Some("401: Authorization: Bearer *** refused"),
            ),
            (
                r#"{"authorization":"Basic YWJj","x":1}"#,
                Some(r#"{"authorization":"Basic ***","x":1}"#),
            ),
            (
                r#"\"Authorization\": \"Bearer abc\""#,
                Some(r#"\"Authorization\": \"Bearer ***\""#),
            ),
            (
                "x-api-key=sk-ant-12345678, next",
                Some("x-api-key=***, next"),
            ),
            (
                "Proxy-Authorization: Bearer a\nAuthorization: Bearer b",
                Some("Proxy-Authorization: Bearer ***\nAuthorization: Bearer ***"),
            ),
            ("invalid x-api-key", None),
            ("authorization: see the docs", None),
            ("Authorization:", None),
            ("Authorization: Bearer ", None),
            ("nothing", None),
        ] {
            assert_eq!(without_headers(text).as_deref(), masked, "{text}");
        }
    }

    #[test]
    fn secrets_are_recognized_by_name_and_value() {
        for (name, value, secret) in [
            ("OPENAI_API_KEY", "sk-12345678", true),
            ("github_token", "ghp_aaaaaaaaaaaaaaaaaaaa", true),
            ("DB_PASSWORD", "hunter2hunter2", true),
            ("DEPLOY_KEY", "/home/me/.ssh/id", false),
            ("USE_TOKEN", "disabled", false),
            ("API_KEY", "short1", false),
            ("PATH", "a1b2c3d4e5f6", false),
        ] {
            assert_eq!(is_secret(name, value), secret, "{name}={value}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "(authorization|x-api-key|[:=\" \\\\é,]|bearer|[a-z]{1,9}){0,12}") {
            let masked = without_headers(&text);
            prop_assert!(masked.is_none_or(|masked| masked.contains(MASKED)));
        }
    }
}
