//! Reads a shell command far enough to say which simple commands it runs.
//!
//! It reads what every common shell reads in the same way. What it does not know, or knows to differ between
//! shells, makes the command *opaque*: nothing is concluded from it, and somebody is asked. So the
//! mistake to avoid is never to ask too often, but to take something for harmless that is not.
//!
//! Known: words, quotes, `$NAME`, `$(…)`, patterns of file names, redirections, lists, pipes, groups, `if`,
//! `while`, `until`, `for … in`. Opaque: here-documents, backquotes, arithmetic, functions, `case`, `[[`, arrays,
//! process substitution, expansions with operators, control characters and odd spaces outside quotes.

mod words;

use crate::line::{Redirection, Simple};

/// Command substitutions and groups deeper than this are opaque.
const DEEPEST: usize = 32;

/// What a command runs.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command found, also those inside groups and substitutions.
    pub commands: Vec<Simple>,
    /// There is, or may be, more than was found.
    pub opaque: bool,
}

/// Reads a command.
pub(crate) fn read(text: &str) -> Script {
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
        commands: Vec::new(),
    };
    let read = reader.list(Closing::End);
    Script {
        commands: reader.commands,
        opaque: read.is_err(),
    }
}

/// It is not clear what the shell makes of the rest.
struct Opaque;

type Read<T> = Result<T, Opaque>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    End,
    Parenthesis,
}

/// What a word in the place of a command's name means to the shell.
enum Keyword {
    /// A command follows.
    Transparent,
    /// A name and words follow.
    Loop,
    /// Something that is not read here.
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

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    commands: Vec<Simple>,
}

impl Reader {
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

    /// Commands until the end, or until the parenthesis that closes them.
    fn list(&mut self, closing: Closing) -> Read<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
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

    /// One simple command, or a keyword and the command behind it.
    fn simple(&mut self) -> Read<()> {
        let mut command = Simple::default();
        let read = self.simple_into(&mut command);
        if !command.is_empty() {
            self.commands.push(command);
        }
        read
    }

    fn simple_into(&mut self, command: &mut Simple) -> Read<()> {
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
                        let plain = word.plain_since(&self.chars[from..self.at]);
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
                        // What is run is only known when it runs.
                        return Err(Opaque);
                    } else {
                        command.words.push(word);
                    }
                }
            }
        }
        Ok(())
    }

    /// To some shells `&>` is an end and a redirection: what follows would be another command.
    fn ends_here(&mut self) -> Read<()> {
        self.blanks();
        match (self.peek(), self.ahead(1)) {
            (Some('&'), Some('>')) => Err(Opaque),
            (None | Some('\n' | ';' | '|' | '&' | ')' | '#'), _) => Ok(()),
            _ => Err(Opaque),
        }
    }

    /// `NAME in WORDS`, which run nothing themselves.
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

    /// Whether digits that belong to a redirection come next; goes past them.
    fn descriptor(&mut self) -> bool {
        let digits = self.chars[self.at..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count();
        let found = matches!(self.ahead(digits), Some('<' | '>'));
        self.at += if found { digits } else { 0 };
        found
    }

    fn redirection(&mut self, command: &mut Simple) -> Read<()> {
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

/// `NAME=…`, `NAME+=…` or `NAME[…]=…`, as it is written.
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
