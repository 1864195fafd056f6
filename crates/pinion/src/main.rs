//! The binary: flags, wiring, exit codes. The other crates contain everything else.

#[macro_use]
mod stderr;

mod approvals;
mod choices;
mod cli;
mod clip;
mod clip_tools;
mod cluster;
mod commands;
mod engine;
mod extensions;
mod failure;
mod fleet;
mod hub;
mod invoke;
mod log;
mod mcp;
mod memory;
mod modes;
mod pinix;
mod pinocchio;
mod preferences;
mod program;
mod sandbox;
mod stdin;
mod surroundings;
mod verb;

use std::process::ExitCode;

use pinion_process::{descriptors, reader, runtime, signals};

use crate::cli::{Action, Mode};
use crate::failure::Failure;
use crate::program::Program;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let link = pinion_cli::pinix::Link::from_name(name.as_deref());
    let program = Program::from_name(name);
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if arguments.first().map(String::as_str) == Some(pinion_process::GUARDIAN_ARGUMENT) {
        pinion_process::guardian_main();
    }
    if arguments.first().map(String::as_str) == Some(pinion_filter::FILTER_ARGUMENT) {
        descriptors::limit_memory(pinion_filter::MEMORY_LIMIT);
        return pinion_filter::filter_main(pinion_text::harmless);
    }
    if let [first, rest @ ..] = arguments.as_slice()
        && first == pinion_cli::complete::ARGUMENT
    {
        return commands::complete(rest);
    }
    signals::survive_file_limits();
    let done = match link {
        Some(link) => pinix::run(link, &arguments),
        None => run(program, arguments),
    };
    let code = match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    };
    pinion_llm::finish_renewals();
    pinion_telemetry::finish();
    pinion_log::finish();
    code
}

fn run(program: Program, arguments: Vec<String>) -> Result<ExitCode, Failure> {
    let arguments = match program {
        Program::Pinion => log::take_flags(program, arguments)?,
        Program::Pi | Program::Pinocchio => arguments,
    };
    let (action, log_flags) = cli::parse(program, arguments)?;
    match &action {
        // They read further flags themselves.
        Action::Entry(..) | Action::Opencode(_) | Action::Acp(_) => {}
        Action::Pinocchio(verb) if verb.lists_commands() => {}
        _ => log::start(log_flags).map_err(|failure| failure.for_program(program))?,
    }
    match action {
        Action::Help(place) => commands::help(&place),
        Action::Version(form) => commands::version(program, form),
        Action::Command(command) => {
            commands::run(command).map_err(|failure| failure.for_program(program))
        }
        Action::Entry(entry, arguments) => entry
            .run(&arguments)
            .map_err(|failure| failure.for_program(program)),
        Action::Opencode(arguments) => modes::opencode(arguments),
        Action::Acp(arguments) => modes::acp(arguments),
        Action::Setup => commands::setup::run(),
        Action::Pinocchio(verb) => pinocchio::run(program, verb),
        Action::Run(mut flags) => {
            let stray = flags.prompt.check_words();
            stray.map_err(Failure::usage)?;
            flags.decide_unknown(program)?;
            let chats = flags.wants_chat();
            flags.demo = chats && flags.mode == Mode::Text;
            if flags.resume && !chats {
                return Err(cli::nothing_to_pick_from(program));
            }
            match flags.mode {
                Mode::Text if chats => modes::chat(program, flags),
                Mode::Rpc if flags.multi_session => modes::multi_session(program, flags),
                Mode::Rpc => modes::rpc(program, flags),
                Mode::Json => modes::json(program, flags),
                Mode::Text => modes::print(program, flags),
            }
        }
    }
}
