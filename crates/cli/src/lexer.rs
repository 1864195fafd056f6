//! Cuts arguments into flags with their values, and words, as a table describes them.
//!
//! A flag is written `--flag value`, `--flag=value`, `-f value` or `-xt value`; short flags are not joined, because
//! pi's have several letters. `-` is a word, and after `--` everything is.

use std::collections::VecDeque;

use crate::error::Problem;
use crate::table::{Command, Flag, Value};

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Flag {
        flag: &'static Flag,
        /// The spelling that was used.
        written: String,
        value: Option<String>,
    },
    /// A flag that the table does not have, with the value that `=` joins to it.
    Unknown {
        written: String,
        value: Option<String>,
    },
    Word(String),
    /// The words after `--`.
    Words(Vec<String>),
}

/// Reads the parts of a command line one by one.
#[derive(Debug)]
pub struct Lexer {
    command: &'static Command,
    common: &'static [Flag],
    rest: VecDeque<String>,
    refuses_flags_as_values: bool,
}

impl Lexer {
    /// Creates a lexer of these arguments.
    pub fn new(command: &'static Command, arguments: impl IntoIterator<Item = String>) -> Self {
        Self {
            command,
            common: &[],
            rest: arguments.into_iter().collect(),
            refuses_flags_as_values: false,
        }
    }

    /// Accepts these flags besides those of the table.
    pub fn with_common_flags(mut self, flags: &'static [Flag]) -> Self {
        self.common = flags;
        self
    }

    /// Refuses a flag of the table where the value of another flag is expected, instead of using it as the value.
    pub fn refusing_flags_as_values(mut self) -> Self {
        self.refuses_flags_as_values = true;
        self
    }

    /// Returns the next part; `None` at the end.
    pub fn token(&mut self) -> Result<Option<Token>, Problem> {
        let Some(argument) = self.rest.pop_front() else {
            return Ok(None);
        };
        if argument == "--" {
            return Ok(Some(Token::Words(self.rest.drain(..).collect())));
        }
        if !argument.starts_with('-') || argument.len() == 1 {
            return Ok(Some(Token::Word(argument)));
        }
        let (written, joined) = match argument.split_once('=') {
            Some((written, value)) => (written.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let Some(flag) = self.flag(&written) else {
            let value = joined;
            return Ok(Some(Token::Unknown { written, value }));
        };
        let value = match (flag.value, joined) {
            (Value::None, Some(value)) => {
                let flag = written;
                return Err(Problem::NeedlessValue { flag, value });
            }
            (Value::None, None) | (Value::Joined(..), None) => None,
            (_, Some(value)) => Some(value),
            (Value::Required(..), None) => Some(self.required(&written)?),
            (Value::Optional(..), None) => self.optional_value(),
        };
        Ok(Some(Token::Flag {
            flag,
            written,
            value,
        }))
    }

    fn flag(&self, written: &str) -> Option<&'static Flag> {
        let is_named = |flag: &&Flag| flag.spellings().any(|spelling| spelling == written);
        let own = self.command.flag(written);
        own.or_else(|| self.common.iter().find(is_named))
    }

    /// Reports whether the next argument is a flag of the table.
    pub fn is_at_flag(&self) -> bool {
        self.rest.front().is_some_and(|argument| {
            let written = argument.split('=').next().unwrap_or_default();
            self.flag(written).is_some()
        })
    }

    /// Takes the next argument, unless it begins with `-` or `@`.
    pub fn optional_value(&mut self) -> Option<String> {
        let next = self.rest.front()?;
        if next.starts_with(['-', '@']) {
            return None;
        }
        self.rest.pop_front()
    }

    /// Takes all arguments that were not read yet.
    pub fn rest(&mut self) -> Vec<String> {
        self.rest.drain(..).collect()
    }

    /// Returns the table.
    pub fn command(&self) -> &'static Command {
        self.command
    }

    fn required(&mut self, written: &str) -> Result<String, Problem> {
        let flag = written.to_owned();
        let Some(value) = self.rest.pop_front() else {
            return Err(Problem::MissingValue { flag });
        };
        let names_flag = |value: &str| self.flag(value).is_some_and(|flag| flag.name == value);
        if self.refuses_flags_as_values && names_flag(&value) {
            return Err(Problem::FlagAsValue { flag, value });
        }
        Ok(value)
    }
}
