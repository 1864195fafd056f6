//! Commands that print an answer and exit.

mod auth;
mod complete;
mod completions;
mod config;
mod databases;
mod doctor;
mod export;
mod extensions;
mod login;
mod models;
mod packages;
mod profiles;
mod schema;
mod sessions;
pub(crate) mod setup;
mod timeline;
mod trust;
mod turns;
mod version;

use std::io::Write;
use std::process::ExitCode;

use pinion_cli::{Place, tables};
use pinion_config::{FileImage, PreparedImage, TrustFlag};
use pinion_text::nearest;

pub(crate) use self::complete::complete;
pub(crate) use self::version::{VersionForm, print as version, print_number as version_number};
use crate::cli::Action;
use crate::failure::Failure;
use crate::pinocchio::Verb as Prompting;
use crate::program::Program;
use crate::verb::{Entry, Line, Verb};
use crate::{clip, cluster, fleet, hub, invoke, mcp, sandbox};

/// A flag that prints an answer and exits.
#[derive(Debug)]
pub(crate) enum Command {
    Export {
        input: String,
        output: Option<String>,
    },
    ListModels {
        search: Option<String>,
    },
}

const HELP: Verb = Verb::new("pinion", &tables::commands::HELP, explain);

/// Every command except those of command files.
const ENTRIES: &[Entry] = &[
    Entry::Several(&hub::GROUP),
    Entry::Several(&cluster::GROUP),
    Entry::Several(&clip::GROUP),
    Entry::One(&invoke::VERB),
    Entry::Several(&mcp::GROUP),
    Entry::Several(&mcp::GROUP_OF_PI),
    Entry::One(&login::LOGIN),
    Entry::One(&login::LOGOUT),
    Entry::Several(&auth::GROUP),
    Entry::One(&config::VERB),
    Entry::Several(&sessions::GROUP),
    Entry::One(&models::VERB),
    Entry::One(&packages::INSTALL),
    Entry::One(&packages::REMOVE),
    Entry::One(&packages::UPDATE),
    Entry::One(&packages::LIST),
    Entry::Several(&extensions::GROUP),
    Entry::Several(&profiles::GROUP),
    Entry::One(&trust::VERB),
    Entry::One(&schema::VERB),
    Entry::Several(&turns::GROUP),
    Entry::Several(&timeline::GROUP),
    Entry::Several(&fleet::GROUP),
    Entry::One(&sandbox::VERB),
    Entry::One(&doctor::VERB),
    Entry::One(&completions::VERB),
    Entry::One(&completions::MAN),
    Entry::One(&HELP),
];

fn entry(program: Program, word: &str) -> Option<Entry> {
    let command = program.table().command(word)?;
    let mut entries = ENTRIES.iter().copied();
    entries.find(|entry| std::ptr::eq(entry.command(), command))
}

fn is_help(word: &String) -> bool {
    word == "--help" || word == "-h"
}

/// Reports whether the arguments are `--version` and `--json`.
fn is_version_as_json(arguments: &[String]) -> bool {
    let is_version = |word: &String| word == "--version" || word == "-v";
    matches!(arguments, [first, second] if is_version(first) && second == "--json" || first == "--json" && is_version(second))
}

/// Returns the command that `arguments` name, if they name one.
pub(crate) fn parse(program: Program, arguments: &[String]) -> Option<Action> {
    let Some((word, rest)) = arguments.split_first() else {
        return (program == Program::Pinocchio)
            .then_some(Action::Help(place(program, &["run-command"])));
    };
    if program == Program::Pinion && is_version_as_json(arguments) {
        return Some(Action::Version(VersionForm::Json));
    }
    if let Some(entry) = entry(program, word) {
        return Some(Action::Entry(entry, rest.to_vec()));
    }
    let prompting = |verb: fn(Vec<String>) -> Prompting, words: &[String]| {
        Some(Action::Pinocchio(verb(words.to_vec())))
    };
    match (program, word.as_str()) {
        (Program::Pi, _) => None,
        (_, "run-command") => prompting(Prompting::RunCommand, rest),
        (_, "commands") => prompting(Prompting::Commands, rest),
        (Program::Pinion, "acp") if rest.iter().any(is_help) => {
            Some(Action::Help(place(program, &["acp"])))
        }
        (Program::Pinion, "acp") => Some(Action::Acp(rest.to_vec())),
        (Program::Pinion, "run") if rest.iter().any(is_help) => {
            Some(Action::Help(place(program, &["run"])))
        }
        (Program::Pinion, "run") if rest.iter().any(|word| word.starts_with("--format")) => {
            Some(Action::Opencode(rest.to_vec()))
        }
        (Program::Pinion, _) => None,
        (Program::Pinocchio, "help") => prompting(Prompting::Help, rest),
        (Program::Pinocchio, "--help" | "-h") => {
            Some(Action::Help(place(program, &["run-command"])))
        }
        (Program::Pinocchio, "--version") => Some(Action::Version(VersionForm::Text)),
        (Program::Pinocchio, _) => prompting(Prompting::Named, arguments),
    }
}

/// Returns the command that these words of the program name.
pub(crate) fn place(program: Program, words: &[&str]) -> Place {
    Place::find(program.table(), words.iter().copied())
}

/// `help COMMAND`: the same as `COMMAND --help`.
fn explain(line: &Line) -> Result<ExitCode, Failure> {
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let found = place(Program::Pinion, &words);
    let known = found.name().split_whitespace().count();
    let Some(word) = words.get(known) else {
        return help(&found);
    };
    let above = found.name();
    let typed = format!("{above} {word}");
    let typed = typed.trim_start();
    Err(match nearest(word, found.command.words()) {
        Some(nearest) => {
            let meant = format!("{above} {nearest}");
            let meant = meant.trim_start();
            line.wrong(format!(
                "unknown command {typed:?}, did you mean `pinion help {meant}`"
            ))
        }
        None => line.wrong(format!("unknown command {typed:?}")),
    })
}

/// Reads the flags `--trust` and `--no-trust` of a command, which exclude each other.
fn trust_flag(line: &Line) -> TrustFlag {
    if line.has("--trust") {
        TrustFlag::Approve
    } else if line.has("--no-trust") {
        TrustFlag::Refuse
    } else {
        TrustFlag::Unset
    }
}

/// Runs a flag that prints an answer.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Export { input, output } => export::run(&input, output),
        Command::ListModels { search } => models::list(search.as_deref()),
    }
}

/// Prints the help of a command.
pub(crate) fn help(place: &Place) -> Result<ExitCode, Failure> {
    out(&pinion_cli::help::text(place))
}

/// Prints data to standard output. A reader that has gone away is not an error.
pub(crate) fn out(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prepares an image of the command line for a model.
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
