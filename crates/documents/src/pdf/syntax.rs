//! The syntax of PDF files and their content streams.

use std::collections::BTreeMap;

/// The deepest nesting of arrays and dictionaries.
const MAX_DEPTH: usize = 48;

/// The most values in one object; no part of a text needs more.
const MAX_VALUES: usize = 400_000;

/// The steps for a value.
const VALUE_COST: usize = 16;

/// Words that stand between objects and never in one.
const STRUCTURE: &[&[u8]] = &[
    b"obj",
    b"endobj",
    b"stream",
    b"endstream",
    b"xref",
    b"trailer",
];

pub(super) type Dictionary = BTreeMap<Vec<u8>, Object>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    /// Also used for booleans, which do not affect text.
    Null,
    Number(f64),
    Name(Vec<u8>),
    String(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Dictionary),
    /// The number of another object.
    Reference(u32),
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn index(&self) -> Option<usize> {
        let number = self.number()?;
        (number.fract() == 0.0 && (0.0..1e12).contains(&number)).then_some(number as usize)
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn array(self) -> Option<Vec<Object>> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    pub(super) fn dictionary(self) -> Option<Dictionary> {
        match self {
            Self::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    pub(super) fn reference(&self) -> Option<u32> {
        match self {
            Self::Reference(number) => Some(*number),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Number(f64),
    Name(Vec<u8>),
    String(Vec<u8>),
    ArrayOpen,
    ArrayClose,
    DictionaryOpen,
    DictionaryClose,
    Keyword(&'a [u8]),
}

/// Splits bytes into tokens and builds objects from them.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
    /// `12 0 R` is a reference: true in a file, false in instructions.
    references: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at: at.min(bytes.len()),
            values: 0,
            references: true,
        }
    }

    /// Creates a lexer for drawing instructions.
    pub(super) fn of_instructions(bytes: &'a [u8], at: usize) -> Self {
        Self {
            references: false,
            ..Self::new(bytes, at)
        }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the steps of reading since `start`: bytes, and values, which take more steps than
    /// their bytes.
    pub(super) fn cost_since(&self, start: usize) -> usize {
        self.at.saturating_sub(start) + self.values * VALUE_COST
    }

    /// Continues at another position.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                let rest = &self.bytes[self.at..];
                self.at += memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            } else if is_space(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    pub(super) fn token(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let start = self.at;
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'[' => Token::ArrayOpen,
            b']' => Token::ArrayClose,
            b'(' => Token::String(self.literal()),
            b'/' => Token::Name(self.name()),
            b'<' if self.peek() == Some(b'<') => {
                self.at += 1;
                Token::DictionaryOpen
            }
            b'<' => Token::String(self.hexadecimal()),
            b'>' if self.peek() == Some(b'>') => {
                self.at += 1;
                Token::DictionaryClose
            }
            b'>' | b')' | b'{' | b'}' => Token::Keyword(&self.bytes[start..self.at]),
            _ => {
                while self.peek().is_some_and(is_regular) {
                    self.at += 1;
                }
                let word = &self.bytes[start..self.at];
                number(word).map_or(Token::Keyword(word), Token::Number)
            }
        })
    }

    /// Reads the next object of a file; `None` at an end, an error or a word that is not an object.
    pub(super) fn object(&mut self) -> Option<Object> {
        let token = self.token()?;
        self.object_from(token, 0)
    }

    /// Reads the object that begins with `token`.
    pub(super) fn object_from(&mut self, token: Token<'a>, depth: usize) -> Option<Object> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return None;
        }
        Some(match token {
            Token::Number(number) => self.reference(number).unwrap_or(Object::Number(number)),
            Token::Name(name) => Object::Name(name),
            Token::String(string) => Object::String(string),
            Token::ArrayOpen => {
                let mut array = Vec::new();
                loop {
                    match self.token()? {
                        Token::ArrayClose => break Object::Array(array),
                        token => array.push(self.object_from(token, depth + 1)?),
                    }
                }
            }
            Token::DictionaryOpen => {
                let mut dictionary = Dictionary::new();
                loop {
                    match self.token()? {
                        Token::DictionaryClose => break Object::Dictionary(dictionary),
                        Token::Name(key) => {
                            let token = self.token()?;
                            if token == Token::DictionaryClose {
                                break Object::Dictionary(dictionary);
                            }
                            let value = self.object_from(token, depth + 1)?;
                            dictionary.insert(key, value);
                        }
                        _ => return None,
                    }
                }
            }
            Token::Keyword(b"null" | b"true" | b"false") => Object::Null,
            // An unknown word is null and does not invalidate the object around it, unless it shows
            // that the object's end is missing.
            Token::Keyword(word) if depth > 0 && !STRUCTURE.contains(&word) => Object::Null,
            Token::ArrayClose | Token::DictionaryClose | Token::Keyword(_) => return None,
        })
    }

    /// Reads `12 0 R` after its first number.
    fn reference(&mut self, first: f64) -> Option<Object> {
        let number = u32::try_from(Object::Number(first).index()?).ok()?;
        if !self.references || !self.peek().is_some_and(is_space) {
            return None;
        }
        let mut ahead = self.clone();
        ahead.skip_space();
        if !ahead.peek()?.is_ascii_digit() {
            return None;
        }
        let Token::Number(_) = ahead.token()? else {
            return None;
        };
        ahead.skip_space();
        if ahead.peek()? != b'R'
            || ahead
                .bytes
                .get(ahead.at + 1)
                .is_some_and(|next| is_regular(*next))
        {
            return None;
        }
        self.at = ahead.at + 1;
        Some(Object::Reference(number))
    }

    fn name(&mut self) -> Vec<u8> {
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| is_regular(*byte)) {
            self.at += 1;
            let digits = self
                .bytes
                .get(self.at..self.at + 2)
                .filter(|_| byte == b'#');
            match digits.and_then(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?)) {
                Some(escaped) => {
                    name.push(escaped);
                    self.at += 2;
                }
                None => name.push(byte),
            }
        }
        name
    }

    fn literal(&mut self) -> Vec<u8> {
        let mut string = Vec::new();
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut string);
                    continue;
                }
                _ => {}
            }
            string.push(byte);
        }
        string
    }

    fn escape(&mut self, string: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => string.push(b'\n'),
            b'r' => string.push(b'\r'),
            b't' => string.push(b'\t'),
            b'b' => string.push(8),
            b'f' => string.push(12),
            b'\r' => self.at += usize::from(self.peek() == Some(b'\n')),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else {
                        break;
                    };
                    self.at += 1;
                    code = code * 8 + u32::from(digit - b'0');
                }
                string.push(code as u8);
            }
            other => string.push(other),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let mut string = Vec::new();
        let mut half = None;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            let Some(digit) = hex(byte) else { continue };
            match half.take() {
                Some(high) => string.push(high << 4 | digit),
                None => half = Some(digit),
            }
        }
        string.extend(half.map(|high| high << 4));
        string
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !b"()<>[]{}/%".contains(&byte)
}

pub(super) fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn number(word: &[u8]) -> Option<f64> {
    if !word
        .iter()
        .all(|byte| byte.is_ascii_digit() || b"+-.".contains(byte))
        || word.len() > 64
    {
        return None;
    }
    let text = std::str::from_utf8(word).ok()?;
    let value: Option<f64> = text.parse().ok();
    // Some programs write `--3` and `1.2-3`.
    let tolerant = || {
        text.trim_start_matches('-')
            .split('-')
            .next()?
            .parse()
            .ok()
            .map(|n: f64| -n)
    };
    value.or_else(tolerant).filter(|number| number.is_finite())
}
