//! Parses words: quotes, escapes and expansions.

use super::{Closing, Opaque, Read, ShellParser};
use crate::simple_command::Word;

impl ShellParser {
    pub(super) fn at_end_of_word(&self) -> bool {
        matches!(
            self.peek(),
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
        )
    }

    pub(super) fn word(&mut self) -> Read<Word> {
        let mut word = Word::default();
        let from = self.at;
        while !self.at_end_of_word() {
            let Some(c) = self.peek() else { break };
            self.at += 1;
            match c {
                '\\' => match self.peek() {
                    None => word.push('\\'),
                    // A word that continues on the next line could be a keyword or an expansion.
                    Some('\n' | '\0') => return Err(Opaque),
                    Some(next) => {
                        self.at += 1;
                        word.push(next);
                    }
                },
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '`' => return Err(Opaque),
                '$' if matches!(self.peek(), Some('\'' | '"')) => return Err(Opaque),
                '$' => self.dollar(&mut word)?,
                '*' | '?' | '[' | '{' => word.open(),
                '~' if self.begins_path(from) => word.open(),
                c if c.is_control() || c.is_whitespace() => return Err(Opaque),
                c => word.push(c),
            }
        }
        if self.peek() == Some('(') {
            return Err(Opaque);
        }
        match self.chars[from..self.at] {
            // The shell does not expand these words.
            ['['] => Ok(Word::literal("[")),
            ['{'] => Ok(Word::literal("{")),
            ['[', '['] => Ok(Word::literal("[[")),
            ['{', '}'] => Ok(Word::literal("{}")),
            _ => Ok(word),
        }
    }

    /// Reports whether the tilde just read is at a position where the shell expands it.
    fn begins_path(&self, from: usize) -> bool {
        let before = self.at - 1;
        before == from || matches!(self.chars[before - 1], ':' | '=')
    }

    fn single_quoted(&mut self, word: &mut Word) -> Read<()> {
        loop {
            let c = self.peek().ok_or(Opaque)?;
            self.at += 1;
            match c {
                '\'' => return Ok(()),
                '\0' => return Err(Opaque),
                c => word.push(c),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Read<()> {
        loop {
            let c = self.peek().ok_or(Opaque)?;
            self.at += 1;
            match c {
                '"' => return Ok(()),
                '\0' | '`' => return Err(Opaque),
                '$' => self.dollar(word)?,
                '\\' => {
                    let next = self.peek().ok_or(Opaque)?;
                    self.at += 1;
                    match next {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => word.push(next),
                        '\0' => return Err(Opaque),
                        next => {
                            word.push('\\');
                            word.push(next);
                        }
                    }
                }
                c => word.push(c),
            }
        }
    }

    /// Parses the expansion after a `$`.
    fn dollar(&mut self, word: &mut Word) -> Read<()> {
        match self.peek() {
            Some('(') if self.ahead(1) == Some('(') => return Err(Opaque),
            Some('(') => {
                self.at += 1;
                self.list(Closing::Parenthesis)?;
            }
            Some('{') => {
                self.at += 1;
                if !self.parameter() || !self.take('}') {
                    return Err(Opaque);
                }
            }
            Some('[') => return Err(Opaque),
            Some('\\') if self.ahead(1) == Some('\n') => return Err(Opaque),
            _ if self.parameter() => {}
            _ => {
                word.push('$');
                return Ok(());
            }
        }
        word.open();
        Ok(())
    }

    /// Skips the name of a parameter, and reports whether there was one.
    fn parameter(&mut self) -> bool {
        let Some(first) = self.peek() else {
            return false;
        };
        if first.is_ascii_alphabetic() || first == '_' {
            while self
                .peek()
                .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                self.at += 1;
            }
            return true;
        }
        let special = first.is_ascii_digit() || "@*#?-$!".contains(first);
        self.at += usize::from(special);
        special
    }
}
