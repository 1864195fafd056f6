//! The command lines of `pinix` and `pinixd`, translated to those of pinion: both the grouped form and the flat one
//! before it.

use std::ffi::OsStr;
use std::path::Path;

use pinion_text::nearest;

use crate::tables::pinix as table;
use crate::{Command, Error, Line, Place, Problem};

/// The link by which the program was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Pinix,
    Pinixd,
}

/// The command that a command line of a link runs, with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub enum PinixCommand {
    Help(Place),
    Version,
    /// A command of pinix's own tables.
    Own(&'static Command, Vec<String>),
    /// `pinion hub …`.
    Hub(Vec<String>),
    /// `pinion clip …`.
    Clip(Vec<String>),
    /// `pinion clip list`, with one line per clip.
    ClipList(Vec<String>),
    /// `pinion clip show`, as text.
    ClipInfo(Vec<String>),
    /// `pinion mcp …`.
    Mcp(Vec<String>),
    /// `pinion invoke …`.
    Invoke(Vec<String>),
    /// `pinion invoke …` with piped text as one more member.
    InvokeWithStdin(Vec<String>),
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

    /// Finds the command that the arguments name. The error is a message for the user.
    pub fn command(self, arguments: &[String]) -> Result<PinixCommand, String> {
        match self {
            Self::Pinix => pinix(arguments),
            Self::Pinixd => Ok(pinixd(arguments)),
        }
    }

    /// Replaces pinion's commands in a message by the ones to type here.
    pub fn reword(self, message: String) -> String {
        let message = message.replace("`pinion hub login", "`pinix login");
        let hint = message
            .split_once("See `pinion ")
            .and_then(|(before, rest)| Some((before, rest.split_once(" --help`")?)));
        let Some((before, (name, after))) = hint else {
            return message;
        };
        let typed = match (self, name.split_once(' ')) {
            (Self::Pinixd, _) => "pinixd".to_owned(),
            (_, Some(("hub", "serve" | "join"))) => "pinix start".to_owned(),
            (_, Some(("hub", word)) | Some(("clip", word @ "data"))) => format!("pinix {word}"),
            (_, Some(("clip", "show"))) => "pinix hub info".to_owned(),
            (_, Some(("clip", word))) => format!("pinix hub {word}"),
            _ => format!("pinix {name}"),
        };
        format!("{before}See `{typed} --help`{after}")
    }
}

fn pinixd(arguments: &[String]) -> PinixCommand {
    match arguments.first().map(String::as_str) {
        Some("--version" | "version") => PinixCommand::Version,
        Some("help") => PinixCommand::Help(Place::root(&table::PINIXD)),
        Some("start" | "daemon") => PinixCommand::Own(&table::PINIXD, arguments[1..].to_vec()),
        _ => PinixCommand::Own(&table::PINIXD, arguments.to_vec()),
    }
}

/// The flags before the first word, and the rest.
struct Words<'a> {
    flags: Vec<String>,
    /// The flag `--clip-token`, which only calls accept.
    clip_token: Vec<String>,
    rest: &'a [String],
}

impl<'a> Words<'a> {
    fn read(mut rest: &'a [String]) -> Result<Self, String> {
        let (mut flags, mut clip_token) = (Vec::new(), Vec::new());
        while let Some((word, after)) = rest.split_first() {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            let into = match name {
                "--server" | "--auth-token" => &mut flags,
                "--clip-token" => &mut clip_token,
                _ => break,
            };
            into.push(word.clone());
            rest = after;
            if !word.contains('=') {
                let (value, after) = rest
                    .split_first()
                    .ok_or_else(|| format!("{name} needs a value after it."))?;
                into.push(value.clone());
                rest = after;
            }
        }
        Ok(Self {
            flags,
            clip_token,
            rest,
        })
    }

    /// Returns a command line of pinion with the given flags and the words after the first `skip`.
    fn translated(&self, words: &[&str], skip: usize) -> Vec<String> {
        let words = words.iter().map(ToString::to_string);
        let rest = self.rest.iter().skip(skip).cloned();
        words
            .chain(self.flags.iter().cloned())
            .chain(rest)
            .collect()
    }

    /// Returns the call `<clip> <command> …`, with piped text as one more member.
    fn call(&self, skip: usize) -> PinixCommand {
        let flags = self.flags.iter().chain(&self.clip_token);
        let line = flags.chain(self.rest.iter().skip(skip)).cloned().collect();
        if self.rest.len() > skip + 1 {
            PinixCommand::InvokeWithStdin(line)
        } else {
            PinixCommand::Invoke(line)
        }
    }

    /// Returns a call of the clip `scheduler`.
    fn schedule(&self) -> Result<PinixCommand, String> {
        if self.rest.len() < 2 {
            return Err(
                "schedule needs a command: list, add, remove, pause, resume, run or history."
                    .to_owned(),
            );
        }
        let mut line = self.flags.clone();
        line.push("scheduler".to_owned());
        line.extend(self.rest.iter().skip(1).map(|word| {
            let short = word
                .strip_prefix("--desc")
                .filter(|rest| rest.is_empty() || rest.starts_with('='));
            short.map_or_else(|| word.clone(), |rest| format!("--description{rest}"))
        }));
        Ok(PinixCommand::Invoke(line))
    }

    /// Returns the command `word`, one of those that follow `hub` or stand alone.
    fn grouped(&self, word: &str, skip: usize) -> Option<PinixCommand> {
        Some(match word {
            "list" => PinixCommand::ClipList(self.translated(&[], skip)),
            "info" => PinixCommand::ClipInfo(self.translated(&[], skip)),
            "add" | "remove" | "update" | "bind" | "unbind" | "bindings" => {
                PinixCommand::Clip(self.translated(&[word], skip))
            }
            "logs" => {
                let names_clip = self.rest.iter().skip(skip).any(|it| !it.starts_with('-'));
                // Without a clip, the user means the hub.
                let words: &[&str] = if names_clip {
                    &["logs"]
                } else {
                    &["logs", "--system"]
                };
                PinixCommand::Clip(self.translated(words, skip))
            }
            "mcp" => PinixCommand::Mcp(self.translated(&[], skip)),
            _ => {
                let command: &'static Command = match (word, skip) {
                    ("login", 2) => &table::HUB_LOGIN,
                    ("logout", 2) => &table::HUB_LOGOUT,
                    ("whoami", 2) => &table::HUB_WHOAMI,
                    ("login", _) => &table::LOGIN,
                    ("logout", _) => &table::LOGOUT,
                    ("whoami", _) => &table::WHOAMI,
                    _ => return None,
                };
                PinixCommand::Own(command, self.rest[skip..].to_vec())
            }
        })
    }
}

fn pinix(arguments: &[String]) -> Result<PinixCommand, String> {
    let words = Words::read(arguments)?;
    let rest = words.rest;
    let Some(first) = rest.first() else {
        return Ok(PinixCommand::Help(Place::root(&table::PINIX)));
    };
    let after = || rest[1..].to_vec();
    Ok(match first.as_str() {
        "help" | "--help" | "-h" => PinixCommand::Help(Place::root(&table::PINIX)),
        "--version" | "version" => PinixCommand::Version,
        "start" => PinixCommand::Own(&table::START, after()),
        "daemon" => PinixCommand::Own(&table::PINIXD, after()),
        "stop" | "status" => PinixCommand::Hub(rest.to_vec()),
        "hub" => match rest.get(1).map(String::as_str) {
            None | Some("help" | "--help" | "-h") => {
                PinixCommand::Help(Place::below("pinix", &table::HUB))
            }
            Some(word) => words
                .grouped(word, 2)
                .ok_or_else(|| unknown(&Place::below("pinix", &table::HUB), word))?,
        },
        "invoke" => words.call(1),
        "data" => PinixCommand::Clip(words.translated(&["data"], 1)),
        "config" => PinixCommand::Own(&table::CONFIG, after()),
        "registry" => registry(&rest[1..])?,
        "search" | "publish" | "register" | "dist-tag" => registry(rest)?,
        "schedule" => words.schedule()?,
        "chat" => PinixCommand::Own(&table::CHAT, words.translated(&[], 1)),
        "upgrade" => {
            return Err(
                "this program does not replace itself; install another version the way this one was installed."
                    .to_owned(),
            );
        }
        "org" => {
            return Err(
                "there are no commands for organisations: a registry has pages for them, if it has organisations."
                    .to_owned(),
            );
        }
        word => match words.grouped(word, 1) {
            Some(command) => command,
            None if word.starts_with('-') => {
                return Err(unknown(&Place::root(&table::PINIX), word));
            }
            None => words.call(0),
        },
    })
}

/// Returns the command of `pinix registry` that the words name.
fn registry(words: &[String]) -> Result<PinixCommand, String> {
    let Some((word, rest)) = words.split_first() else {
        return Ok(PinixCommand::Help(Place::below("pinix", &table::REGISTRY)));
    };
    match (word.as_str(), table::REGISTRY.command(word)) {
        (_, Some(command)) => Ok(PinixCommand::Own(command, rest.to_vec())),
        ("" | "--help" | "-h", None) => {
            Ok(PinixCommand::Help(Place::below("pinix", &table::REGISTRY)))
        }
        (word, None) => Err(unknown(&Place::below("pinix", &table::REGISTRY), word)),
    }
}

/// Returns the message for a word that is neither a command nor a flag of the group at `place`.
fn unknown(place: &Place, word: &str) -> String {
    let problem = if word.starts_with('-') {
        Problem::unknown_flag(word, place.all_flags())
    } else {
        let nearest = nearest(word, place.command.words());
        Problem::UnknownCommand {
            group: place.name().to_owned(),
            word: word.to_owned(),
            nearest: nearest.map(|nearest| format!("{} {nearest}", place.words())),
        }
    };
    let words = place.words().to_owned();
    Error { words, problem }.to_string()
}

/// Translates the arguments of `pinix start` and `pinixd` to those of `pinion hub`. `root` is the hub's directory, if
/// the line names one. The error is a message for the user.
pub fn hub_arguments(line: &Line, root: Option<&Path>) -> Result<Vec<String>, String> {
    if line.has("--hub") && line.has("--hub-only") {
        return Err("--hub and --hub-only exclude each other.".to_owned());
    }
    let mut words = match line.value("--hub") {
        Some(url) => {
            if let Some(flag) = FOR_HUBS.into_iter().find(|flag| line.has(flag)) {
                return Err(format!(
                    "{flag} is for a hub; with --hub there is none on this machine."
                ));
            }
            let mut words = ["join", url, "--accept-installs"]
                .map(str::to_owned)
                .to_vec();
            words.extend(given(
                line,
                &["--hub-token", "--port", "--pid", "--bun", "--log-level"],
            ));
            words
        }
        None => {
            let mut words = vec!["serve".to_owned()];
            words.extend(given(
                line,
                &[
                    "--super-token",
                    "--bun",
                    "--port",
                    "--pid",
                    "--log-level",
                    "--bind",
                    "--auth",
                    "--jwt-issuer",
                    "--jwt-audience",
                ],
            ));
            let switches = ["--hub-only", "--jwt-manage"].into_iter();
            words.extend(switches.filter(|flag| line.has(flag)).map(str::to_owned));
            words
        }
    };
    words.extend(root.map(|root| format!("--root={}", root.display())));
    Ok(words)
}

/// Flags of a hub that a runtime does not have.
const FOR_HUBS: [&str; 6] = [
    "--super-token",
    "--bind",
    "--auth",
    "--jwt-issuer",
    "--jwt-audience",
    "--jwt-manage",
];

/// Returns those of these flags that were given, with their values.
fn given(line: &Line, flags: &[&str]) -> Vec<String> {
    let given = flags
        .iter()
        .filter_map(|flag| Some((flag, line.value(flag)?)));
    given
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn command(text: &str) -> PinixCommand {
        Link::Pinix.command(&words(text)).unwrap()
    }

    #[test]
    fn grouped_and_flat_commands_are_the_same() {
        for (grouped, flat) in [
            ("hub list --json", "list --json"),
            ("hub add ./todo", "add ./todo"),
            ("hub logs", "logs"),
            ("invoke todo add x", "todo add x"),
            ("registry search x", "search x"),
        ] {
            assert_eq!(command(grouped), command(flat));
        }
        assert_eq!(
            command("login"),
            PinixCommand::Own(&table::LOGIN, Vec::new())
        );
        let login = PinixCommand::Own(&table::HUB_LOGIN, Vec::new());
        assert_eq!(command("hub login"), login);
        let start = PinixCommand::Own(&table::START, words("--port 0"));
        assert_eq!(command("start --port 0"), start);
    }

    #[test]
    fn flags_before_the_first_word_stay() {
        let bind = PinixCommand::Clip(words("bind --server x --auth-token=t a b"));
        assert_eq!(command("--server x --auth-token=t bind a b"), bind);
        let call = PinixCommand::InvokeWithStdin(words("--server x --clip-token y todo add"));
        assert_eq!(command("--clip-token y --server x todo add"), call);
        assert_eq!(command("todo"), PinixCommand::Invoke(words("todo")));
        assert_eq!(
            command("schedule add --desc=x"),
            PinixCommand::Invoke(words("scheduler add --description=x"))
        );
        let log = PinixCommand::Clip(words("logs --system --follow"));
        assert_eq!(command("logs --follow"), log);
        assert!(Link::Pinix.command(&words("--server")).is_err());
        assert!(Link::Pinix.command(&words("hub fly")).is_err());
        assert!(Link::Pinix.command(&words("--fly")).is_err());
    }

    #[test]
    fn unknown_words_and_flags_are_named_with_the_nearest() {
        for (line, said) in [
            (
                "--servr x",
                "unknown option --servr. Did you mean --server? See `pinix --help`.",
            ),
            (
                "hub lst",
                "unknown command `hub lst`. Did you mean `pinix hub list`? See `pinix hub --help`.",
            ),
            ("registry serch", "Did you mean `pinix registry search`?"),
            (
                "hub --bogus",
                "unknown option --bogus. See `pinix hub --help`.",
            ),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = Link::Pinix.command(&words).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn hints_name_the_commands_of_the_link() {
        let reword = |link: Link, text: &str| link.reword(text.to_owned());
        let hint = "x. See `pinion clip add --help`.";
        assert_eq!(reword(Link::Pinix, hint), "x. See `pinix hub add --help`.");
        assert_eq!(reword(Link::Pinixd, hint), "x. See `pinixd --help`.");
        let hint = "See `pinion hub serve --help`.";
        assert_eq!(reword(Link::Pinix, hint), "See `pinix start --help`.");
    }
}
