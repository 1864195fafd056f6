//! Commands that answer a question and end.

mod completions;
mod databases;
mod doctor;
mod export;
mod extensions;
mod models;
mod packages;
mod profiles;
mod schema;
mod sessions;
mod timeline;
mod trust;
mod turns;

use std::io::Write;
use std::process::ExitCode;

use pinion_config::{FileImage, PreparedImage};

use self::packages::Verb;
pub(crate) use self::sessions::all_sessions;
use crate::cli::Action;
use crate::failure::Failure;
use crate::help::Topic;
use crate::nearest::nearest;
use crate::pinocchio::Verb as Prompting;
use crate::program::Program;

/// A command that answers a question and ends.
#[derive(Debug)]
pub(crate) enum Command {
    Export {
        input: String,
        output: Option<String>,
    },
    ListModels {
        search: Option<String>,
    },
    Sessions(Vec<String>),
    Packages(Verb, Vec<String>),
    Extensions(Vec<String>),
    Profiles(Vec<String>),
    Trust(Vec<String>),
    Schema(Vec<String>),
    Turns(Vec<String>),
    Timeline(Vec<String>),
    /// Many children, one report.
    Fleet(Vec<String>),
    /// `run --format`: one conversation in opencode's lines.
    Opencode(Vec<String>),
    Doctor,
    Completions(String),
}

/// The words that begin a command, for the nearest match and for completions.
const WORDS: &[&str] = &[
    "run-command",
    "commands",
    "hub",
    "clip",
    "invoke",
    "mcp",
    "sessions",
    "models",
    "install",
    "remove",
    "update",
    "list",
    "extensions",
    "profiles",
    "trust",
    "schema",
    "turns",
    "timeline",
    "fleet",
    "doctor",
    "completions",
    "help",
];

/// The command `arguments` name, if they name one.
pub(crate) fn parse(program: Program, arguments: &[String]) -> Result<Option<Action>, Failure> {
    let Some((word, rest)) = arguments.split_first() else {
        return Ok((program == Program::Pinocchio).then_some(Action::Help(Topic::RunCommand)));
    };
    if program == Program::Pinocchio {
        return pinocchio(word, rest, arguments).map(Some);
    }
    let wants_help = rest
        .iter()
        .any(|argument| argument == "--help" || argument == "-h");
    if let Some(verb) = Verb::from_word(word) {
        return Ok(Some(match wants_help {
            true => Action::Help(Topic::Packages),
            false => Action::Command(Command::Packages(verb, rest.to_vec())),
        }));
    }
    if program == Program::Pi {
        return Ok(None);
    }
    let command = match word.as_str() {
        "help" => return Ok(Some(Action::Help(Topic::Overview))),
        "run-command" => {
            return Ok(Some(Action::Pinocchio(Prompting::RunCommand(
                rest.to_vec(),
            ))));
        }
        "commands" => return Ok(Some(Action::Pinocchio(Prompting::Commands(rest.to_vec())))),
        "hub" => return Ok(Some(Action::Hub(rest.to_vec()))),
        "clip" => return Ok(Some(Action::Clip(rest.to_vec()))),
        "invoke" => return Ok(Some(Action::Invoke(rest.to_vec()))),
        "mcp" => return Ok(Some(Action::Mcp(rest.to_vec()))),
        "sessions" if wants_help => return Ok(Some(Action::Help(Topic::Sessions))),
        "trust" if wants_help => return Ok(Some(Action::Help(Topic::Trust))),
        "extensions" if wants_help => return Ok(Some(Action::Help(Topic::Extensions))),
        "extensions" => Command::Extensions(rest.to_vec()),
        "profiles" if wants_help => return Ok(Some(Action::Help(Topic::Profiles))),
        "profiles" => Command::Profiles(rest.to_vec()),
        "sessions" => Command::Sessions(rest.to_vec()),
        "models" => Command::ListModels {
            search: rest.first().cloned(),
        },
        "trust" => Command::Trust(rest.to_vec()),
        "schema" if wants_help => return Ok(Some(Action::Help(Topic::Schema))),
        "schema" => Command::Schema(rest.to_vec()),
        "turns" if wants_help => return Ok(Some(Action::Help(Topic::Turns))),
        "turns" => Command::Turns(rest.to_vec()),
        "timeline" if wants_help => return Ok(Some(Action::Help(Topic::Timeline))),
        "timeline" => Command::Timeline(rest.to_vec()),
        "fleet" if wants_help => return Ok(Some(Action::Help(Topic::Fleet))),
        "fleet" => Command::Fleet(rest.to_vec()),
        // Without a format it is a prompt that begins with this word.
        "run" if rest.iter().any(|word| word.starts_with("--format")) => {
            return Ok(Some(match wants_help {
                true => Action::Help(Topic::Run),
                false => Action::Command(Command::Opencode(rest.to_vec())),
            }));
        }
        "doctor" => Command::Doctor,
        "completions" => match rest {
            [shell] => Command::Completions(shell.clone()),
            _ => return Err(Failure::usage("Usage: pinion completions bash|zsh|fish")),
        },
        // One lower-case word that is almost a command is a slip, not a prompt.
        slip if rest.is_empty() && slip.chars().all(|c| c.is_ascii_lowercase()) => {
            return match nearest(slip, WORDS.iter().copied()) {
                Some(nearest) => Err(Failure::usage(format!(
                    "Error: unknown command {slip}. Did you mean {nearest}? To say it to the agent, use -p {slip}."
                ))),
                None => Ok(None),
            };
        }
        _ => return Ok(None),
    };
    Ok(Some(Action::Command(command)))
}

/// What the command line of Pinocchio asks: its verbs, or a command of a repository.
fn pinocchio(word: &str, rest: &[String], all: &[String]) -> Result<Action, Failure> {
    let wants_help = rest
        .iter()
        .any(|argument| argument == "--help" || argument == "-h");
    Ok(match word {
        "run-command" => Action::Pinocchio(Prompting::RunCommand(rest.to_vec())),
        "commands" => Action::Pinocchio(Prompting::Commands(rest.to_vec())),
        "profiles" if wants_help => Action::Help(Topic::Profiles),
        "profiles" => Action::Command(Command::Profiles(rest.to_vec())),
        "turns" if wants_help => Action::Help(Topic::Turns),
        "turns" => Action::Command(Command::Turns(rest.to_vec())),
        "timeline" if wants_help => Action::Help(Topic::Timeline),
        "timeline" => Action::Command(Command::Timeline(rest.to_vec())),
        "help" => Action::Pinocchio(Prompting::Help(rest.to_vec())),
        "--help" | "-h" => Action::Help(Topic::RunCommand),
        "--version" => Action::Version,
        _ => Action::Pinocchio(Prompting::Named(all.to_vec())),
    })
}

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Export { input, output } => export::run(&input, output),
        Command::ListModels { search } => models::run(search.as_deref()),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Packages(verb, arguments) => packages::run(verb, &arguments),
        Command::Extensions(arguments) => extensions::run(&arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Turns(arguments) => turns::run(&arguments),
        Command::Timeline(arguments) => timeline::run(&arguments),
        Command::Fleet(arguments) => crate::fleet::run(&arguments),
        Command::Opencode(arguments) => crate::modes::opencode(arguments),
        Command::Doctor => doctor::run(),
        Command::Completions(shell) => completions::run(&shell),
    }
}

/// Prints help.
pub(crate) fn help(topic: Topic) -> Result<ExitCode, Failure> {
    out(topic.text())
}

/// Prints the version.
pub(crate) fn version() -> Result<ExitCode, Failure> {
    out(concat!(env!("CARGO_PKG_VERSION"), "\n"))
}

/// Prints data. A reader that has gone away is no error of ours.
pub(crate) fn out(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Makes an image on the command line fit for a model.
pub(crate) fn prepare_image(image: FileImage) -> PreparedImage {
    match pinion_tools::prepare_image(image.bytes) {
        Ok((block, note)) => PreparedImage {
            block: Some(block),
            note,
        },
        Err(reason) => PreparedImage {
            block: None,
            note: Some(format!("[The image {reason}. It is left out.]")),
        },
    }
}
