//! Skipping of values without recursion, so that ignored data may be nested deeply.

use crate::error::Problem;
use crate::read::{Read, Reader, Token};

/// The deepest nesting of a skipped value.
const SKIP_LIMIT: usize = 10_000;

impl Reader<'_> {
    /// Skips a value.
    pub(crate) fn skip(&mut self) -> Read<()> {
        let mut open: Vec<Token> = Vec::new();
        loop {
            match self.peek()? {
                Token::Null => {
                    self.null()?;
                }
                Token::Boolean => {
                    self.boolean()?;
                }
                Token::Number => {
                    self.number()?;
                }
                Token::Text => {
                    self.string()?;
                }
                token @ (Token::List | Token::Object) => {
                    self.at += 1;
                    if self.depth + open.len() >= SKIP_LIMIT {
                        return self.wrong(Problem::TooDeep);
                    }
                    open.push(token);
                    let (end, is_object) = ending(token);
                    if !self.take(end) {
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                    open.pop();
                }
            }
            // A value has ended: continue with its next sibling or with its parent's.
            loop {
                let Some(&token) = open.last() else {
                    return Ok(());
                };
                let (end, is_object) = ending(token);
                if self.take(end) {
                    open.pop();
                    continue;
                }
                if !self.take(b',') {
                    return self.syntax("a comma or a bracket is missing");
                }
                if is_object {
                    self.key()?;
                }
                break;
            }
        }
    }

    /// Skips a value and appends it without blanks.
    pub(crate) fn copy(&mut self, out: &mut Vec<u8>) -> Read<()> {
        self.next();
        let start = self.at;
        self.skip()?;
        let value = &self.text.as_bytes()[start..self.at];
        let (mut in_text, mut escaped, mut kept) = (false, false, 0);
        for (at, &byte) in value.iter().enumerate() {
            if !in_text && byte.is_ascii_whitespace() {
                out.extend_from_slice(&value[kept..at]);
                kept = at + 1;
            }
            if byte == b'"' && !escaped {
                in_text = !in_text;
            }
            escaped = in_text && byte == b'\\' && !escaped;
        }
        out.extend_from_slice(&value[kept..]);
        Ok(())
    }
}

fn ending(token: Token) -> (u8, bool) {
    match token {
        Token::Object => (b'}', true),
        _ => (b']', false),
    }
}
