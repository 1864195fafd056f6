//! Commands that print an answer and exit.

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

use pinion_config::{FileImage, PreparedImage, TrustFlag};
use pinion_spelling::nearest;

pub(crate) use self::sessions::all_sessions;
use crate::cli::Action;
use crate::failure::Failure;
use crate::help::{self, Topic};
use crate::pinocchio::Verb as Prompting;
use crate::program::Program;
use crate::verb::{ALL_FLAGS, Group, Line, Verb};
use crate::{clip, fleet, hub, invoke, mcp};

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

/// The command of a first word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    One(&'static Verb),
    Several(&'static Group),
}

impl Entry {
    /// Runs the command with the arguments after the first word.
    pub fn run(self, arguments: &[String]) -> Result<ExitCode, Failure> {
        match self {
            Self::One(verb) => verb.run(arguments),
            Self::Several(group) => group.run(arguments),
        }
    }
}

const HELP: Verb = Verb {
    name: "help",
    flags: &[],
    raw_after: ALL_FLAGS,
    help: help::HELP,
    run: explain,
};

/// Every command except those of command files, in the order of the help.
const ENTRIES: &[(&str, Entry)] = &[
    ("hub", Entry::Several(&hub::GROUP)),
    ("clip", Entry::Several(&clip::GROUP)),
    ("invoke", Entry::One(&invoke::VERB)),
    ("mcp", Entry::One(&mcp::VERB)),
    ("sessions", Entry::Several(&sessions::GROUP)),
    ("models", Entry::One(&models::VERB)),
    ("install", Entry::One(&packages::INSTALL)),
    ("remove", Entry::One(&packages::REMOVE)),
    ("uninstall", Entry::One(&packages::REMOVE)),
    ("update", Entry::One(&packages::UPDATE)),
    ("list", Entry::One(&packages::LIST)),
    ("extensions", Entry::Several(&extensions::GROUP)),
    ("profiles", Entry::Several(&profiles::GROUP)),
    ("trust", Entry::One(&trust::VERB)),
    ("schema", Entry::One(&schema::VERB)),
    ("turns", Entry::Several(&turns::GROUP)),
    ("timeline", Entry::Several(&timeline::GROUP)),
    ("fleet", Entry::Several(&fleet::GROUP)),
    ("doctor", Entry::One(&doctor::VERB)),
    ("completions", Entry::One(&completions::VERB)),
    ("help", Entry::One(&HELP)),
];

/// Commands that pi has too.
const OF_PI: &[&str] = &["install", "remove", "uninstall", "update", "list"];
/// Commands that Pinocchio has too.
const OF_PINOCCHIO: &[&str] = &["profiles", "turns", "timeline"];
/// Commands that run prompts stored in files.
const PROMPTING: &[&str] = &["run-command", "commands"];

/// Returns the words that begin a command, for the nearest match and for completions.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    let entries = ENTRIES.iter().map(|(word, _)| *word);
    PROMPTING.iter().copied().chain(entries)
}

fn entry(program: Program, word: &str) -> Option<Entry> {
    let has = match program {
        Program::Pinion => true,
        Program::Pi => OF_PI.contains(&word),
        Program::Pinocchio => OF_PINOCCHIO.contains(&word),
    };
    let found = ENTRIES.iter().find(|(name, _)| *name == word);
    found.filter(|_| has).map(|(_, entry)| *entry)
}

fn is_help(word: &String) -> bool {
    word == "--help" || word == "-h"
}

/// Returns the command that `arguments` name, if they name one.
pub(crate) fn parse(program: Program, arguments: &[String]) -> Option<Action> {
    let Some((word, rest)) = arguments.split_first() else {
        return (program == Program::Pinocchio).then_some(Action::Help(Topic::RunCommand));
    };
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
        (Program::Pinion, "run") if rest.iter().any(is_help) => Some(Action::Help(Topic::Run)),
        (Program::Pinion, "run") if rest.iter().any(|word| word.starts_with("--format")) => {
            Some(Action::Opencode(rest.to_vec()))
        }
        (Program::Pinion, _) => None,
        (Program::Pinocchio, "help") => prompting(Prompting::Help, rest),
        (Program::Pinocchio, "--help" | "-h") => Some(Action::Help(Topic::RunCommand)),
        (Program::Pinocchio, "--version") => Some(Action::Version),
        (Program::Pinocchio, _) => prompting(Prompting::Named, arguments),
    }
}

/// `help COMMAND`: the same as `COMMAND --help`.
fn explain(line: &Line) -> Result<ExitCode, Failure> {
    let Some((word, more)) = line.words.split_first() else {
        return help(Topic::Overview);
    };
    if let Some(entry) = entry(Program::Pinion, word) {
        let mut arguments = more.to_vec();
        arguments.push("--help".to_owned());
        return entry.run(&arguments);
    }
    match word.as_str() {
        "run-command" => help(Topic::RunCommand),
        "commands" => help(Topic::Commands),
        "run" => help(Topic::Run),
        _ => Err(match nearest(word, words()) {
            Some(nearest) => line.wrong(&format!(
                "unknown command {word:?}, did you mean `pinion help {nearest}`"
            )),
            None => line.wrong(&format!("unknown command {word:?}")),
        }),
    }
}

/// Reads the flags `--trust` and `--no-trust` of a command.
fn trust_flag(line: &Line) -> Result<TrustFlag, Failure> {
    match (line.has("--trust"), line.has("--no-trust")) {
        (true, true) => Err(line.wrong("--trust and --no-trust exclude each other")),
        (true, false) => Ok(TrustFlag::Approve),
        (false, true) => Ok(TrustFlag::Refuse),
        (false, false) => Ok(TrustFlag::Unset),
    }
}

/// Runs a flag that prints an answer.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Export { input, output } => export::run(&input, output),
        Command::ListModels { search } => models::list(search.as_deref()),
    }
}

pub(crate) fn help(topic: Topic) -> Result<ExitCode, Failure> {
    out(topic.text())
}

pub(crate) fn version() -> Result<ExitCode, Failure> {
    out(concat!(env!("CARGO_PKG_VERSION"), "\n"))
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
