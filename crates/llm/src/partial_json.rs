//! Tool arguments as they arrive: JSON that may still be growing, or that a model got slightly
//! wrong. The parser reads as much as possible and never fails. It does not check a schema, and it
//! has no state between calls: the caller decides how often to parse.

use std::borrow::Cow;

use pinion_jsonl::{ErrorPosition, javascript_error};
use serde_json::{Map, Number, Value};

use crate::surrogates::hex4;

/// Containers nested deeper than this are cut off, as strict parsing does.
const MAX_DEPTH: usize = 128;

/// Bytes of unreadable arguments that an error message quotes.
const SHOWN_BYTES: usize = 16 << 10;

/// The arguments in `text`, complete or not; an empty object when nothing can be read.
///
/// Strict JSON first, then repaired strict JSON, then whatever a lenient reader finds. The result
/// is not forced to be an object: text that is an array or a scalar yields that.
pub fn parse_arguments(text: &str) -> Value {
    read_arguments(text).0
}

/// Parses like [`parse_arguments`], and describes the error of text that only the lenient reader
/// could parse.
pub(crate) fn read_arguments(text: &str) -> (Value, Option<String>) {
    if text.trim().is_empty() {
        return (empty(), None);
    }
    if let Ok(value) = serde_json::from_str(text) {
        return (with_whole_numbers(value), None);
    }
    let repaired = repair(text);
    if let Cow::Owned(repaired) = &repaired
        && let Ok(value) = serde_json::from_str(repaired)
    {
        return (with_whole_numbers(value), None);
    }
    let value = parse_lenient(text)
        .or_else(|| parse_lenient(&repaired))
        .filter(|value| !value.is_null())
        .map_or_else(empty, with_whole_numbers);
    (value, Some(describe_error(text)))
}

/// Describes to a model what is wrong with the arguments it wrote.
fn describe_error(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES)];
    let more = if shown.len() < text.len() { " …" } else { "" };
    let why = javascript_error(text, ErrorPosition::LineAndColumn);
    let why = why.unwrap_or_else(|| "The arguments cannot be read as JSON".to_owned());
    format!("{why}\n\nReceived arguments:\n{shown}{more}")
}

/// Escapes raw control characters and doubles stray backslashes, inside string literals only.
///
/// A `\u` with fewer than four hexadecimal digits stays as it is.
pub fn repair(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired: Option<String> = None;
    // Everything before `copied` is already in `repaired`.
    let mut copied = 0;
    let mut in_string = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (replacement, length) = match byte {
            b'"' => {
                in_string = !in_string;
                (None, 1)
            }
            b'\\' if in_string => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u') => (None, 2),
                _ => (Some(r"\\".to_owned()), 1),
            },
            0x00..=0x1f if in_string => (Some(control_escape(byte)), 1),
            _ => (None, 1),
        };
        if let Some(replacement) = replacement {
            let target = repaired.get_or_insert_with(|| String::with_capacity(text.len() + 8));
            target.push_str(&text[copied..at]);
            target.push_str(&replacement);
            copied = at + 1;
        }
        at += length;
    }
    match repaired {
        None => Cow::Borrowed(text),
        Some(mut repaired) => {
            repaired.push_str(&text[copied..]);
            Cow::Owned(repaired)
        }
    }
}

/// Reads as much of `text` as possible, and closes what is still open.
///
/// `None` when not even the beginning of a value is there.
pub fn parse_lenient(text: &str) -> Option<Value> {
    Lenient {
        text: text.trim(),
        at: 0,
    }
    .value(0)
    .value
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn control_escape(byte: u8) -> String {
    match byte {
        0x08 => r"\b".to_owned(),
        0x0c => r"\f".to_owned(),
        b'\n' => r"\n".to_owned(),
        b'\r' => r"\r".to_owned(),
        b'\t' => r"\t".to_owned(),
        other => format!(r"\u{other:04x}"),
    }
}

/// Writes `30.0` and `3e1` as `30`: models write either, and tools read whole numbers.
fn with_whole_numbers(mut value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    fn walk(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                if let Some(float) = number.as_f64()
                    && float.fract() == 0.0
                    && float.abs() <= EXACT
                {
                    *number = Number::from(float as i64);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            Value::Object(members) => members.values_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

/// The result of reading one value.
struct Reading {
    /// The value, if enough of it is there.
    value: Option<Value>,
    /// The text ended or went wrong here: containers around this value close now.
    broken: bool,
}

impl Reading {
    fn complete(value: Value) -> Self {
        Self {
            value: Some(value),
            broken: false,
        }
    }

    fn cut(value: Value) -> Self {
        Self {
            value: Some(value),
            broken: true,
        }
    }

    fn unusable() -> Self {
        Self {
            value: None,
            broken: true,
        }
    }
}

struct Lenient<'a> {
    text: &'a str,
    at: usize,
}

impl Lenient<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Reading {
        self.skip_blanks();
        match self.peek() {
            None => Reading::unusable(),
            Some(b'"') => self.string(),
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Reading::unusable(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(_) => self.word().unwrap_or_else(|| self.number()),
        }
    }

    fn object(&mut self, depth: usize) -> Reading {
        self.at += 1;
        let mut members = Map::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Reading::complete(Value::Object(members));
                }
                Some(b'"') => {}
                _ => return Reading::cut(Value::Object(members)),
            }
            let Reading {
                value: Some(Value::String(key)),
                broken: false,
            } = self.string()
            else {
                return Reading::cut(Value::Object(members));
            };
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Reading::cut(Value::Object(members));
            }
            self.at += 1;
            let Reading { value, broken } = self.value(depth + 1);
            if let Some(value) = value {
                members.insert(key, value);
            }
            if broken {
                return Reading::cut(Value::Object(members));
            }
            self.skip_comma();
        }
    }

    fn array(&mut self, depth: usize) -> Reading {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Reading::complete(Value::Array(items));
            }
            let Reading { value, broken } = self.value(depth + 1);
            items.extend(value);
            if broken {
                return Reading::cut(Value::Array(items));
            }
            self.skip_comma();
        }
    }

    /// A missing comma between members is tolerated.
    fn skip_comma(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
        }
    }

    /// A string. One without its closing quote has the text so far, less an incomplete escape.
    fn string(&mut self) -> Reading {
        self.at += 1;
        let mut content = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = memchr::memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
            content.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                None => return Reading::cut(Value::String(content)),
                Some(b'"') => {
                    self.at += 1;
                    return Reading::complete(Value::String(content));
                }
                Some(_) => match self.escape() {
                    Escape::Character(character) => content.extend(character),
                    Escape::Unfinished => return Reading::cut(Value::String(content)),
                    Escape::Wrong if self.string_is_closed() => return Reading::unusable(),
                    Escape::Wrong => return Reading::cut(Value::String(content)),
                },
            }
        }
    }

    /// Reads the escape at the current backslash and moves past it.
    fn escape(&mut self) -> Escape {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let simple = match rest.first() {
            None => return Escape::Unfinished,
            Some(b'u') => return self.unicode_escape(),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(_) => return Escape::Wrong,
        };
        self.at += 2;
        Escape::Character(Some(simple))
    }

    fn unicode_escape(&mut self) -> Escape {
        let digits = &self.text.as_bytes()[self.at + 2..];
        let Some(unit) = hex4(digits) else {
            let unfinished = digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit);
            return if unfinished {
                Escape::Unfinished
            } else {
                Escape::Wrong
            };
        };
        self.at += 6;
        match unit {
            0xd800..=0xdbff => {
                let next = &self.text.as_bytes()[self.at..];
                let low = next.strip_prefix(b"\\u").and_then(hex4);
                match low {
                    Some(low @ 0xdc00..=0xdfff) => {
                        self.at += 6;
                        let code =
                            0x10000 + ((u32::from(unit) - 0xd800) << 10) + u32::from(low) - 0xdc00;
                        Escape::Character(char::from_u32(code))
                    }
                    // A Rust string cannot hold half a surrogate pair.
                    _ => Escape::Character(None),
                }
            }
            other => Escape::Character(char::from_u32(u32::from(other))),
        }
    }

    /// Reports whether the string around the current backslash has a closing quote further on.
    fn string_is_closed(&self) -> bool {
        let mut bytes = self.text.as_bytes()[self.at..].iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => {
                    bytes.next();
                }
                b'"' => return true,
                _ => {}
            }
        }
        false
    }

    /// `true`, `false`, `null` and JavaScript's other number words, or a prefix at the end.
    fn word(&mut self) -> Option<Reading> {
        const WORDS: [(&str, Value); 6] = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
            ("NaN", Value::Null),
            ("Infinity", Value::Null),
            ("-Infinity", Value::Null),
        ];
        let rest = &self.text[self.at..];
        for (word, value) in WORDS {
            if rest.starts_with(word) {
                self.at += word.len();
                return Some(Reading::complete(value));
            }
            if rest != "-" && word.starts_with(rest) {
                self.at = self.text.len();
                return Some(Reading::complete(value));
            }
        }
        None
    }

    /// A number. An incomplete exponent is cut; an incomplete fraction or a lone sign makes it
    /// unusable.
    fn number(&mut self) -> Reading {
        let rest = &self.text[self.at..];
        let length = rest
            .bytes()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let digits = &rest[..length];
        let parsed = serde_json::from_str::<Number>(digits).or_else(|_| {
            serde_json::from_str(
                digits
                    .trim_end_matches(['+', '-'])
                    .trim_end_matches(['e', 'E']),
            )
        });
        match parsed {
            Ok(number) => {
                self.at += length;
                Reading::complete(Value::Number(number))
            }
            Err(_) => Reading::unusable(),
        }
    }
}

enum Escape {
    /// The character, or nothing for half a surrogate pair.
    Character(Option<char>),
    /// The text ends inside the escape.
    Unfinished,
    /// Not an escape of JSON.
    Wrong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_cannot_be_repaired_is_complained_about() {
        for fine in [
            "",
            " ",
            "{}",
            r#"{"a":1}"#,
            "{\"a\":\"x\ny\"}",
            r#"{"a":"C:\q"}"#,
        ] {
            assert_eq!(read_arguments(fine).1, None, "{fine}");
        }
        let (value, error) = read_arguments(r#"{"command": "echo par"#);
        assert_eq!(value, serde_json::json!({"command": "echo par"}));
        let error = error.unwrap();
        let expected = "Unterminated string in JSON at position 21 (line 1 column 22)\n\n\
                        Received arguments:\n{\"command\": \"echo par";
        assert_eq!(error, expected);
        let long = format!("{{\"a\": \"{}", "é".repeat(20_000));
        assert!(read_arguments(&long).1.unwrap().len() < SHOWN_BYTES + 200);
    }
}
