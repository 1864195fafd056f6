//! The policy: what is permitted, what is forbidden, and what becomes of the rest.

use std::time::Duration;

use pinion_agent::Maker;

use crate::call::{Call, Subject};
use crate::command::{Fit, all_fit, any_fits};
use crate::rule::{Rule, Scope};

/// What becomes of a call that no rule speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Somebody is asked.
    Ask,
    /// It is made.
    Auto,
    /// It is not made.
    Deny,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Auto, Self::Deny];

    /// Its name in flags and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Rules, and what becomes of calls they do not speak about.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What becomes of the rest.
    pub mode: Mode,
    /// How long somebody has to answer.
    pub patience: Duration,
    /// Calls that are made.
    pub allow: Vec<Rule>,
    /// Calls that are never made, whatever else is said.
    pub deny: Vec<Rule>,
}

/// What is decided about a call.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    Run,
    Ask,
    /// A rule forbids it.
    Forbidden(&'a Rule),
    /// Nothing permits it, and nobody is to be asked.
    NotPermitted,
    /// Its path leads to what no tool opens: how it is written, and why.
    NotAFile(&'a str, &'a str),
}

impl Policy {
    pub(crate) fn decide<'a>(&'a self, call: &'a Call<'_>) -> Decision<'a> {
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
        if !uncertain && (self.mode == Mode::Auto || self.permits(call)) {
            return Decision::Run;
        }
        match self.mode {
            Mode::Ask | Mode::Auto => Decision::Ask,
            Mode::Deny => Decision::NotPermitted,
        }
    }

    fn permits(&self, call: &Call<'_>) -> bool {
        let rules = || self.allow.iter().filter(|rule| rule.tool.is(call.tool));
        if rules().any(|rule| matches!(rule.scope, Scope::All)) {
            return true;
        }
        // A pattern speaks about what our own tools do with their arguments.
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

/// Whether a rule is about a call. Someone else's tool is taken at its word.
fn forbids(rule: &Rule, call: &Call<'_>) -> Fit {
    if !rule.tool.is(call.tool) {
        return Fit::No;
    }
    match (&rule.scope, &call.subject) {
        (Scope::All, _) => Fit::Yes,
        (Scope::Commands(pattern), Subject::Command { script, .. }) => any_fits(script, pattern),
        (Scope::Paths(pattern), Subject::Path { target, .. }) => pattern.forbids(target),
        // `*(…)` says nothing about tools that take no path.
        (Scope::Paths(_), _) if rule.tool == crate::rule::ToolName::Any => Fit::No,
        (Scope::Commands(_) | Scope::Paths(_), _) => Fit::Maybe,
    }
}
