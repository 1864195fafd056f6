//! The policy: rules that permit and forbid tool calls, and a mode for all other calls.

use std::time::Duration;

use pinion_agent::Maker;

use crate::call::{Subject, ToolCall};
use crate::command::{Fit, all_fit, any_fits};
use crate::rule::{Rule, Scope};
use crate::settings::ApprovalSettings;

/// Time to wait for an answer unless flags or settings set another one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// The treatment of calls that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The user is asked.
    Ask,
    /// The call runs.
    Auto,
    /// The call is refused.
    Deny,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Ask, Self::Auto, Self::Deny];

    /// Returns the name in flags and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }

    /// Finds a mode by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Rules, and the treatment of calls that no rule matches.
#[derive(Debug, Clone)]
pub struct Policy {
    pub mode: Mode,
    /// The time that the user has to answer a question.
    pub answer_timeout: Duration,
    /// Calls that run without a question.
    pub allow: Vec<Rule>,
    /// Calls that never run; these rules override all others, the mode and grants.
    pub deny: Vec<Rule>,
}

/// The decision about a call.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    Run,
    Ask,
    /// A rule forbids the call.
    Forbidden(&'a Rule),
    /// No rule permits the call, and the mode does not ask.
    NotPermitted,
    /// No tool opens the path of the call: the path as written, and the reason.
    NotAFile(&'a str, &'a str),
}

impl Policy {
    /// Combines flags, the user's settings and the deny rules of a project; `None` runs all calls.
    ///
    /// Flags override settings, and rules add up. Rules without a mode imply one: with allow rules other calls are
    /// asked about, with deny rules alone other calls run.
    pub fn of(
        flags: ApprovalSettings,
        own: ApprovalSettings,
        of_project: Vec<Rule>,
    ) -> Option<Self> {
        let (mut allow, mut deny) = (flags.allow, flags.deny);
        allow.extend(own.allow);
        deny.extend(own.deny);
        deny.extend(of_project);
        let implied = match (allow.is_empty(), deny.is_empty()) {
            (false, _) => Some(Mode::Ask),
            (true, false) => Some(Mode::Auto),
            (true, true) => None,
        };
        let mode = flags.mode.or(own.mode).or(implied)?;
        let answer_timeout = flags.answer_timeout.or(own.answer_timeout);
        Some(Self {
            mode,
            answer_timeout: answer_timeout.unwrap_or(ANSWER_TIMEOUT),
            allow,
            deny,
        })
    }

    /// Returns the policy that asks about every call, for clients that answer questions and know no rules.
    pub fn asking() -> Self {
        Self {
            mode: Mode::Ask,
            answer_timeout: ANSWER_TIMEOUT,
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }

    /// Decides about a call in `mode`, which may differ from the mode that the session started with.
    pub(crate) fn decide<'a>(&'a self, mode: Mode, call: &'a ToolCall<'_>) -> Decision<'a> {
        if let Subject::Path { written, target } = &call.subject
            && let Some(reason) = &target.refused
        {
            return Decision::NotAFile(written, reason);
        }
        let mut uncertain = false;
        for rule in &self.deny {
            match forbids(rule, call) {
                Fit::Yes => return Decision::Forbidden(rule),
                Fit::Maybe => uncertain = true,
                Fit::No => {}
            }
        }
        if !uncertain && (mode == Mode::Auto || self.permits(call)) {
            return Decision::Run;
        }
        match mode {
            Mode::Ask | Mode::Auto => Decision::Ask,
            Mode::Deny => Decision::NotPermitted,
        }
    }

    fn permits(&self, call: &ToolCall<'_>) -> bool {
        let rules = || self.allow.iter().filter(|rule| rule.tool.is(call.tool));
        if rules().any(|rule| matches!(rule.scope, Scope::All)) {
            return true;
        }
        // Patterns describe how built-in tools use their arguments; other tools may use them differently.
        if call.maker == Maker::Other {
            return false;
        }
        match &call.subject {
            Subject::Arguments => false,
            Subject::Command { script, .. } => {
                let patterns = rules().filter_map(|rule| match &rule.scope {
                    Scope::Commands(pattern) => Some(pattern),
                    _ => None,
                });
                all_fit(script, patterns)
            }
            Subject::Path { target, .. } => {
                let reads = matches!(call.tool, "read" | "grep" | "find" | "ls");
                let permits = |rule: &Rule| match &rule.scope {
                    Scope::Paths(pattern) => pattern.permits(target),
                    _ => false,
                };
                (reads && target.is_inside()) || rules().any(permits)
            }
        }
    }
}

/// Checks whether a rule forbids a call. Arguments of tools from extensions are treated like those of built-in tools.
fn forbids(rule: &Rule, call: &ToolCall<'_>) -> Fit {
    if !rule.tool.is(call.tool) {
        return Fit::No;
    }
    match (&rule.scope, &call.subject) {
        (Scope::All, _) => Fit::Yes,
        (Scope::Commands(pattern), Subject::Command { script, .. }) => any_fits(script, pattern),
        (Scope::Paths(pattern), Subject::Path { target, .. }) => pattern.forbids(target),
        // `*(…)` does not apply to tools without a path.
        (Scope::Paths(_), _) if rule.tool == crate::rule::ToolName::Any => Fit::No,
        (Scope::Commands(_) | Scope::Paths(_), _) => Fit::Maybe,
    }
}
