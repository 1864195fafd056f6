//! The commands of `pinix` and `pinixd`, for links of these names. Any failure has exit code 1.

mod account;
mod chat;
mod config;
mod registry;
mod start;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use pinion_cli::pinix::{Link, PinixCommand};

use crate::commands::help;
use crate::failure::Failure;
use crate::program::Program;
use crate::verb::Verb;
use crate::{clip, hub, invoke, mcp};

/// The commands of pinix's own tables.
const VERBS: [&Verb; 17] = [
    &start::START,
    &start::FOREGROUND,
    &chat::VERB,
    &config::VERB,
    &registry::SEARCH,
    &registry::PUBLISH,
    &registry::TAGS,
    &account::LOGIN,
    &account::LOGOUT,
    &account::WHOAMI,
    &account::HUB_LOGIN,
    &account::HUB_LOGOUT,
    &account::HUB_WHOAMI,
    &account::REGISTER,
    &account::REGISTRY_LOGIN,
    &account::REGISTRY_LOGOUT,
    &account::REGISTRY_WHOAMI,
];

/// Runs a command line.
pub(crate) fn run(link: Link, arguments: &[String]) -> Result<ExitCode, Failure> {
    let command = link.command(arguments);
    let done = command.map_err(Failure::failed).and_then(run_command);
    // Neither distinguishes a wrong command line from a failure.
    done.map_err(|failure| {
        let failure = failure.for_program(Program::Pinocchio);
        failure.reworded(|message| link.reword(message))
    })
}

fn run_command(command: PinixCommand) -> Result<ExitCode, Failure> {
    match command {
        PinixCommand::Help(place) => help(&place),
        PinixCommand::Version => crate::commands::version_number(),
        PinixCommand::Own(command, arguments) => {
            let mut verbs = VERBS.iter();
            let verb = verbs.find(|verb| std::ptr::eq(verb.command, command));
            match verb {
                Some(verb) => verb.run(&arguments),
                None => Err(Failure::failed(format!(
                    "unknown command {}.",
                    command.name
                ))),
            }
        }
        PinixCommand::Hub(arguments) => hub::GROUP.run(&arguments),
        PinixCommand::Clip(arguments) => clip::GROUP.run(&arguments),
        PinixCommand::ClipList(arguments) => clip::LIST_IN_TABS.run(&arguments),
        PinixCommand::ClipInfo(arguments) => clip::INFO.run(&arguments),
        PinixCommand::Mcp(arguments) => mcp::SERVE.run(&arguments),
        PinixCommand::Invoke(arguments) => invoke::VERB.run(&arguments),
        PinixCommand::InvokeWithStdin(arguments) => invoke::VERB.run_with(&arguments, piped()?),
    }
}

/// Returns the text on standard input; `None` if it is a terminal, open but silent, or empty.
fn piped() -> Result<Option<String>, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() || !crate::stdin::is_readable(crate::stdin::FIRST_BYTE) {
        return Ok(None);
    }
    let mut text = String::new();
    stdin.read_to_string(&mut text)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
