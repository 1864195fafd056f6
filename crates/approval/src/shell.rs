//! Parses a shell command far enough to find the simple commands that it runs.
//!
//! The parser accepts only syntax that all common shells interpret in the same way. Other syntax, and syntax that differs
//! between shells, makes the command *opaque*: no rule permits it, and the user is asked. An unnecessary question is
//! acceptable; treating a harmful command as harmless is not.
//!
//! Known: words, quotes, `$NAME`, `$(…)`, patterns of file names, redirections, lists, pipes, groups, `if`, `while`,
//! `until`, `for … in`. Opaque: here-documents, backquotes, arithmetic, functions, `case`, `[[`, arrays, process
//! substitution, expansions with operators, control characters and unusual spaces outside quotes.

mod words;

use crate::simple_command::{Redirection, SimpleCommand};

/// Command substitutions and groups deeper than this are opaque.
const MAX_DEPTH: usize = 32;

/// The simple commands that a shell command runs.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command found, including those inside groups and substitutions.
    pub commands: Vec<SimpleCommand>,
    /// The command runs, or may run, more than was found.
    pub opaque: bool,
}

pub(crate) fn read(text: &str) -> Script {
    let mut parser = ShellParser {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
        commands: Vec::new(),
    };
    let read = parser.list(Closing::End);
    Script {
        commands: parser.commands,
        opaque: read.is_err(),
    }
}

/// The interpretation of the rest is not certain.
struct Opaque;

type Read<T> = Result<T, Opaque>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    End,
    Parenthesis,
}

/// The meaning of a word at the position of a command's name.
enum Keyword {
    /// A command follows.
    Transparent,
    /// A name and words follow.
    Loop,
    /// Syntax that this parser does not handle.
    Other,
    /// Nothing special.
    None,
}

fn keyword(word: &str) -> Keyword {
    match word {
        "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "!" | "{"
        | "}" => Keyword::Transparent,
        "for" | "select" => Keyword::Loop,
        "case" | "esac" | "function" | "coproc" | "[[" | "]]" => Keyword::Other,
        _ => Keyword::None,
    }
}

struct ShellParser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    commands: Vec<SimpleCommand>,
}

impl ShellParser {
    fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.at += usize::from(found);
        found
    }

    /// Parses commands until the end, or until the closing parenthesis.
    fn list(&mut self, closing: Closing) -> Read<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Opaque);
        }
        loop {
            self.blanks();
            match self.peek() {
                None if closing == Closing::End => break,
                None => return Err(Opaque),
                Some(')') if closing == Closing::Parenthesis => {
                    self.at += 1;
                    break;
                }
                Some(')') => return Err(Opaque),
                Some(';') if matches!(self.ahead(1), Some(';' | '&')) => return Err(Opaque),
                Some('&') if self.ahead(1) == Some('>') => self.simple()?,
                Some('\n' | ';' | '&' | '|') => self.at += 1,
                Some('#') => self.comment(),
                Some('(') if matches!(self.ahead(1), Some('(' | '\\')) => return Err(Opaque),
                Some('(') => {
                    self.at += 1;
                    self.list(Closing::Parenthesis)?;
                }
                Some(_) => self.simple()?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn blanks(&mut self) {
        loop {
            match (self.peek(), self.ahead(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// Parses one simple command, or a keyword and the command after it.
    fn simple(&mut self) -> Read<()> {
        let mut command = SimpleCommand::default();
        let read = self.simple_into(&mut command);
        if !command.is_empty() {
            self.commands.push(command);
        }
        read
    }

    fn simple_into(&mut self, command: &mut SimpleCommand) -> Read<()> {
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if self.ahead(1) == Some('>') => {
                    self.redirection(command)?;
                    self.ends_here()?;
                }
                Some('&') => break,
                Some('(') => return Err(Opaque),
                Some('#') => self.comment(),
                Some('<' | '>') => self.redirection(command)?,
                Some(c) if c.is_ascii_digit() && self.descriptor() => {
                    self.redirection(command)?;
                }
                Some(_) => {
                    let from = self.at;
                    let word = self.word()?;
                    if command.is_empty() {
                        let plain = word.unquoted(&self.chars[from..self.at]);
                        match keyword(plain) {
                            Keyword::None => {}
                            Keyword::Transparent => continue,
                            Keyword::Loop => return self.names(),
                            Keyword::Other => return Err(Opaque),
                        }
                    }
                    if command.words.is_empty() && is_assignment(&self.chars[from..self.at]) {
                        command.assigns = true;
                    } else if command.words.is_empty() && word.open {
                        // The name of the command is known only when it runs.
                        return Err(Opaque);
                    } else {
                        command.words.push(word);
                    }
                }
            }
        }
        Ok(())
    }

    /// Requires the end of the command after `&>`: some shells read it as `&` and `>`, so further words would be another
    /// command.
    fn ends_here(&mut self) -> Read<()> {
        self.blanks();
        match (self.peek(), self.ahead(1)) {
            (Some('&'), Some('>')) => Err(Opaque),
            (None | Some('\n' | ';' | '|' | '&' | ')' | '#'), _) => Ok(()),
            _ => Err(Opaque),
        }
    }

    /// Parses `NAME in WORDS` of a loop, which run nothing themselves.
    fn names(&mut self) -> Read<()> {
        for position in 0.. {
            self.blanks();
            match self.peek() {
                Some(';' | '\n') if position > 1 => return Ok(()),
                None | Some(';' | '\n' | '&' | '|' | '<' | '>' | '(' | ')' | '#') => {
                    return Err(Opaque);
                }
                Some(_) => {}
            }
            let from = self.at;
            self.word()?;
            let is_in = self.chars[from..self.at] == ['i', 'n'];
            if position == 1 && !is_in {
                return Err(Opaque);
            }
        }
        Ok(())
    }

    /// Skips digits that belong to a redirection, and reports whether there were any.
    fn descriptor(&mut self) -> bool {
        let digits = self.chars[self.at..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count();
        let found = matches!(self.ahead(digits), Some('<' | '>'));
        self.at += if found { digits } else { 0 };
        found
    }

    fn redirection(&mut self, command: &mut SimpleCommand) -> Read<()> {
        let both = self.take('&');
        let input = self.take('<');
        if input && matches!(self.peek(), Some('<' | '(' | '>')) {
            return Err(Opaque);
        }
        if !input && !self.take('>') {
            return Err(Opaque);
        }
        let duplicates = !both && self.take('&');
        if !input && !duplicates && !self.take('>') && !both {
            self.take('|');
        }
        if self.peek() == Some('(') {
            return Err(Opaque);
        }
        self.blanks();
        if self.at_end_of_word() {
            return Err(Opaque);
        }
        let target = self.word()?;
        let harmless = !target.open
            && if duplicates {
                let target = target.text.strip_suffix('-').unwrap_or(&target.text);
                target.bytes().all(|byte| byte.is_ascii_digit())
            } else {
                target.text == "/dev/null"
            };
        if !harmless {
            command.redirection = Redirection::ToFile;
        } else if command.redirection == Redirection::None {
            command.redirection = Redirection::Harmless;
        }
        Ok(())
    }
}

/// Reports whether the text is `NAME=…`, `NAME+=…` or `NAME[…]=…`.
fn is_assignment(raw: &[char]) -> bool {
    let name = raw
        .iter()
        .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
        .count();
    let named = name > 0 && !raw[0].is_ascii_digit();
    match raw.get(name) {
        Some('=') => named,
        Some('+') => named && raw.get(name + 1) == Some(&'='),
        Some('[') => named && raw.contains(&'='),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
