//! A command line of prompts, in pi's grammar: flags, files and messages in any order.
//!
//! Extensions may register flags, so a flag that the table does not have is not an error here: the program decides when
//! it knows the extensions.

use crate::error::Problem;
use crate::lexer::{Lexer, Token};
use crate::table::Command;
use crate::tables::root;

/// A parsed command line of prompts.
#[derive(Debug, Clone)]
pub struct PromptLine {
    pub(crate) table: &'static Command,
    flags: Vec<(&'static str, Option<String>)>,
    /// Flags that the table does not have.
    pub unknown: Vec<UnknownFlag>,
    /// The names after `@`.
    pub files: Vec<String>,
    pub messages: Vec<String>,
    /// `-`: the prompt is read from standard input, even from a terminal.
    pub stdin: bool,
    /// The index of the first message after `--`.
    pub(crate) literal_from: Option<usize>,
    /// The first argument is a word, as in a command line that names a command.
    pub(crate) begins_with_word: bool,
}

/// A flag that the table does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFlag {
    /// The flag with its dashes.
    pub written: String,
    pub value: Option<String>,
    /// The index among the messages that the value has if no extension registers the flag; `None` for a value that `=`
    /// joins to the flag.
    message: Option<usize>,
}

impl UnknownFlag {
    /// Returns the name without its dashes; `None` for a short flag, which no extension can register.
    pub fn long_name(&self) -> Option<&str> {
        self.written.strip_prefix("--")
    }
}

impl Default for PromptLine {
    fn default() -> Self {
        Self {
            table: &root::PINION,
            flags: Vec::new(),
            unknown: Vec::new(),
            files: Vec::new(),
            messages: Vec::new(),
            stdin: false,
            literal_from: None,
            begins_with_word: false,
        }
    }
}

impl PromptLine {
    /// Reads all arguments of the lexer.
    pub fn read(mut lexer: Lexer) -> Result<Self, Problem> {
        let mut line = Self {
            table: lexer.command(),
            ..Self::default()
        };
        let mut is_first = true;
        while let Some(token) = lexer.token()? {
            match token {
                Token::Flag { flag, value, .. } => line.flags.push((flag.name, value)),
                Token::Unknown { written, value } => line.add_unknown(written, value, &mut lexer),
                Token::Word(word) if word == "-" => line.stdin = true,
                Token::Word(word) => match word.strip_prefix('@') {
                    Some(file) => line.files.push(file.to_owned()),
                    None => {
                        line.begins_with_word |= is_first;
                        line.messages.push(word);
                    }
                },
                Token::Words(words) => {
                    line.literal_from = Some(line.messages.len());
                    line.messages.extend(words);
                }
            }
            is_first = false;
        }
        Ok(line)
    }

    /// Stores a flag for extensions, with the next argument if it may be the flag's value.
    fn add_unknown(&mut self, written: String, joined: Option<String>, lexer: &mut Lexer) {
        let follows = joined.is_none() && written.starts_with("--");
        let next = follows.then(|| lexer.optional_value()).flatten();
        self.unknown.push(UnknownFlag {
            message: next.is_some().then_some(self.messages.len()),
            value: joined.or(next),
            written,
        });
    }

    /// Returns the flags of the table in the order of the command line, by their long names.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let flags = self.flags.iter();
        flags.map(|(name, value)| (*name, value.as_deref()))
    }

    /// Takes the unknown flags. Their values become messages, because no extension registers the flags.
    pub fn take_unknown(&mut self) -> Vec<UnknownFlag> {
        let unknown = std::mem::take(&mut self.unknown);
        for flag in unknown.iter().rev() {
            if let (Some(index), Some(value)) = (flag.message, &flag.value) {
                self.messages.insert(index, value.clone());
            }
        }
        unknown
    }

    /// Returns the error for an unknown flag, with the nearest one of the table.
    pub fn unknown_flag(&self, written: &str) -> Problem {
        Problem::unknown_flag(written, self.table.all_flags())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<PromptLine, Problem> {
        let arguments = arguments.iter().map(ToString::to_string);
        PromptLine::read(Lexer::new(&root::PINION, arguments).refusing_flags_as_values())
    }

    #[test]
    fn messages_files_and_flags_may_be_mixed() {
        let line = read(&[
            "-p",
            "one",
            "@a.txt",
            "--model=x/y",
            "-",
            "two",
            "-nc",
            "--",
            "--three",
        ]);
        let line = line.unwrap();
        assert_eq!(line.messages, ["one", "two", "--three"]);
        assert_eq!(line.files, ["a.txt"]);
        assert!(line.stdin && !line.begins_with_word);
        let flags: Vec<_> = line.flags().collect();
        assert_eq!(
            flags,
            [
                ("--print", None),
                ("--model", Some("x/y")),
                ("--no-context-files", None)
            ]
        );
        assert!(read(&["a", "-p"]).unwrap().begins_with_word);
        assert!(!read(&["@a", "b"]).unwrap().begins_with_word);
    }

    #[test]
    fn values_of_unknown_flags_become_messages_when_they_are_taken() {
        let mut line = read(&[
            "one",
            "--plan",
            "two",
            "--level=-3",
            "--dry",
            "--who",
            "@a",
            "three",
            "-zz",
            "four",
        ])
        .unwrap();
        let unknown: Vec<(Option<&str>, Option<&str>)> = line
            .unknown
            .iter()
            .map(|flag| (flag.long_name(), flag.value.as_deref()))
            .collect();
        assert_eq!(
            unknown,
            [
                (Some("plan"), Some("two")),
                (Some("level"), Some("-3")),
                (Some("dry"), None),
                (Some("who"), None),
                (None, None),
            ]
        );
        assert_eq!(line.messages, ["one", "three", "four"]);
        assert_eq!(line.files, ["a"]);
        assert_eq!(line.take_unknown().len(), 5);
        assert_eq!(line.messages, ["one", "two", "three", "four"]);
        assert!(line.unknown.is_empty());
    }

    #[test]
    fn a_flag_is_not_the_value_of_another_one() {
        let problem = read(&["--system-prompt", "--no-tools"]).unwrap_err();
        assert!(matches!(problem, Problem::FlagAsValue { .. }), "{problem}");
        let line = read(&["--system-prompt=--no-tools", "--name", "-p"]).unwrap();
        let values: Vec<_> = line.flags().filter_map(|(_, value)| value).collect();
        assert_eq!(values, ["--no-tools", "-p"]);
    }
}
