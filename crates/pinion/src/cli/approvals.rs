//! The flags that decide about tool calls: `--approve MODE`, `--allow`, `--deny`, `--approve-timeout`.
//!
//! pi has `--approve` without a value, for trusting a project. Called as `pi`, the value must be joined with
//! `=` and there are no other flags, so that its command lines mean what they always did.

use std::time::Duration;

use pinion_approval::{Mode, Origin, Rule};

use super::Parser;
use crate::approvals::{LONGEST_PATIENCE, patience};
use crate::failure::Failure;
use crate::program::Program;

/// What the flags say about tool calls.
#[derive(Debug, Default, Clone)]
pub(crate) struct ApprovalFlags {
    pub mode: Option<Mode>,
    pub patience: Option<Duration>,
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
}

impl Parser {
    /// `--approve` alone trusts the project; with a mode it decides about tool calls.
    pub(super) fn approve(&mut self) -> Result<(), Failure> {
        let may_have_value = self.attached || self.program == Program::Pinion;
        let next = self.rest.front().filter(|_| may_have_value);
        let mode = next.and_then(|next| Mode::named(next));
        match (mode, next) {
            (Some(mode), _) => {
                self.rest.pop_front();
                self.flags.approvals.mode = Some(mode);
            }
            (None, Some(other)) if self.attached && self.program == Program::Pinion => {
                return Err(Failure::usage(format!(
                    "Error: --approve knows no \"{other}\". Use --approve=ask, auto or deny to decide about tool calls, or --approve alone to trust this project."
                )));
            }
            (None, _) => self.flags.trust = Some(true),
        }
        Ok(())
    }

    /// The other flags.
    pub(super) fn approvals(&mut self, flag: &str) -> Result<(), Failure> {
        let value = self.value(flag)?;
        let approvals = &mut self.flags.approvals;
        if flag == "--approve-timeout" {
            let patience = value.parse().ok().and_then(patience);
            let patience = patience.ok_or_else(|| {
                Failure::usage(format!(
                    "Error: --approve-timeout takes seconds, from 1 to {LONGEST_PATIENCE}, not \"{value}\"."
                ))
            })?;
            approvals.patience = Some(patience);
            return Ok(());
        }
        let rule = Rule::parse(&value, Origin::Flag)
            .map_err(|error| Failure::usage(format!("Error: {flag}: {error}.")))?;
        match flag {
            "--allow" => approvals.allow.push(rule),
            _ => approvals.deny.push(rule),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Flags, parse};
    use super::*;

    fn flags(program: Program, arguments: &[&str]) -> Result<Flags, Failure> {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        match parse(program, arguments)? {
            Action::Run(flags) => Ok(*flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn approve_alone_trusts_and_with_a_mode_decides_about_calls() {
        for (program, arguments, trust, mode, messages) in [
            (
                Program::Pinion,
                &["--approve", "hello"][..],
                true,
                None,
                &["hello"][..],
            ),
            (
                Program::Pinion,
                &["--approve", "ask"],
                false,
                Some(Mode::Ask),
                &[],
            ),
            (
                Program::Pinion,
                &["--approve=deny", "x"],
                false,
                Some(Mode::Deny),
                &["x"],
            ),
            (
                Program::Pinion,
                &["--approve", "--approve", "auto"],
                true,
                Some(Mode::Auto),
                &[],
            ),
            (Program::Pi, &["--approve", "ask"], true, None, &["ask"]),
            (
                Program::Pi,
                &["--approve=ask", "x"],
                false,
                Some(Mode::Ask),
                &["x"],
            ),
        ] {
            let flags = flags(program, arguments).unwrap();
            assert_eq!(flags.trust, trust.then_some(true), "{arguments:?}");
            assert_eq!(flags.approvals.mode, mode, "{arguments:?}");
            assert_eq!(flags.messages, messages, "{arguments:?}");
        }
    }

    #[test]
    fn rules_are_repeated_and_stay_with_extensions_when_called_as_pi() {
        let arguments = [
            "--allow",
            "bash(git status)",
            "--allow=read",
            "--deny",
            "bash(rm *)",
        ];
        let ours = flags(Program::Pinion, &arguments).unwrap();
        let texts: Vec<&str> = ours.approvals.allow.iter().map(Rule::text).collect();
        assert_eq!(texts, ["bash(git status)", "read"]);
        assert_eq!(ours.approvals.deny.len(), 1);
        let theirs = flags(Program::Pi, &arguments).unwrap();
        assert!(theirs.approvals.allow.is_empty());
        assert_eq!(theirs.unknown.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (arguments, words) in [
            (&["--allow", "bash(git; rm)"][..], "\"bash(git; rm)\""),
            (&["--deny", "bash(rm"], "does not end with"),
            (&["--approve=yes"], "Use --approve=ask, auto or deny"),
            (&["--approve-timeout", "0"], "from 1 to 86400"),
            (&["--approve-timeout", "soon"], "not \"soon\""),
        ] {
            let failure = flags(Program::Pinion, arguments).unwrap_err();
            assert!(
                format!("{failure:?}").contains(&words.replace('"', "\\\"")),
                "{failure:?}"
            );
        }
    }
}
