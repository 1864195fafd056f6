//! The JSON reader, with protobuf's rules: no name twice, no lone surrogates, nothing after the
//! end, bounded depth.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pinion_text::shorten;

use crate::codec::{Codec, Enum};
use crate::error::{DecodeError, Problem};
use crate::integer;
use crate::message::Strictness;
use crate::text::Text;

/// Characters of a text that an error message shows.
const MAX_SHOWN: usize = 40;

/// The deepest nesting of messages and undeclared data.
const DEPTH_LIMIT: usize = 100;

/// The kind of the next value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Null,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    strictness: Strictness,
}

pub(crate) type Read<T> = Result<T, DecodeError>;

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8], strictness: Strictness) -> Read<Self> {
        let text = std::str::from_utf8(text)
            .map_err(|error| DecodeError::new(Problem::NotUtf8, error.valid_up_to()))?;
        let (at, depth) = (0, 0);
        Ok(Self {
            text,
            at,
            depth,
            strictness,
        })
    }

    pub(crate) fn strictness(&self) -> Strictness {
        self.strictness
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn wrong<T>(&self, problem: Problem) -> Read<T> {
        Err(DecodeError::new(problem, self.at))
    }

    pub(crate) fn syntax<T>(&self, what: &'static str) -> Read<T> {
        self.wrong(Problem::Syntax(what))
    }

    /// Skips blanks and returns the next byte.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => return Some(*byte),
            }
        }
        None
    }

    /// Skips `byte` if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Succeeds if only blanks are left.
    pub(crate) fn end(&mut self) -> Read<()> {
        match self.next() {
            None => Ok(()),
            Some(_) => self.syntax("something stands behind the end"),
        }
    }

    /// Returns the kind of the next value.
    pub(crate) fn peek(&mut self) -> Read<Token> {
        Ok(match self.next() {
            Some(b'"') => Token::Text,
            Some(b'{') => Token::Object,
            Some(b'[') => Token::List,
            Some(b'a'..=b'z') => return self.word(),
            Some(b'-' | b'0'..=b'9') => Token::Number,
            Some(_) => return self.syntax("a value cannot begin like this"),
            None => return self.syntax("a value is missing"),
        })
    }

    fn expect(&mut self, token: Token, name: &'static str) -> Read<()> {
        if self.peek()? == token {
            Ok(())
        } else {
            self.wrong(Problem::WrongKind(name))
        }
    }

    /// Returns which of `true`, `false` and `null` is next.
    fn word(&self) -> Read<Token> {
        let rest = &self.text[self.at..];
        let letters = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        match &rest[..rest.find(letters).unwrap_or(rest.len())] {
            "null" => Ok(Token::Null),
            "true" | "false" => Ok(Token::Boolean),
            _ => self.syntax("a word that is not null, true or false"),
        }
    }

    /// Skips `null` if it is next.
    pub(crate) fn null(&mut self) -> Read<bool> {
        let is_next = self.peek()? == Token::Null;
        self.at += if is_next { "null".len() } else { 0 };
        Ok(is_next)
    }

    pub(crate) fn boolean(&mut self) -> Read<bool> {
        self.expect(Token::Boolean, "true or false")?;
        let value = self.text[self.at..].starts_with("true");
        self.at += if value { "true".len() } else { "false".len() };
        Ok(value)
    }

    /// Returns the text of a number.
    pub(crate) fn number(&mut self) -> Read<&'a str> {
        self.expect(Token::Number, "a number")?;
        let rest = &self.text[self.at..];
        let Some(length) = integer::length(rest.as_bytes()) else {
            return self.syntax("a number that is not complete");
        };
        let joined = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
        if rest[length..].starts_with(joined) {
            return self.syntax("a number with something else behind it");
        }
        self.at += length;
        Ok(&rest[..length])
    }

    pub(crate) fn float(&mut self) -> Read<f64> {
        let at = self.at;
        let text = self.number()?;
        match text.parse::<f64>().ok().filter(|it| it.is_finite()) {
            Some(value) => Ok(value),
            None => {
                let problem = Problem::OutOfRange(shorten(text, MAX_SHOWN), "a number of 64 bits");
                Err(DecodeError::new(problem, at))
            }
        }
    }

    /// Reads a whole number, plain or in quotes.
    pub(crate) fn integer<T: TryFrom<i128>>(&mut self, expected: &'static str) -> Read<T> {
        let token = self.peek()?;
        let at = self.at;
        let text = match token {
            Token::Number => Cow::Borrowed(self.number()?),
            Token::Text => self.string()?,
            _ => return self.wrong(Problem::WrongKind(expected)),
        };
        let value = integer::is_number(&text)
            .then(|| integer::parse(&text))
            .flatten();
        match value.and_then(|value| T::try_from(value).ok()) {
            Some(value) => Ok(value),
            None => {
                let problem = Problem::OutOfRange(shorten(&text, MAX_SHOWN), expected);
                Err(DecodeError::new(problem, at))
            }
        }
    }

    /// Reads the name or the number of an enum value.
    pub(crate) fn enumeration<T: Enum>(&mut self) -> Read<T> {
        let token = self.peek()?;
        let at = self.at;
        match token {
            Token::Text => {
                let name = self.string()?;
                match (T::from_name(&name), self.strictness) {
                    (Some(value), _) => Ok(value),
                    (None, Strictness::Lenient) => Ok(T::default()),
                    (None, Strictness::Strict) => {
                        let problem = Problem::UnknownValue(shorten(&name, MAX_SHOWN));
                        Err(DecodeError::new(problem, at))
                    }
                }
            }
            Token::Number => Ok(T::from_number(self.integer("a whole number of 32 bits")?)),
            _ => self.wrong(Problem::WrongKind("the name of a value")),
        }
    }

    pub(crate) fn string(&mut self) -> Read<Cow<'a, str>> {
        self.expect(Token::Text, "a text")?;
        self.at += 1;
        let start = self.at;
        self.plain_characters();
        let begin = &self.text[start..self.at];
        if self.text.as_bytes().get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(begin));
        }
        let mut text = begin.to_owned();
        loop {
            let start = self.at;
            self.plain_characters();
            text.push_str(&self.text[start..self.at]);
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return self.syntax("a control character in a text"),
                None => return self.syntax("a text without an end"),
            }
        }
    }

    /// Skips characters that need no escape.
    fn plain_characters(&mut self) {
        self.at += pinion_jsonl::json::plain_length(&self.text.as_bytes()[self.at..]);
    }

    fn escape(&mut self) -> Read<char> {
        let character = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.syntax("an escape that JSON does not have"),
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Read<char> {
        let Some(unit) = self.unit(self.at) else {
            return self.syntax("an escape without four hexadecimal digits");
        };
        let (scalar, length) = match unit {
            0xd800..0xdc00 => match self.unit(self.at + 6) {
                Some(low @ 0xdc00..0xe000) => {
                    (0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), 12)
                }
                _ => return self.syntax("half of a surrogate pair"),
            },
            _ => (unit, 6),
        };
        match char::from_u32(scalar) {
            Some(character) => {
                self.at += length;
                Ok(character)
            }
            None => self.syntax("half of a surrogate pair"),
        }
    }

    /// Returns the code unit of the escape `\uXXXX` at `at`.
    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, &digit| {
            Some(unit * 16 + char::from(digit).to_digit(16)?)
        })
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            self.wrong(Problem::TooDeep)
        } else {
            Ok(())
        }
    }

    /// Calls `each` for every member of an object; `each` reads the value.
    pub(crate) fn members(
        &mut self,
        each: &mut dyn FnMut(&mut Self, Cow<'a, str>) -> Read<()>,
    ) -> Read<()> {
        self.expect(Token::Object, "an object")?;
        self.at += 1;
        self.deeper()?;
        if !self.take(b'}') {
            loop {
                let key = self.key()?;
                each(self, key)?;
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return self.syntax("a comma or a brace is missing");
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub(crate) fn key(&mut self) -> Read<Cow<'a, str>> {
        if self.next() != Some(b'"') {
            return self.syntax("a name in quotes is missing");
        }
        let key = self.string()?;
        if self.take(b':') {
            Ok(key)
        } else {
            self.syntax("a colon is missing")
        }
    }

    pub(crate) fn list<T: Codec>(&mut self) -> Read<Vec<T>> {
        self.expect(Token::List, "a list")?;
        self.at += 1;
        self.deeper()?;
        let mut values = Vec::new();
        if !self.take(b']') {
            loop {
                let value = T::read(self);
                values.push(value.map_err(|error| error.inside(&values.len().to_string()))?);
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.syntax("a comma or a bracket is missing");
                }
            }
        }
        self.depth -= 1;
        Ok(values)
    }

    pub(crate) fn map<T: Codec>(&mut self) -> Read<BTreeMap<Text, T>> {
        let mut values = BTreeMap::new();
        self.members(&mut |reader, key| {
            let at = reader.position();
            let value = T::read(reader).map_err(|error| error.inside(&key))?;
            match values.insert(Text::from(key.clone().into_owned()), value) {
                None => Ok(()),
                Some(_) => Err(DecodeError::new(Problem::Duplicate, at).inside(&key)),
            }
        })?;
        Ok(values)
    }
}
