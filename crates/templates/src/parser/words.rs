//! The tokens of an action, read one by one.

use crate::error::Fault;
use crate::lexer::{Token, Word};

/// The tokens of one action and the position in them.
pub(super) struct Words {
    tokens: Vec<Token>,
    at: usize,
    /// The offset of the action; it is reported for a missing token.
    pub end: usize,
}

impl Words {
    pub fn new(offset: usize, tokens: Vec<Token>) -> Self {
        Self {
            tokens,
            at: 0,
            end: offset,
        }
    }

    pub fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub fn peek_at(&self, ahead: usize) -> Option<&Word> {
        self.tokens.get(self.at + ahead).map(|token| &token.word)
    }

    pub fn peek(&self) -> Option<&Word> {
        self.peek_at(0)
    }

    pub fn next(&mut self) -> Option<Word> {
        let word = self.peek().cloned();
        self.at += 1;
        word
    }

    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub fn offset(&self) -> usize {
        self.token().map_or(self.end, |token| token.offset)
    }

    pub fn rest(mut self) -> Vec<Token> {
        self.tokens.split_off(self.at.min(self.tokens.len()))
    }

    /// Parses `.a.b` directly after the previous token.
    pub fn fields(&mut self) -> Vec<String> {
        let mut fields = Vec::new();
        while let Some(Token {
            spaced: false,
            word: Word::Field(name),
            ..
        }) = self.token()
        {
            fields.push(name.clone());
            self.at += 1;
        }
        fields
    }

    pub fn name(&mut self, after: &str) -> Result<String, Fault> {
        let offset = self.offset();
        match self.next() {
            Some(Word::Text(name)) => Ok(name),
            _ => Err(Fault::syntax(
                offset,
                format!("expected a name in quotes after `{after}`"),
            )),
        }
    }

    pub fn finish(&self, what: &str) -> Result<(), Fault> {
        match self.token() {
            None => Ok(()),
            Some(token) => Err(Fault::syntax(
                token.offset,
                format!(
                    "unexpected {} after {what}: expected `}}}}`",
                    token.word.shown()
                ),
            )),
        }
    }
}
