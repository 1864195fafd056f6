//! The approval of tool calls: the policy from flags and settings, and the questions that the client receives.

mod questions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::Gate;
use pinion_approval::{Approvals, Ask, Mode, Origin, Policy, Rule, Unattended};
use pinion_config::{Dirs, Settings};
use pinion_message::Mask;
use serde_json::Value;

pub(crate) use self::questions::ClientQuestions;
use crate::cli::ApprovalFlags;
use crate::extensions::Audience;
use crate::failure::Failure;

/// Seconds to wait for an answer unless flags or settings set another time.
const PATIENCE: u64 = 300;
/// The longest time that flags or settings can set, in seconds.
pub(crate) const LONGEST_PATIENCE: u64 = 24 * 60 * 60;

/// Returns the duration if `seconds` is in the valid range.
pub(crate) fn patience(seconds: u64) -> Option<Duration> {
    let sensible = (1..=LONGEST_PATIENCE).contains(&seconds);
    sensible.then(|| Duration::from_secs(seconds))
}

/// The approvals in the user's settings.
#[derive(Default)]
struct Wanted {
    mode: Option<Mode>,
    patience: Option<Duration>,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

/// Returns the policy for tool calls; `None` runs all of them.
///
/// A mistake in the user's own settings is an error: a rule that is ignored would protect nothing.
pub(crate) fn policy(
    flags: &ApprovalFlags,
    settings: &Settings,
    dirs: &Dirs,
) -> Result<Option<Policy>, Failure> {
    let own = match settings.get_global("approvals") {
        None => Wanted::default(),
        Some(value) => wanted(value).map_err(|problem| {
            let file = dirs.global_settings();
            Failure::failed(format!("Error: {}: {problem}.", file.display()))
        })?,
    };
    let mut deny = flags.deny.clone();
    deny.extend(own.deny);
    deny.extend(of_project(settings, &dirs.project_settings()));
    let mut allow = flags.allow.clone();
    allow.extend(own.allow);
    let implied = match (allow.is_empty(), deny.is_empty()) {
        (false, _) => Some(Mode::Ask),
        (true, false) => Some(Mode::Auto),
        (true, true) => None,
    };
    let Some(mode) = flags.mode.or(own.mode).or(implied) else {
        return Ok(None);
    };
    let patience = flags.patience.or(own.patience);
    Ok(Some(Policy {
        mode,
        answer_timeout: patience.unwrap_or(Duration::from_secs(PATIENCE)),
        allow,
        deny,
    }))
}

fn wanted(value: &Value) -> Result<Wanted, String> {
    let members = value.as_object().ok_or("approvals must be an object")?;
    let mut wanted = Wanted::default();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        match name.as_str() {
            "mode" => {
                let mode = value.as_str().and_then(Mode::named);
                wanted.mode = Some(mode.ok_or("approvals.mode must be ask, auto or deny")?);
            }
            "timeoutSeconds" => {
                let patience = value.as_u64().and_then(patience).ok_or_else(|| {
                    format!("approvals.timeoutSeconds must be from 1 to {LONGEST_PATIENCE}")
                })?;
                wanted.patience = Some(patience);
            }
            "allow" => wanted.allow = rules("allow", value, Origin::Settings)?,
            "deny" => wanted.deny = rules("deny", value, Origin::Settings)?,
            other => return Err(format!("approvals has no member \"{other}\"")),
        }
    }
    Ok(wanted)
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

/// Returns the deny rules of a trusted project. No project can allow a call or prevent the start of pinion.
fn of_project(settings: &Settings, file: &Path) -> Vec<Rule> {
    let Some(value) = settings.get_project("approvals") else {
        return Vec::new();
    };
    let warn = |problem: &str| eprintln!("Warning: {}: {problem}", file.display());
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

/// Returns the gate that decides about tool calls, and the questions for the client if there is one.
pub(crate) fn gate(
    policy: Option<Policy>,
    audience: &Audience,
    mask: &Mask,
) -> (Option<Arc<dyn Gate>>, Option<Arc<ClientQuestions>>) {
    let Some(policy) = policy else {
        return (None, None);
    };
    let questions = audience.has_ui.then(|| {
        Arc::new(ClientQuestions::new(
            Arc::clone(&audience.records),
            mask.clone(),
        ))
    });
    let asker: Arc<dyn Ask> = match &questions {
        Some(questions) => Arc::clone(questions) as _,
        None => Arc::new(Unattended),
    };
    (Some(Arc::new(Approvals::new(policy, asker))), questions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dirs() -> Dirs {
        Dirs::new("/work".into(), |_| None)
    }

    fn made(flags: &ApprovalFlags, own: Value, project: Value) -> Option<Policy> {
        let settings =
            Settings::from_values(json!({"approvals": own}), json!({"approvals": project}));
        policy(flags, &settings, &dirs()).unwrap()
    }

    fn texts(rules: &[Rule]) -> Vec<(&str, &str)> {
        let shown = |rule| (Rule::origin(rule).code(), Rule::text(rule));
        rules.iter().map(shown).collect()
    }

    #[test]
    fn nothing_is_decided_unless_asked_for() {
        let none = ApprovalFlags::default();
        for own in [
            json!(null),
            json!({}),
            json!({"timeoutSeconds": 5}),
            json!({"allow": []}),
        ] {
            assert!(made(&none, own, json!(null)).is_none());
        }
        // A project that would allow calls or choose a mode turns nothing on.
        assert!(
            made(
                &none,
                json!(null),
                json!({"mode": "auto", "allow": ["bash"]})
            )
            .is_none()
        );
    }

    #[test]
    fn rules_alone_say_which_mode_is_meant() {
        let none = ApprovalFlags::default();
        let mode = |own, project| made(&none, own, project).unwrap().mode;
        assert_eq!(mode(json!({"allow": ["read"]}), json!(null)), Mode::Ask);
        assert_eq!(mode(json!({"deny": ["bash"]}), json!(null)), Mode::Auto);
        assert_eq!(mode(json!(null), json!({"deny": ["bash"]})), Mode::Auto);
        assert_eq!(
            mode(json!({"mode": "deny", "deny": ["bash"]}), json!(null)),
            Mode::Deny
        );
    }

    #[test]
    fn flags_go_first_and_rules_add_up() {
        let flags = ApprovalFlags {
            mode: Some(Mode::Deny),
            patience: patience(7),
            allow: vec![Rule::parse("ls", Origin::Flag).unwrap()],
            deny: vec![Rule::parse("edit", Origin::Flag).unwrap()],
        };
        let own = json!({"mode": "ask", "timeoutSeconds": 9, "allow": ["bash"], "deny": ["write"]});
        let project = json!({"mode": "auto", "timeoutSeconds": 1, "allow": ["*"], "deny": ["grep", 5, "x(y)"]});
        let policy = made(&flags, own, project).unwrap();
        assert_eq!(
            (policy.mode, policy.answer_timeout.as_secs()),
            (Mode::Deny, 7)
        );
        assert_eq!(texts(&policy.allow), [("flag", "ls"), ("settings", "bash")]);
        assert_eq!(
            texts(&policy.deny),
            [("flag", "edit"), ("settings", "write"), ("project", "grep")]
        );
    }

    #[test]
    fn a_mistake_of_the_user_is_an_error() {
        for (own, words) in [
            (json!("ask"), "must be an object"),
            (
                json!({"mode": "yes"}),
                "approvals.mode must be ask, auto or deny",
            ),
            (
                json!({"timeoutSeconds": 0}),
                "approvals.timeoutSeconds must be from 1 to 86400",
            ),
            (json!({"allow": "bash"}), "approvals.allow must be a list"),
            (json!({"deny": [5]}), "approvals.deny must be a list"),
            (
                json!({"deny": ["bash("]}),
                "approvals.deny: the rule \"bash(\" cannot be used",
            ),
            (json!({"denied": []}), "approvals has no member \"denied\""),
        ] {
            let settings = Settings::from_values(json!({"approvals": own}), json!({}));
            let failure = policy(&ApprovalFlags::default(), &settings, &dirs()).unwrap_err();
            assert!(failure.to_string().contains(words), "{failure}");
        }
    }
}
