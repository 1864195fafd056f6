//! Commands of the program: a table of [`pinion_cli`], and the function that runs it.

use std::ops::Deref;
use std::process::ExitCode;
use std::str::FromStr;

use pinion_cli::{Command, Place, Problem};
use pinion_text::nearest;

use crate::commands::out;
use crate::failure::Failure;
use crate::log;

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Verb {
    /// The words before the name of the command, the program's name first.
    above: &'static str,
    pub command: &'static Command,
    run: fn(&Line) -> Result<ExitCode, Failure>,
}

impl Verb {
    /// Creates the command that is named by the words of `above` and its own name.
    pub const fn new(
        above: &'static str,
        command: &'static Command,
        run: fn(&Line) -> Result<ExitCode, Failure>,
    ) -> Self {
        Self {
            above,
            command,
            run,
        }
    }

    /// Parses the arguments and runs the command, or prints its help.
    pub fn run(&self, arguments: &[String]) -> Result<ExitCode, Failure> {
        self.run_with(arguments, None)
    }

    /// Runs the command with text that was piped to it.
    pub fn run_with(
        &self,
        arguments: &[String],
        piped: Option<String>,
    ) -> Result<ExitCode, Failure> {
        match Line::read(self, arguments)? {
            Some(line) => {
                log::start(log::flags_of(&line))?;
                (self.run)(&Line { piped, ..line })
            }
            None => out(&pinion_cli::help::text(&self.place())),
        }
    }

    fn place(&self) -> Place {
        match self.above {
            "" => Place::root(self.command),
            above => Place::below(above, self.command),
        }
    }
}

/// Commands with the same first words.
#[derive(Debug)]
pub(crate) struct Group {
    /// The words before the name of the group.
    pub above: &'static str,
    pub command: &'static Command,
    pub entries: &'static [Entry],
    /// A word that resembles no command is the first word of the command that runs if none is named.
    pub takes_words: bool,
}

/// A command or a group of commands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    One(&'static Verb),
    Several(&'static Group),
}

impl Entry {
    /// Runs the command with the arguments after its words.
    pub fn run(self, arguments: &[String]) -> Result<ExitCode, Failure> {
        match self {
            Self::One(verb) => verb.run(arguments),
            Self::Several(group) => group.run(arguments),
        }
    }

    pub fn command(self) -> &'static Command {
        match self {
            Self::One(verb) => verb.command,
            Self::Several(group) => group.command,
        }
    }
}

impl Group {
    /// Finds the command that `arguments` name, and runs it.
    pub fn run(&self, arguments: &[String]) -> Result<ExitCode, Failure> {
        let word = arguments.first().map(String::as_str);
        let otherwise = self.command.otherwise.and_then(|it| self.entry(it));
        match (word, otherwise) {
            (Some("help"), _) => self.explain(&arguments[1..]),
            (Some("--help" | "-h"), _) | (None, None) => {
                out(&pinion_cli::help::text(&self.place()))
            }
            (None, Some(entry)) => entry.run(arguments),
            (Some(flag), Some(entry)) if flag.starts_with('-') => entry.run(arguments),
            (Some(flag), None) if flag.starts_with('-') => {
                let flag = flag.to_owned();
                let nearest = nearest(&flag, ["--help"]);
                Err(self.wrong(Problem::UnknownFlag { flag, nearest }))
            }
            (Some(word), _) => {
                let named = self.command.command(word).and_then(|it| self.entry(it));
                let is_typo = || nearest(word, self.command.words()).is_some();
                let takes_word = || self.takes_words && !is_typo();
                match (named, otherwise.filter(|_| takes_word())) {
                    (Some(entry), _) => entry.run(&arguments[1..]),
                    (None, Some(entry)) => entry.run(arguments),
                    (None, None) => Err(self.unknown(word)),
                }
            }
        }
    }

    /// `GROUP help COMMAND`: the same as `GROUP COMMAND --help`.
    fn explain(&self, words: &[String]) -> Result<ExitCode, Failure> {
        let mut arguments = words.to_vec();
        arguments.push("--help".to_owned());
        self.run(&arguments)
    }

    fn entry(&self, command: &'static Command) -> Option<Entry> {
        let mut entries = self.entries.iter().copied();
        entries.find(|entry| std::ptr::eq(entry.command(), command))
    }

    fn place(&self) -> Place {
        Place::below(self.above, self.command)
    }

    fn unknown(&self, word: &str) -> Failure {
        let place = self.place();
        let nearest = nearest(word, self.command.words());
        self.wrong(Problem::UnknownCommand {
            group: place.name().to_owned(),
            word: word.to_owned(),
            nearest: nearest.map(|nearest| format!("{} {nearest}", place.words())),
        })
    }

    fn wrong(&self, problem: Problem) -> Failure {
        let words = self.place().words().to_owned();
        pinion_cli::Error { words, problem }.into()
    }
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Line {
    line: pinion_cli::Line,
    /// Text that was piped to the command.
    pub piped: Option<String>,
}

impl Deref for Line {
    type Target = pinion_cli::Line;

    fn deref(&self) -> &pinion_cli::Line {
        &self.line
    }
}

impl Line {
    /// Parses flags and words; `None` if help is requested.
    pub fn read(verb: &Verb, arguments: &[String]) -> Result<Option<Self>, Failure> {
        let line = pinion_cli::Line::read(verb.place(), arguments)?;
        Ok(line.map(|line| Self { line, piped: None }))
    }

    /// Returns the failure for a wrong command line, with a reference to the help.
    pub fn wrong(&self, what: impl ToString) -> Failure {
        self.line.wrong(&what.to_string()).into()
    }

    /// Returns the failure for a wrong number of words.
    pub fn misfit(&self) -> Failure {
        self.line.misfit().into()
    }

    /// Prints the help of the command.
    pub fn help(&self) -> Result<ExitCode, Failure> {
        out(&pinion_cli::help::text(self.line.place()))
    }

    /// Parses the value of a flag. `what` names the expected value in the error.
    pub fn parsed<T: FromStr>(&self, flag: &str, what: &str) -> Result<Option<T>, Failure> {
        Ok(self.line.parsed(flag, what)?)
    }

    /// Returns the words if there are exactly `COUNT`.
    pub fn exactly<const COUNT: usize>(&self) -> Result<[&str; COUNT], Failure> {
        Ok(self.line.exactly()?)
    }

    /// Returns the first word and the optional second one. Fails for another number of words.
    pub fn one_or_two(&self) -> Result<(&str, Option<&str>), Failure> {
        Ok(self.line.one_or_two()?)
    }

    /// Returns the optional word. Fails if there are more.
    pub fn at_most_one(&self) -> Result<Option<&str>, Failure> {
        Ok(self.line.at_most_one()?)
    }
}
