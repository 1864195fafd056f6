//! The lexer: text between actions, and the tokens inside them.

use std::ops::Range;

use crate::error::Fault;

/// Literal text or one action.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Range<usize>),
    Action { offset: usize, tokens: Vec<Token> },
}

/// A token of an action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub offset: usize,
    /// Blanks precede the token: `.a .b` are two operands, `.a.b` is one.
    pub spaced: bool,
    pub word: Word,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Identifier(String),
    /// `.name`
    Field(String),
    /// `$` or `$name`, with the dollar sign.
    Variable(String),
    Dot,
    Text(String),
    Int(i64),
    Float(f64),
    Pipe,
    Declare,
    Assign,
    Comma,
    Open,
    Close,
}

impl Word {
    /// Returns the word as messages show it.
    pub fn shown(&self) -> String {
        match self {
            Self::Identifier(name) | Self::Variable(name) => format!("`{name}`"),
            Self::Field(name) => format!("`.{name}`"),
            Self::Dot => "`.`".to_owned(),
            Self::Text(_) => "a text literal".to_owned(),
            Self::Int(number) => format!("`{number}`"),
            Self::Float(number) => format!("`{number}`"),
            Self::Pipe => "`|`".to_owned(),
            Self::Declare => "`:=`".to_owned(),
            Self::Assign => "`=`".to_owned(),
            Self::Comma => "`,`".to_owned(),
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
        }
    }
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Splits a template into text and actions. Comments are dropped and trim markers applied.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>, Fault> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut trim_start = false;
    while at <= text.len() {
        let open = text[at..].find(LEFT).map(|found| at + found);
        let mut stretch = at..open.unwrap_or(text.len());
        if trim_start {
            while stretch.start < stretch.end && blank(bytes[stretch.start]) {
                stretch.start += 1;
            }
        }
        let Some(open) = open else {
            push_text(&mut pieces, stretch);
            break;
        };
        let mut inside = open + LEFT.len();
        if bytes.get(inside) == Some(&b'-') && bytes.get(inside + 1).is_some_and(|b| blank(*b)) {
            inside += 1;
            while stretch.end > stretch.start && blank(bytes[stretch.end - 1]) {
                stretch.end -= 1;
            }
        }
        push_text(&mut pieces, stretch);
        let mut scanner = Scanner {
            text,
            at: inside,
            open,
        };
        let (tokens, trim) = match scanner.comment()? {
            Some(trim) => (None, trim),
            None => {
                let (tokens, trim) = scanner.action()?;
                (Some(tokens), trim)
            }
        };
        if let Some(tokens) = tokens {
            pieces.push(Piece::Action {
                offset: open,
                tokens,
            });
        }
        trim_start = trim;
        at = scanner.at;
    }
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, stretch: Range<usize>) {
    if !stretch.is_empty() {
        pieces.push(Piece::Text(stretch));
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    open: usize,
}

impl Scanner<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) -> bool {
        let from = self.at;
        while self.byte(0).is_some_and(blank) {
            self.at += 1;
        }
        self.at > from
    }

    /// Skips `}}` or ` -}}` and reports whether it trims. `spaced`: blanks were just skipped.
    fn end(&mut self, spaced: bool) -> Option<bool> {
        let rest = &self.text[self.at..];
        if rest.starts_with(RIGHT) {
            self.at += RIGHT.len();
            return Some(false);
        }
        if spaced && rest.starts_with("-}}") {
            self.at += 1 + RIGHT.len();
            return Some(true);
        }
        None
    }

    fn comment(&mut self) -> Result<Option<bool>, Fault> {
        let from = self.at;
        self.skip_blanks();
        if !self.text[self.at..].starts_with("/*") {
            self.at = from;
            return Ok(None);
        }
        let start = self.at;
        let Some(end) = self.text[start + 2..].find("*/") else {
            return Err(Fault::syntax(
                start,
                "the comment has no end: expected `*/`",
            ));
        };
        self.at = start + 2 + end + 2;
        let spaced = self.skip_blanks();
        match self.end(spaced) {
            Some(trim) => Ok(Some(trim)),
            None => Err(Fault::syntax(
                self.at,
                "expected `}}` right after the comment; a comment is an action of its own",
            )),
        }
    }

    fn action(&mut self) -> Result<(Vec<Token>, bool), Fault> {
        let mut tokens = Vec::new();
        loop {
            let spaced = self.skip_blanks();
            if let Some(trim) = self.end(spaced) {
                return Ok((tokens, trim));
            }
            let offset = self.at;
            let word = self.word()?;
            tokens.push(Token {
                offset,
                spaced,
                word,
            });
        }
    }

    fn word(&mut self) -> Result<Word, Fault> {
        let offset = self.at;
        let Some(byte) = self.byte(0) else {
            return Err(Fault::syntax(
                self.open,
                "the action has no end: expected `}}`",
            ));
        };
        let single = |scanner: &mut Self, word: Word| {
            scanner.at += 1;
            Ok(word)
        };
        match byte {
            b'|' => single(self, Word::Pipe),
            b',' => single(self, Word::Comma),
            b'(' => single(self, Word::Open),
            b')' => single(self, Word::Close),
            b'=' => single(self, Word::Assign),
            b':' if self.byte(1) == Some(b'=') => {
                self.at += 2;
                Ok(Word::Declare)
            }
            b'"' => self.quoted(),
            b'`' => {
                let Some(end) = self.text[offset + 1..].find('`') else {
                    return Err(Fault::syntax(
                        offset,
                        "the raw text has no end: expected a backtick",
                    ));
                };
                self.at = offset + 1 + end + 1;
                // As in Go, a carriage return is not part of a raw string.
                Ok(Word::Text(
                    self.text[offset + 1..offset + 1 + end].replace('\r', ""),
                ))
            }
            b'\'' => self.character(),
            b'.' if !self.byte(1).is_some_and(|b| b.is_ascii_digit()) => {
                self.at += 1;
                let name = self.name();
                Ok(if name.is_empty() {
                    Word::Dot
                } else {
                    Word::Field(name)
                })
            }
            b'$' => {
                self.at += 1;
                Ok(Word::Variable(format!("${}", self.name())))
            }
            b'0'..=b'9' | b'+' | b'-' | b'.' => self.number(),
            _ => {
                let name = self.name();
                if name.is_empty() {
                    let shown = self.text[offset..].chars().next().unwrap_or(' ');
                    return Err(Fault::syntax(
                        offset,
                        format!(
                            "unexpected character {shown:?} in an action: expected a field, a variable, a function, a literal or `}}}}`"
                        ),
                    ));
                }
                Ok(Word::Identifier(name))
            }
        }
    }

    fn name(&mut self) -> String {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !(c == '_' || c.is_alphanumeric()))
            .unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_owned()
    }

    fn number(&mut self) -> Result<Word, Fault> {
        let offset = self.at;
        let bytes = self.text.as_bytes();
        let mut end = offset;
        let hexadecimal = bytes[offset..]
            .iter()
            .take(3)
            .any(|b| matches!(b, b'x' | b'X'));
        if matches!(bytes[end], b'+' | b'-') {
            end += 1;
        }
        while end < bytes.len() {
            let byte = bytes[end];
            let exponent_sign = matches!(byte, b'+' | b'-')
                && match bytes[end - 1] {
                    b'e' | b'E' => !hexadecimal && end > offset + 1,
                    b'p' | b'P' => true,
                    _ => false,
                };
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || exponent_sign) {
                break;
            }
            end += 1;
        }
        let literal = &self.text[offset..end];
        self.at = end;
        crate::number::literal(literal).ok_or_else(|| {
            Fault::syntax(
                offset,
                format!("`{literal}` is not a number: expected one such as 42, 0x2a or 1.5e3"),
            )
        })
    }

    fn quoted(&mut self) -> Result<Word, Fault> {
        let offset = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.chars().next().filter(|c| *c != '\n') else {
                return Err(Fault::syntax(
                    offset,
                    "the text has no end: expected a closing `\"` on the same line",
                ));
            };
            match next {
                '"' => {
                    self.at += 1;
                    return Ok(Word::Text(String::from_utf8_lossy(&bytes).into_owned()));
                }
                '\\' => {
                    let escaped = self.escape()?;
                    bytes.extend_from_slice(&escaped);
                }
                other => {
                    self.at += other.len_utf8();
                    bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }

    fn character(&mut self) -> Result<Word, Fault> {
        let offset = self.at;
        self.at += 1;
        let fault = || {
            Fault::syntax(
                offset,
                "expected one character between single quotes; texts stand in double quotes",
            )
        };
        let code = match self.text[self.at..].chars().next() {
            None | Some('\n' | '\'') => return Err(fault()),
            Some('\\') => {
                let escaped = self.escape()?;
                match std::str::from_utf8(&escaped) {
                    Ok(text) => text.chars().next().map_or(0, u32::from),
                    Err(_) => escaped.first().copied().map_or(0, u32::from),
                }
            }
            Some(other) => {
                self.at += other.len_utf8();
                u32::from(other)
            }
        };
        if self.byte(0) != Some(b'\'') {
            return Err(fault());
        }
        self.at += 1;
        Ok(Word::Int(i64::from(code)))
    }

    /// Parses an escape sequence of Go; the scanner is at its backslash.
    fn escape(&mut self) -> Result<Vec<u8>, Fault> {
        let offset = self.at;
        let fault = || {
            Fault::syntax(
                offset,
                "unknown escape: expected \\n, \\t, \\r, \\\\, \\\", \\x41, \\u00e9 or another of Go's",
            )
        };
        let kind = self.byte(1).ok_or_else(fault)?;
        let digits = |from: usize, count: usize, radix: u32| {
            self.text
                .get(from..from + count)
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                .and_then(|digits| u32::from_str_radix(digits, radix).ok())
        };
        let (bytes, length) = match kind {
            b'a' => (vec![7], 2),
            b'b' => (vec![8], 2),
            b'f' => (vec![12], 2),
            b'n' => (vec![b'\n'], 2),
            b'r' => (vec![b'\r'], 2),
            b't' => (vec![b'\t'], 2),
            b'v' => (vec![11], 2),
            b'\\' | b'"' | b'\'' => (vec![kind], 2),
            b'x' => (vec![digits(offset + 2, 2, 16).ok_or_else(fault)? as u8], 4),
            b'u' | b'U' => {
                let count = if kind == b'u' { 4 } else { 8 };
                let character = digits(offset + 2, count, 16)
                    .and_then(char::from_u32)
                    .ok_or_else(fault)?;
                (character.to_string().into_bytes(), 2 + count)
            }
            b'0'..=b'7' => {
                let code = digits(offset + 1, 3, 8).ok_or_else(fault)?;
                (vec![u8::try_from(code).map_err(|_| fault())?], 4)
            }
            _ => return Err(fault()),
        };
        self.at += length;
        Ok(bytes)
    }
}
