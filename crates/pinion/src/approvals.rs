//! The approval of tool calls: the policy from flags and settings, and the questions that the client receives.

use std::sync::Arc;
use std::time::Duration;

use pinion_agent::Gate;
use pinion_approval::{
    ApprovalSettings, Approvals, Ask, ClientQuestions, MAX_ANSWER_TIMEOUT, Mode, Policy,
    Unattended, answer_timeout, project_rules,
};
use pinion_config::{Dirs, Settings};
use pinion_message::Mask;

use crate::cli::ApprovalFlags;
use crate::extensions::Audience;
use crate::failure::Failure;

/// Returns the policy for tool calls; `None` runs all of them.
///
/// A mistake in the user's own settings is an error: a rule that is ignored would protect nothing.
pub(crate) fn policy(
    flags: &ApprovalFlags,
    settings: &Settings,
    dirs: &Dirs,
) -> Result<Option<Policy>, Failure> {
    policy_with(flags, settings, dirs, Defaults::default())
}

/// The values that neither flags nor settings give.
#[derive(Debug, Clone, Copy, Default)]
struct Defaults {
    mode: Option<Mode>,
    answer_timeout: Option<Duration>,
}

/// Returns the policy of a session in an editor, whose user can be asked: it asks unless flags or settings name another
/// mode, and waits a day for an answer.
pub(crate) fn policy_of_editor(
    flags: &ApprovalFlags,
    settings: &Settings,
    dirs: &Dirs,
) -> Result<Policy, Failure> {
    let defaults = Defaults {
        mode: Some(Mode::Ask),
        answer_timeout: answer_timeout(MAX_ANSWER_TIMEOUT),
    };
    let policy = policy_with(flags, settings, dirs, defaults)?;
    Ok(policy.unwrap_or_else(Policy::asking))
}

fn policy_with(
    flags: &ApprovalFlags,
    settings: &Settings,
    dirs: &Dirs,
    defaults: Defaults,
) -> Result<Option<Policy>, Failure> {
    let mut own = match settings.get_global("approvals") {
        None => ApprovalSettings::default(),
        Some(value) => ApprovalSettings::read(value).map_err(|problem| {
            let file = dirs.global_settings();
            Failure::failed(format!("{}: {problem}.", file.display()))
        })?,
    };
    own.mode = own.mode.or(defaults.mode);
    own.answer_timeout = own.answer_timeout.or(defaults.answer_timeout);
    let of_project = match settings.get_project("approvals") {
        None => Vec::new(),
        Some(value) => {
            let file = dirs.project_settings();
            let warn = |problem: &str| eprintln!("Warning: {}: {problem}", file.display());
            project_rules(value, warn)
        }
    };
    let flags = ApprovalSettings {
        mode: flags.mode,
        answer_timeout: flags.answer_timeout,
        allow: flags.allow.clone(),
        deny: flags.deny.clone(),
    };
    Ok(Policy::of(flags, own, of_project))
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
    use pinion_approval::{Origin, Rule};
    use serde_json::{Value, json};

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
            answer_timeout: answer_timeout(7),
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
