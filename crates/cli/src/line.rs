//! A parsed command line: the flags and words of one command.

use std::str::FromStr;

use crate::error::{Error, Problem};
use crate::lexer::{Lexer, Token};
use crate::place::Place;
use crate::table::{Command, Count};
use crate::tables;

/// A command without flags of its own.
static NO_FLAGS: Command = Command::new("", "");

/// The flags and words of one command.
#[derive(Debug, Clone)]
pub struct Line {
    place: Place,
    flags: Vec<(&'static str, String)>,
    /// The arguments that are not flags.
    pub words: Vec<String>,
    /// The arguments that were passed on unparsed.
    pub raw: Vec<String>,
}

impl Line {
    /// Parses the arguments after the words of a command; `None` if help is requested.
    pub fn read(place: Place, arguments: &[String]) -> Result<Option<Self>, Error> {
        let mut line = Self {
            place,
            flags: Vec::new(),
            words: Vec::new(),
            raw: Vec::new(),
        };
        let command = line.place.command;
        let raw_after = command.raw_after.unwrap_or(usize::MAX);
        let mut lexer = Lexer::new(command, arguments.iter().cloned())
            .with_common_flags(line.place.common_flags());
        loop {
            if line.words.len() >= raw_after {
                line.raw = lexer.rest();
                break;
            }
            let token = lexer.token().map_err(|problem| line.error(problem))?;
            match token {
                None => break,
                Some(Token::Unknown { written, .. })
                    if matches!(written.as_str(), "--help" | "-h") =>
                {
                    return Ok(None);
                }
                Some(Token::Unknown { written, .. }) => {
                    let problem = Problem::unknown_flag(&written, line.place.all_flags());
                    return Err(line.error(problem));
                }
                Some(Token::Flag { flag, value, .. }) => {
                    line.flags.push((flag.name, value.unwrap_or_default()));
                }
                Some(Token::Word(word)) => line.words.push(word),
                Some(Token::Words(words)) => line.words.extend(words),
            }
        }
        line.check_flags()?;
        Ok(Some(line))
    }

    /// Parses the flags of all commands at the beginning of a command line. Returns them, and the rest.
    pub fn read_common(
        root: &'static Command,
        arguments: Vec<String>,
    ) -> Result<(Self, Vec<String>), Error> {
        let mut line = Self {
            place: Place::root(root),
            flags: Vec::new(),
            words: Vec::new(),
            raw: Vec::new(),
        };
        let mut lexer =
            Lexer::new(&NO_FLAGS, arguments).with_common_flags(tables::common(root.name));
        while lexer.is_at_flag() {
            let token = lexer.token().map_err(|problem| line.error(problem))?;
            if let Some(Token::Flag { flag, value, .. }) = token {
                line.flags.push((flag.name, value.unwrap_or_default()));
            }
        }
        Ok((line, lexer.rest()))
    }

    fn check_flags(&self) -> Result<(), Error> {
        let command = self.place.command;
        for excluding in command.conflicts {
            let mut given = excluding.iter().copied().filter(|flag| self.has(flag));
            if let (Some(one), Some(other)) = (given.next(), given.next()) {
                return Err(self.error(Problem::Conflict { one, other }));
            }
        }
        let missing = |(flag, other): &&(&str, &str)| self.has(flag) && !self.has(other);
        match command.requirements.iter().find(missing) {
            Some(&(flag, other)) => Err(self.error(Problem::Requirement { flag, other })),
            None => Ok(()),
        }
    }

    fn error(&self, problem: Problem) -> Error {
        Error {
            words: self.place.words().to_owned(),
            problem,
        }
    }

    /// Returns the error for a mistake that the command itself found.
    pub fn wrong(&self, text: &str) -> Error {
        self.error(Problem::Other(text.to_owned()))
    }

    /// Returns the command and its words.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the words of the command, without the name of the program.
    pub fn name(&self) -> &str {
        self.place.name()
    }

    /// Reports whether the flag is present.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| *name == flag)
    }

    /// Returns the value of a flag. The last one overrides the others.
    pub fn value(&self, flag: &str) -> Option<&str> {
        let mut named = self.flags.iter().rev().filter(|(name, _)| *name == flag);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Returns all values of a flag that may be repeated.
    pub fn values(&self, flag: &str) -> impl Iterator<Item = &str> {
        let named = self.flags.iter().filter(move |(name, _)| *name == flag);
        named.map(|(_, value)| value.as_str())
    }

    /// Parses the value of a flag. `what` names the expected value in the error.
    pub fn parsed<T: FromStr>(&self, flag: &str, what: &str) -> Result<Option<T>, Error> {
        let read = |text: &str| {
            let wrong = |_| self.wrong(&format!("{flag} needs {what}, not {text:?}"));
            text.parse().map_err(wrong)
        };
        self.value(flag).map(read).transpose()
    }

    /// Returns the words if there are exactly `COUNT`.
    pub fn exactly<const COUNT: usize>(&self) -> Result<[&str; COUNT], Error> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        words.try_into().map_err(|words: Vec<&str>| {
            let extra = words.get(COUNT);
            extra.map_or_else(|| self.missing(), |word| self.too_many(word))
        })
    }

    /// Returns the first word and the optional second one. Fails for another number of words.
    pub fn one_or_two(&self) -> Result<(&str, Option<&str>), Error> {
        match self.words.as_slice() {
            [one] => Ok((one, None)),
            [one, two] => Ok((one, Some(two))),
            [] => Err(self.missing()),
            [_, _, third, ..] => Err(self.too_many(third)),
        }
    }

    /// Returns the optional word. Fails if there are more.
    pub fn at_most_one(&self) -> Result<Option<&str>, Error> {
        match self.words.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [_, second, ..] => Err(self.too_many(second)),
        }
    }

    /// Returns the error for a number of words that the arguments of the table do not allow.
    pub fn misfit(&self) -> Error {
        let most = self.place.command.arguments.len();
        let extra = self.words.get(most);
        extra.map_or_else(|| self.missing(), |word| self.too_many(word))
    }

    fn too_many(&self, word: &str) -> Error {
        let word = word.to_owned();
        self.error(Problem::ExtraWord { word })
    }

    /// Returns the error for the first argument of the table that has no word.
    fn missing(&self) -> Error {
        let arguments = self.place.command.arguments;
        let needed =
            |argument: &&crate::Argument| matches!(argument.count, Count::One | Count::Several);
        let missing = arguments.iter().skip(self.words.len()).find(needed);
        let missing = missing.or(arguments.last());
        let usage = self.place.usage().into_iter().next();
        self.error(Problem::MissingArgument {
            argument: missing.map_or("an argument", |argument| argument.name),
            usage: usage.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
