//! Errors of a command line.

use std::fmt;

use pinion_text::nearest;

use crate::table::Flag;

/// A mistake in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    UnknownFlag {
        flag: String,
        nearest: Option<&'static str>,
    },
    /// A word that names no command of a group.
    UnknownCommand {
        /// The words of the group, without the name of the program.
        group: String,
        word: String,
        /// The whole command line up to the nearest command.
        nearest: Option<String>,
    },
    MissingValue {
        flag: String,
    },
    /// A flag stands where the value of another one is expected.
    FlagAsValue {
        flag: String,
        value: String,
    },
    NeedlessValue {
        flag: String,
        value: String,
    },
    MissingArgument {
        argument: &'static str,
        usage: String,
    },
    ExtraWord {
        word: String,
    },
    Conflict {
        one: &'static str,
        other: &'static str,
    },
    Requirement {
        flag: &'static str,
        other: &'static str,
    },
    /// A mistake that the command itself found.
    Other(String),
}

/// A mistake and the command in whose arguments it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The words of the command, with the name of the program.
    pub words: String,
    pub problem: Problem,
}

impl Problem {
    /// Returns the error for a flag that is not one of `flags`, with the nearest one.
    pub fn unknown_flag(written: &str, flags: impl Iterator<Item = &'static Flag>) -> Self {
        let known = flags.map(|flag| flag.name);
        Self::UnknownFlag {
            flag: written.to_owned(),
            nearest: nearest(written, known.chain(["--help"])),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFlag {
                flag,
                nearest: Some(nearest),
            } => write!(f, "unknown option {flag}. Did you mean {nearest}?"),
            Self::UnknownFlag { flag, .. } => write!(f, "unknown option {flag}."),
            Self::UnknownCommand {
                group,
                word,
                nearest,
            } => {
                let typed = format!("{group} {word}");
                write!(f, "unknown command `{}`.", typed.trim_start())?;
                match nearest {
                    Some(nearest) => write!(f, " Did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            Self::MissingValue { flag } => write!(f, "{flag} needs a value after it."),
            Self::FlagAsValue { flag, value } => write!(
                f,
                "{flag} needs a value, but {value} follows it. If {value} is the value, write {flag}={value}."
            ),
            Self::NeedlessValue { flag, value } => {
                write!(f, "{flag} takes no value, but got {value:?}.")
            }
            Self::MissingArgument { argument, usage } => {
                write!(f, "{argument} is missing: {usage}.")
            }
            Self::ExtraWord { word } => write!(f, "{word:?} is one word too many."),
            Self::Conflict { one, other } => write!(f, "{one} and {other} exclude each other."),
            Self::Requirement { flag, other } => write!(f, "{flag} needs {other}."),
            Self::Other(text) => {
                let end = if text.contains("did you mean") {
                    '?'
                } else {
                    '.'
                };
                write!(f, "{text}{end}")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { words, problem } = self;
        write!(f, "{problem} See `{words} --help`.")
    }
}

impl std::error::Error for Error {}
