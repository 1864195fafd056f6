//! The command lines of `pinix` and `pinixd`, for links of these names: both the grouped form and the flat one before
//! it.
//!
//! The commands that they share with `pinion hub`, `clip` and `invoke` are implemented there; this module translates
//! the words that differ. Any failure has exit code 1.

mod account;
mod chat;
mod config;
mod registry;
mod start;

use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use pinion_cli::{Place, tables};

use crate::commands::out;
use crate::failure::Failure;
use crate::program::Program;
use crate::{clip, hub, invoke, mcp};

/// The link by which the program was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Pinix,
    Pinixd,
}

impl Link {
    /// Returns the link of a program name, if it is one of these.
    pub fn from_name(name: Option<&OsStr>) -> Option<Self> {
        match Path::new(name?).file_name()?.to_str()? {
            "pinix" => Some(Self::Pinix),
            "pinixd" => Some(Self::Pinixd),
            _ => None,
        }
    }
}

/// Runs a command line.
pub(crate) fn run(link: Link, arguments: &[String]) -> Result<ExitCode, Failure> {
    let done = match link {
        Link::Pinixd => pinixd(arguments),
        Link::Pinix => pinix(arguments),
    };
    // Neither distinguishes a wrong command line from a failure.
    done.map_err(|failure| {
        let failure = failure.for_program(Program::Pinocchio);
        failure.reworded(|message| hinted(link, message))
    })
}

/// Replaces pinion's commands in a message by the ones to type here.
fn hinted(link: Link, message: String) -> String {
    let message = message.replace("`pinion hub login", "`pinix login");
    let hint = message
        .split_once("See `pinion ")
        .and_then(|(before, rest)| Some((before, rest.split_once(" --help`")?)));
    let Some((before, (name, after))) = hint else {
        return message;
    };
    let typed = match (link, name.split_once(' ')) {
        (Link::Pinixd, _) => "pinixd".to_owned(),
        (_, Some(("hub", "serve" | "join"))) => "pinix start".to_owned(),
        (_, Some(("hub", word)) | Some(("clip", word @ "data"))) => format!("pinix {word}"),
        (_, Some(("clip", "show"))) => "pinix hub info".to_owned(),
        (_, Some(("clip", word))) => format!("pinix hub {word}"),
        _ => format!("pinix {name}"),
    };
    format!("{before}See `{typed} --help`{after}")
}

fn pinixd(arguments: &[String]) -> Result<ExitCode, Failure> {
    match arguments.first().map(String::as_str) {
        Some("--version" | "version") => crate::commands::version(),
        Some("help") => start::help(),
        Some("start" | "daemon") => start::foreground(&arguments[1..]),
        _ => start::foreground(arguments),
    }
}

/// The flags before the first word, and the rest.
struct Words<'a> {
    global: Vec<String>,
    secret: Vec<String>,
    rest: &'a [String],
}

impl<'a> Words<'a> {
    fn read(mut rest: &'a [String]) -> Result<Self, Failure> {
        let (mut global, mut secret) = (Vec::new(), Vec::new());
        while let Some((word, after)) = rest.split_first() {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            let into = match name {
                "--server" | "--auth-token" => &mut global,
                "--clip-token" => &mut secret,
                _ => break,
            };
            into.push(word.clone());
            rest = after;
            if !word.contains('=') {
                let (value, after) = rest.split_first().ok_or_else(|| {
                    Failure::failed(format!("Error: {name} needs a value after it."))
                })?;
                into.push(value.clone());
                rest = after;
            }
        }
        Ok(Self {
            global,
            secret,
            rest,
        })
    }

    /// Returns a command line of pinion with the given flags and the words after the first `skip`.
    fn ours(&self, words: &[&str], skip: usize) -> Vec<String> {
        let words = words.iter().map(ToString::to_string);
        let rest = self.rest.iter().skip(skip).cloned();
        words
            .chain(self.global.iter().cloned())
            .chain(rest)
            .collect()
    }
}

fn pinix(arguments: &[String]) -> Result<ExitCode, Failure> {
    let words = Words::read(arguments)?;
    let Some(first) = words.rest.first() else {
        return help(&Place::root(&tables::pinix::PINIX));
    };
    match first.as_str() {
        "help" | "--help" | "-h" => help(&Place::root(&tables::pinix::PINIX)),
        "--version" | "version" => crate::commands::version(),
        "start" => start::run(&words.rest[1..]),
        "daemon" => start::foreground(&words.rest[1..]),
        "stop" | "status" => hub::run(words.rest),
        "hub" => match words.rest.get(1).map(String::as_str) {
            None | Some("help" | "--help" | "-h") => {
                help(&Place::below("pinix", &tables::pinix::HUB))
            }
            Some(word) => {
                grouped(&words, word, 2).unwrap_or_else(|| Err(unknown(&format!("hub {word}"))))
            }
        },
        "invoke" => call(&words, 1),
        "data" => clip::run(&words.ours(&["data"], 1)),
        "config" => config::run(&words.rest[1..]),
        "registry" => registry::run(&words.rest[1..]),
        "search" | "publish" | "register" | "dist-tag" => registry::run(words.rest),
        "schedule" => schedule(&words),
        "chat" => chat::run(&words.ours(&[], 1)),
        "upgrade" => Err(Failure::failed(
            "Error: this program does not replace itself; install another version the way this one was installed.",
        )),
        "org" => Err(Failure::failed(
            "Error: there are no commands for organisations: a registry has pages for them, if it has organisations.",
        )),
        word => match grouped(&words, word, 1) {
            Some(done) => done,
            None if word.starts_with('-') => Err(unknown(word)),
            None => call(&words, 0),
        },
    }
}

fn help(place: &Place) -> Result<ExitCode, Failure> {
    out(&pinion_cli::help::text(place))
}

fn unknown(word: &str) -> Failure {
    Failure::failed(format!(
        "Error: unknown command {word}. See `pinix --help`."
    ))
}

/// Runs the commands that follow `hub`, or stand alone.
fn grouped(words: &Words<'_>, word: &str, skip: usize) -> Option<Result<ExitCode, Failure>> {
    let ours = |verb: &str| clip::run(&words.ours(&[verb], skip));
    Some(match word {
        "list" => clip::list_in_tabs(&words.ours(&[], skip)),
        "info" => clip::info(&words.ours(&[], skip)),
        "add" | "remove" | "update" | "bind" | "unbind" | "bindings" => ours(word),
        "logs" => match words.rest.iter().skip(skip).any(|it| !it.starts_with('-')) {
            true => ours("logs"),
            // Without a clip, the user means the hub.
            false => clip::run(&words.ours(&["logs", "--system"], skip)),
        },
        "mcp" => mcp::run_words(&words.ours(&[], skip)),
        _ if skip == 2 => return account::run_hub(&words.rest[1..]),
        _ => return account::run(words.rest),
    })
}

/// Runs `<clip> <command> …`, with standard input as one more member.
fn call(words: &Words<'_>, skip: usize) -> Result<ExitCode, Failure> {
    let mut line = words.global.clone();
    line.extend(words.secret.iter().cloned());
    line.extend(words.rest.iter().skip(skip).cloned());
    let piped = match words.rest.len() > skip + 1 {
        true => piped()?,
        false => None,
    };
    invoke::run_with(&line, piped)
}

/// Runs `schedule …` as a call of the clip `scheduler`.
fn schedule(words: &Words<'_>) -> Result<ExitCode, Failure> {
    if words.rest.len() < 2 {
        return Err(Failure::failed(
            "Error: schedule needs a command: list, add, remove, pause, resume, run or history.",
        ));
    }
    let mut line = words.global.clone();
    line.push(pinion_scheduler::ALIAS.to_owned());
    line.extend(words.rest.iter().skip(1).map(|word| {
        let short = word
            .strip_prefix("--desc")
            .filter(|rest| rest.is_empty() || rest.starts_with('='));
        short.map_or_else(|| word.clone(), |rest| format!("--description{rest}"))
    }));
    invoke::run_words(&line)
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
