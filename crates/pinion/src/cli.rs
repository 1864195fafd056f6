//! The command line of pi, which pinion accepts too.

mod approvals;
mod flags;
mod unknown;

use pinion_cli::{Lexer, Place, PromptLine, tables};

pub(crate) use self::approvals::ApprovalFlags;
pub(crate) use self::flags::{Flags, Mode};
use crate::commands::{self, Command, VersionForm};
use crate::failure::Failure;
use crate::log::LogFlags;
use crate::pinocchio::Verb;
use crate::program::Program;
use crate::verb::Entry;

/// The action that the command line requests.
#[derive(Debug)]
pub(crate) enum Action {
    Help(Place),
    Version(VersionForm),
    Command(Command),
    /// A command, and the arguments after its first word.
    Entry(Entry, Vec<String>),
    /// `run --format`: one conversation in opencode's lines.
    Opencode(Vec<String>),
    /// `acp`: many sessions for an editor.
    Acp(Vec<String>),
    /// `--setup`: save the key of a provider.
    Setup,
    Pinocchio(Verb),
    Run(Box<Flags>),
}

/// Parses the command line. The flags of the log are those among the flags of a run; a command reads its own.
pub(crate) fn parse(
    program: Program,
    arguments: Vec<String>,
) -> Result<(Action, LogFlags), Failure> {
    if let Some(command) = commands::parse(program, &arguments) {
        return Ok((command, LogFlags::default()));
    }
    let mut lexer = Lexer::new(program.table(), arguments);
    if program == Program::Pinion {
        lexer = lexer.refusing_flags_as_values();
    }
    read(program, lexer).map_err(|failure| failure.for_program(program))
}

/// Parses the arguments of `run --format json`.
pub(crate) fn parse_run(arguments: Vec<String>) -> Result<Flags, Failure> {
    let lexer = Lexer::new(&tables::prompts::RUN, arguments).refusing_flags_as_values();
    let line = PromptLine::read(lexer).map_err(approvals::problem)?;
    Flags::read(Program::Pinion, line)
}

/// Parses the arguments of `acp`.
pub(crate) fn parse_acp(arguments: Vec<String>) -> Result<Flags, Failure> {
    let lexer = Lexer::new(&tables::acp::ACP, arguments).refusing_flags_as_values();
    let line = PromptLine::read(lexer).map_err(approvals::problem)?;
    Flags::read(Program::Pinion, line)
}

fn read(program: Program, lexer: Lexer) -> Result<(Action, LogFlags), Failure> {
    let line = PromptLine::read(lexer).map_err(approvals::problem)?;
    let requested = line.flags().fold(None, |before, (name, value)| {
        let value = value.map(str::to_owned);
        match (name, value) {
            ("--help", _) => Some(Action::Help(Place::root(program.table()))),
            ("--version", _) => Some(Action::Version(VersionForm::Text)),
            ("--setup", _) => Some(Action::Setup),
            ("--list-models", search) => Some(Action::Command(Command::ListModels { search })),
            ("--export", Some(input)) => {
                let output = line.messages.first().cloned();
                Some(Action::Command(Command::Export { input, output }))
            }
            _ => before,
        }
    });
    let flags = Flags::read(program, line)?;
    let log = flags.log.clone();
    let action = requested.unwrap_or_else(|| Action::Run(Box::new(flags)));
    Ok((action, log))
}

/// Returns the failure for `--resume` without a terminal to show the list on.
pub(crate) fn nothing_to_pick_from(program: Program) -> Failure {
    Failure::usage("--resume needs a terminal to pick from.")
        .hint("Use --continue, or --session with an id from `pinion sessions list`.")
        .bare()
        .for_program(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(program: Program, arguments: &[&str]) -> Result<Action, Failure> {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        parse(program, arguments).map(|(action, _)| action)
    }

    #[test]
    fn an_unknown_short_flag_names_the_nearest_one() {
        let failure = parsed(Program::Pinion, &["-model"]).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("Did you mean --model?"), "{text}");
    }

    #[test]
    fn the_last_action_replaces_the_run() {
        let action = parsed(Program::Pinion, &["-h", "x", "--version"]);
        assert!(matches!(action, Ok(Action::Version(_))), "{action:?}");
        for (arguments, file) in [
            (&["--export", "a.jsonl", "b.html"][..], Some("b.html")),
            (&["--export=a.jsonl"], None),
        ] {
            match parsed(Program::Pi, arguments) {
                Ok(Action::Command(Command::Export { input, output })) => {
                    assert_eq!((input.as_str(), output.as_deref()), ("a.jsonl", file));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
