//! Approvals in settings files.

use std::time::Duration;

use serde_json::Value;

use crate::{Mode, Origin, Rule};

/// The longest time to wait for an answer that flags or settings can set, in seconds.
pub const MAX_ANSWER_TIMEOUT: u64 = 24 * 60 * 60;

/// Returns the time to wait for an answer if `seconds` is in the valid range.
pub fn answer_timeout(seconds: u64) -> Option<Duration> {
    let is_valid = (1..=MAX_ANSWER_TIMEOUT).contains(&seconds);
    is_valid.then(|| Duration::from_secs(seconds))
}

/// The approvals in the user's settings, or those of flags.
#[derive(Debug, Default)]
pub struct ApprovalSettings {
    pub mode: Option<Mode>,
    pub answer_timeout: Option<Duration>,
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
}

impl ApprovalSettings {
    /// Reads the member `approvals` of the user's settings.
    ///
    /// # Errors
    ///
    /// Fails for every mistake, because a rule that is ignored would protect nothing. The text is for the user.
    pub fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("approvals must be an object")?;
        let mut settings = Self::default();
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "mode" => {
                    let mode = value.as_str().and_then(Mode::named);
                    settings.mode = Some(mode.ok_or("approvals.mode must be ask, auto or deny")?);
                }
                "timeoutSeconds" => {
                    let timeout = value.as_u64().and_then(answer_timeout).ok_or_else(|| {
                        format!("approvals.timeoutSeconds must be from 1 to {MAX_ANSWER_TIMEOUT}")
                    })?;
                    settings.answer_timeout = Some(timeout);
                }
                "allow" => settings.allow = rules("allow", value, Origin::Settings)?,
                "deny" => settings.deny = rules("deny", value, Origin::Settings)?,
                other => return Err(format!("approvals has no member \"{other}\"")),
            }
        }
        Ok(settings)
    }
}

/// Returns the deny rules in the member `approvals` of a trusted project's settings, and calls `warn` about everything
/// else in it. No project can allow a call or prevent the start of pinion.
pub fn project_rules(value: &Value, warn: impl Fn(&str)) -> Vec<Rule> {
    let Some(members) = value.as_object() else {
        warn("approvals must be an object; it is ignored");
        return Vec::new();
    };
    let others: Vec<String> = members
        .keys()
        .filter(|name| *name != "deny")
        .map(|name| format!("approvals.{name}"))
        .collect();
    if !others.is_empty() {
        let others = others.join(", ");
        warn(&format!(
            "a project can only forbid tool calls, so these settings are ignored: {others}"
        ));
    }
    let Some(items) = members.get("deny").filter(|value| !value.is_null()) else {
        return Vec::new();
    };
    let each = items.as_array().map_or(&[][..], Vec::as_slice);
    if !items.is_array() {
        warn("approvals.deny must be a list of rules; it is ignored");
    }
    let rule =
        |item: &Value| match rules("deny", &Value::Array(vec![item.clone()]), Origin::Project) {
            Ok(rules) => rules,
            Err(problem) => {
                warn(&format!("{problem}; it is ignored"));
                Vec::new()
            }
        };
    each.iter().flat_map(rule).collect()
}

fn rules(name: &str, value: &Value, origin: Origin) -> Result<Vec<Rule>, String> {
    let wrong = || format!("approvals.{name} must be a list of rules such as \"bash(git status)\"");
    let items = value.as_array().ok_or_else(wrong)?;
    let rule = |item: &Value| {
        let rule = Rule::parse(item.as_str().ok_or_else(wrong)?, origin);
        rule.map_err(|error| format!("approvals.{name}: {error}"))
    };
    items.iter().map(rule).collect()
}
