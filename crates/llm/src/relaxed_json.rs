//! JSON files that people write by hand: comments and trailing commas are allowed, and every
//! problem has a line and a column.
//!
//! The relaxed parts are blanked out, so that offsets into the cleaned text are offsets into the
//! file. Parsing itself is left to `serde_json`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The text with a byte order mark, comments and trailing commas replaced by blanks.
pub(crate) fn cleaned(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes[..3].fill(b' ');
    }
    let mut comma = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(&bytes, at);
                comma = None;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = comment_end(&bytes, at);
                for byte in &mut bytes[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Whole characters were replaced by blanks, so this is UTF-8 as before.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The offset after the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The offset after the comment that starts at `at`.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 2..];
    let length = if bytes[at + 1] == b'/' {
        rest.iter().position(|&byte| byte == b'\n')
    } else {
        rest.windows(2)
            .position(|pair| pair == b"*/")
            .map(|length| length + 2)
    };
    length.map_or(bytes.len(), |length| at + 2 + length)
}

/// A position in a file, counted from one; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    line: usize,
    column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The position of the byte at `offset`.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The offset of `part`, a slice of `text`.
pub(crate) fn offset_of(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) position: Position,
    pub(crate) what: String,
}

impl Problem {
    /// Locates `error`, which occurred in `part`, a slice of `text`.
    pub(crate) fn from_error(text: &str, part: &str, error: &serde_json::Error) -> Self {
        let line_start = match error.line() {
            0 | 1 => 0,
            line => part
                .match_indices('\n')
                .nth(line - 2)
                .map_or(0, |(newline, _)| newline + 1),
        };
        let offset = offset_of(text, part) + line_start + error.column().saturating_sub(1);
        Self {
            position: position(text, offset),
            what: pinion_jsonl::explain(error),
        }
    }

    /// A problem with `part`, a slice of `text`, as a whole.
    pub(crate) fn with_part(text: &str, part: &str, what: impl Into<String>) -> Self {
        Self {
            position: position(text, offset_of(text, part)),
            what: what.into(),
        }
    }
}

/// The members of an object in order, as far as the text could be read, and the error that stopped
/// it.
pub(crate) type Members<'t> = (Vec<(String, &'t RawValue)>, Option<Problem>);

/// The members of the object that is all of `text`, or of its member `inside`.
///
/// The members before a syntax error are returned.
pub(crate) fn members<'t>(text: &'t str, inside: Option<&str>) -> Members<'t> {
    let mut members = Vec::new();
    let mut parser = serde_json::Deserializer::from_str(text);
    let result = match inside {
        None => Object {
            members: &mut members,
        }
        .deserialize(&mut parser),
        Some(name) => Outer {
            name,
            members: &mut members,
        }
        .deserialize(&mut parser),
    };
    let result = result.and_then(|()| parser.end());
    let problem = result
        .err()
        .map(|error| Problem::from_error(text, text, &error));
    (members, problem)
}

struct Object<'m, 't> {
    members: &'m mut Vec<(String, &'t RawValue)>,
}

impl<'t> DeserializeSeed<'t> for Object<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for Object<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_entry::<String, &'t RawValue>()? {
            self.members.push(member);
        }
        Ok(())
    }
}

struct Outer<'m, 't, 'n> {
    name: &'n str,
    members: &'m mut Vec<(String, &'t RawValue)>,
}

impl<'t> DeserializeSeed<'t> for Outer<'_, 't, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for Outer<'_, 't, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the member \"{}\"", self.name)
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.name {
                found = true;
                map.next_value_seed(Object {
                    members: &mut *self.members,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found {
            Ok(())
        } else {
            Err(A::Error::custom(format!(
                "missing member \"{}\"",
                self.name
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        let text =
            "{ // one\n \"a\": [1, 2,], /* two\n , } */ \"b\": \"// no, /* comment */,}\",\n}";
        let value: Value = serde_json::from_str(&cleaned(text)).unwrap();
        assert_eq!(value, json!({"a": [1, 2], "b": "// no, /* comment */,}"}));
    }

    #[test]
    fn two_commas_are_still_wrong() {
        assert!(serde_json::from_str::<Value>(&cleaned("[1,,]")).is_err());
    }

    #[test]
    fn places_are_those_of_the_file() {
        let text = cleaned("{\n  // ünïcödé\n  \"a\": {\"b\": 1},\n  \"é\": tru }");
        let (members, problem) = members(&text, None);
        assert_eq!(members.len(), 1);
        assert_eq!(problem.unwrap().position.to_string(), "line 4, column 11");
    }

    #[test]
    fn members_before_a_syntax_error_are_kept() {
        let (kept, problem) = members(
            "{\"providers\":{\"a\":{},\"b\":{},\"c\":{]}}",
            Some("providers"),
        );
        assert_eq!(
            kept.iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(problem.is_some());
    }

    proptest! {
        #[test]
        fn cleaning_keeps_length_and_lines(text in "[\\PC\n]{0,80}") {
            let cleaned = cleaned(&text);
            prop_assert_eq!(cleaned.len(), text.len());
            prop_assert_eq!(cleaned.matches('\n').count(), text.matches('\n').count());
        }

        #[test]
        fn plain_json_is_left_alone(numbers in proptest::collection::vec(any::<i32>(), 0..5), text in "\\PC{0,20}") {
            let json = json!({"numbers": numbers, "text": text}).to_string();
            prop_assert_eq!(cleaned(&json), json);
        }
    }
}
