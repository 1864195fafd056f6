//! The flags for the approval of tool calls: `--approve MODE`, `--allow`, `--deny`, `--approve-timeout`.
//!
//! In pi, `--approve` trusts the project and takes no value. Under the name `pi` it means that, unless a mode is joined
//! to it with `=`, and the other flags do not exist; under any other name `--approve` always needs a mode.

use std::time::Duration;

use pinion_approval::{MAX_ANSWER_TIMEOUT, Mode, Origin, Rule, answer_timeout};
use pinion_cli::{Problem, PromptLine};

use super::flags::unknown_value;
use crate::failure::Failure;

const MODES: &str = "ask, auto or deny";
const TRUST: &str = "To trust this project for this run, use --trust.";

/// The flags for the approval of tool calls.
#[derive(Debug, Default, Clone)]
pub(crate) struct ApprovalFlags {
    pub mode: Option<Mode>,
    pub answer_timeout: Option<Duration>,
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
}

impl ApprovalFlags {
    /// Sets the value of `--approve`, `--allow`, `--deny` or `--approve-timeout`.
    pub(super) fn set(&mut self, flag: &str, value: &str) -> Result<(), Failure> {
        match flag {
            "--approve" => self.mode = Some(mode(value)?),
            "--approve-timeout" => {
                let timeout = value.parse().ok().and_then(answer_timeout);
                self.answer_timeout = Some(timeout.ok_or_else(|| {
                    Failure::usage(format!(
                        "--approve-timeout takes seconds, from 1 to {MAX_ANSWER_TIMEOUT}, not \"{value}\"."
                    ))
                })?);
            }
            "--allow" => self.allow.push(rule(flag, value)?),
            _ => self.deny.push(rule(flag, value)?),
        }
        Ok(())
    }
}

fn mode(text: &str) -> Result<Mode, Failure> {
    Mode::named(text)
        .ok_or_else(|| unknown_value("--approve", text, &Mode::ALL.map(Mode::name)).hint(TRUST))
}

fn rule(flag: &str, text: &str) -> Result<Rule, Failure> {
    let wrong = |error| Failure::usage(format!("{flag}: {error}."));
    Rule::parse(text, Origin::Flag).map_err(wrong)
}

/// Returns the failure for a line that cannot be read. `--approve` without a mode explains what else may be meant.
pub(super) fn problem(problem: Problem) -> Failure {
    match &problem {
        Problem::MissingValue { flag } if flag == "--approve" => {
            Failure::usage(format!("--approve needs a mode: {MODES}.")).hint(TRUST)
        }
        Problem::FlagAsValue { flag, value } if flag == "--approve" => match mode(value) {
            Err(failure) => failure,
            Ok(_) => problem.into(),
        },
        _ => problem.into(),
    }
}

/// Refuses `--no-approve` where the table does not have it: it exists only under the name `pi`.
pub(super) fn check_unknown(line: &PromptLine) -> Result<(), Failure> {
    if line
        .unknown
        .iter()
        .any(|flag| flag.written == "--no-approve")
    {
        return Err(Failure::usage("unknown option --no-approve.").hint(
            "To distrust this project for this run, use --no-trust; \
             without --approve, no tool call is asked about.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Flags, parse};
    use super::*;
    use crate::program::Program;

    fn flags(program: Program, arguments: &[&str]) -> Result<Flags, Failure> {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        match parse(program, arguments)?.0 {
            Action::Run(flags) => Ok(*flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn approve_needs_a_mode_and_only_pi_trusts_with_it() {
        type Case<'a> = (
            Program,
            &'a [&'a str],
            Option<bool>,
            Option<Mode>,
            &'a [&'a str],
        );
        let cases: &[Case<'_>] = &[
            (
                Program::Pinion,
                &["--approve", "ask"],
                None,
                Some(Mode::Ask),
                &[],
            ),
            (
                Program::Pinion,
                &["--approve=deny", "x"],
                None,
                Some(Mode::Deny),
                &["x"],
            ),
            (Program::Pinion, &["--trust", "x"], Some(true), None, &["x"]),
            (
                Program::Pinion,
                &["--no-trust", "x"],
                Some(false),
                None,
                &["x"],
            ),
            (
                Program::Pi,
                &["--approve", "ask"],
                Some(true),
                None,
                &["ask"],
            ),
            (
                Program::Pi,
                &["--approve", "aks"],
                Some(true),
                None,
                &["aks"],
            ),
            (
                Program::Pi,
                &["--no-approve", "x"],
                Some(false),
                None,
                &["x"],
            ),
            (
                Program::Pi,
                &["--approve=ask", "x"],
                None,
                Some(Mode::Ask),
                &["x"],
            ),
        ];
        for (program, arguments, trust, mode, messages) in cases {
            let flags = flags(*program, arguments).unwrap();
            assert_eq!(flags.trust, *trust, "{arguments:?}");
            assert_eq!(flags.approvals.mode, *mode, "{arguments:?}");
            assert_eq!(flags.prompt.messages, *messages, "{arguments:?}");
        }
        let failure = flags(Program::Pi, &["--approve=aks"]).unwrap_err();
        assert!(
            failure.to_string().contains("Did you mean ask?"),
            "{failure}"
        );
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
        assert_eq!(theirs.prompt.unknown.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (arguments, words) in [
            (&["--allow", "bash(git; rm)"][..], "\"bash(git; rm)\""),
            (&["--deny", "bash(rm"], "does not end with"),
            (&["--approve=yes"], "Use ask, auto or deny. To trust"),
            (
                &["--approve=aks"],
                "unknown value \"aks\" for --approve. Did you mean ask?",
            ),
            (&["--approve", "Ask"], "Did you mean ask?"),
            (&["--approve", "--print"], "unknown value \"--print\""),
            (&["--approve"], "--approve needs a mode"),
            (&["--no-approve"], "use --no-trust"),
            (&["--approve-timeout", "0"], "from 1 to 86400"),
            (&["--approve-timeout", "soon"], "not \"soon\""),
        ] {
            let failure = flags(Program::Pinion, arguments).unwrap_err();
            assert!(failure.to_string().contains(words), "{failure}");
        }
    }
}
