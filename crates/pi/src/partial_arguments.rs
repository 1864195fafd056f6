//! The arguments of a tool call while they stream, as JSON that is valid after every delta.
//!
//! Each update of a streamed call shows the arguments so far. Parsing the whole text again for each delta would take
//! time quadratic in its length, so it is parsed once: complete parts are printed to a buffer that is only appended to,
//! and a few bytes close the open parts. Text that is not plain JSON is left to the lenient parser of the whole text.

use pinion_jsonl::json;
use pinion_llm::parse_arguments;
use serde_json::Value;

/// The arguments so far.
#[derive(Debug)]
pub(crate) struct PartialArguments {
    raw: String,
    reader: ArgumentsReader,
    /// The bytes that close the shown part; or the whole value, if the reader gave up.
    closing: Vec<u8>,
}

/// Parses plain JSON incrementally.
#[derive(Debug, Default)]
struct ArgumentsReader {
    /// The JSON printed so far.
    out: Vec<u8>,
    /// Length of `out` without blanks at the end of an open string, which are not shown yet.
    shown: usize,
    open: Vec<Container>,
    state: ReaderState,
    /// An incomplete escape, number or word.
    pending: String,
    /// The name of a member whose value has not begun.
    name: Option<String>,
    gave_up: bool,
}

#[derive(Debug)]
enum Container {
    Object { names: Vec<String> },
    Array { empty: bool },
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    /// A value begins here.
    #[default]
    Value,
    /// A member's name, or the end of the object, begins here.
    Name,
    /// Inside a member's name.
    InName,
    /// The colon after a name.
    Colon,
    /// Inside a string value.
    InString,
    InNumber,
    InWord,
    /// After a value.
    AfterValue,
    /// The whole value was read.
    Complete,
}

impl Default for PartialArguments {
    fn default() -> Self {
        Self {
            raw: String::new(),
            reader: ArgumentsReader::default(),
            closing: b"{}".to_vec(),
        }
    }
}

impl PartialArguments {
    /// Adds the next piece of raw JSON.
    pub fn push(&mut self, piece: &str) {
        self.raw.push_str(piece);
        self.closing.clear();
        for character in piece.chars() {
            if self.reader.gave_up || !self.reader.take(character) {
                self.reader.gave_up = true;
                break;
            }
        }
        if self.reader.gave_up {
            json::append(&mut self.closing, &parse_arguments(&self.raw));
        } else {
            self.reader.close(&mut self.closing);
        }
    }

    /// Returns the JSON of the arguments so far, in two slices.
    pub fn snapshot(&self) -> (&[u8], &[u8]) {
        if self.reader.gave_up {
            return (b"", &self.closing);
        }
        (&self.reader.out[..self.reader.shown], &self.closing)
    }
}

impl ArgumentsReader {
    /// Reads one character. Returns `false` if the text is not plain JSON.
    fn take(&mut self, character: char) -> bool {
        match self.state {
            ReaderState::InName | ReaderState::InString => self.take_string(character),
            ReaderState::InNumber => self.take_number(character),
            ReaderState::InWord => self.take_word(character),
            // Text after a complete value is ignored.
            ReaderState::Complete => true,
            _ if matches!(character, ' ' | '\t' | '\n' | '\r') => true,
            ReaderState::Value => self.begin_value(character),
            ReaderState::Name => self.begin_name(character),
            ReaderState::Colon => {
                self.state = ReaderState::Value;
                character == ':'
            }
            ReaderState::AfterValue => self.after_value(character),
        }
    }

    fn begin_value(&mut self, character: char) -> bool {
        match character {
            '"' => {
                self.print_name();
                self.out.push(b'"');
                self.shown = self.out.len();
                self.state = ReaderState::InString;
            }
            '{' => {
                self.print_name();
                self.print(b"{");
                self.open.push(Container::Object { names: Vec::new() });
                self.state = ReaderState::Name;
            }
            '[' => {
                self.print_name();
                self.print(b"[");
                self.open.push(Container::Array { empty: true });
                self.state = ReaderState::Value;
            }
            ']' if matches!(self.open.last(), Some(Container::Array { empty: true })) => {
                return self.end_container(']');
            }
            '-' | '0'..='9' => {
                self.pending.push(character);
                self.state = ReaderState::InNumber;
            }
            't' | 'f' | 'n' => {
                self.pending.push(character);
                self.state = ReaderState::InWord;
            }
            _ => return false,
        }
        true
    }

    fn begin_name(&mut self, character: char) -> bool {
        match character {
            '"' => {
                self.name = Some(String::new());
                self.state = ReaderState::InName;
                true
            }
            // A comma before the brace is not plain JSON.
            '}' if !self.after_comma() => self.end_container('}'),
            _ => false,
        }
    }

    /// Reports whether the open object has members, so that a name must follow.
    fn after_comma(&self) -> bool {
        matches!(self.open.last(), Some(Container::Object { names }) if !names.is_empty())
    }

    fn after_value(&mut self, character: char) -> bool {
        match (character, self.open.last()) {
            (',', Some(Container::Object { .. })) => self.state = ReaderState::Name,
            (',', Some(Container::Array { .. })) => self.state = ReaderState::Value,
            ('}' | ']', _) => return self.end_container(character),
            _ => return false,
        }
        true
    }

    fn end_container(&mut self, character: char) -> bool {
        let matches = matches!(
            (self.open.pop(), character),
            (Some(Container::Object { .. }), '}') | (Some(Container::Array { .. }), ']')
        );
        self.print(if character == '}' { b"}" } else { b"]" });
        self.end_value();
        matches
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() {
            ReaderState::Complete
        } else {
            ReaderState::AfterValue
        };
    }

    fn take_string(&mut self, character: char) -> bool {
        if !self.pending.is_empty() {
            return self.take_escape(character);
        }
        match character {
            '"' if self.state == ReaderState::InName => {
                self.state = ReaderState::Colon;
                self.end_name()
            }
            '"' => {
                self.print(b"\"");
                self.end_value();
                true
            }
            '\\' => {
                self.pending.push(character);
                self.show_all();
                true
            }
            character if character < ' ' => false,
            character => {
                self.take_text(character);
                true
            }
        }
    }

    /// Checks a complete name; a duplicate name is left to the parser of the whole text.
    fn end_name(&mut self) -> bool {
        let (Some(name), Some(Container::Object { names })) = (&self.name, self.open.last()) else {
            return false;
        };
        !names.contains(name)
    }

    fn take_escape(&mut self, character: char) -> bool {
        self.pending.push(character);
        let text = self.pending.as_str();
        let complete = match text.as_bytes() {
            [b'\\', b'u', rest @ ..] => match rest.len() {
                4 => !is_high_surrogate(rest),
                10 => true,
                _ => false,
            },
            [b'\\', _] => true,
            _ => return false,
        };
        if text.len() > 12 {
            return false;
        }
        if !complete {
            return true;
        }
        let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{text}\"")) else {
            return false;
        };
        self.pending.clear();
        for character in decoded.chars() {
            self.take_text(character);
        }
        self.show_all();
        true
    }

    /// Shows blanks before an escape, because they are not at the end of the text.
    fn show_all(&mut self) {
        if self.state == ReaderState::InString {
            self.shown = self.out.len();
        }
    }

    fn take_text(&mut self, character: char) {
        let mut buffer = [0; 4];
        let text = character.encode_utf8(&mut buffer);
        match &mut self.name {
            Some(name) if self.state == ReaderState::InName => name.push_str(text),
            _ => {
                json::append_escaped(&mut self.out, text);
                if !character.is_whitespace() && character != '\u{feff}' {
                    self.shown = self.out.len();
                }
            }
        }
    }

    fn take_number(&mut self, character: char) -> bool {
        if matches!(character, '0'..='9' | '.' | 'e' | 'E' | '+' | '-') {
            self.pending.push(character);
            return true;
        }
        let Ok(value) = serde_json::from_str::<Value>(&self.pending) else {
            return false;
        };
        self.print_value(&value);
        self.take(character)
    }

    fn take_word(&mut self, character: char) -> bool {
        self.pending.push(character);
        let Some((word, value)) = word_of(&self.pending) else {
            return false;
        };
        if self.pending.len() == word.len() {
            self.print_value(&value);
        }
        true
    }

    fn print_value(&mut self, value: &Value) {
        self.pending.clear();
        self.print_name();
        json::append(&mut self.out, value);
        self.shown = self.out.len();
        self.end_value();
    }

    /// Prints the comma and the member's name before a value.
    fn print_name(&mut self) {
        let comma = match self.open.last_mut() {
            None => false,
            Some(Container::Array { empty }) => !std::mem::take(empty),
            Some(Container::Object { names }) => !names.is_empty(),
        };
        if comma {
            self.out.push(b',');
        }
        if let (Some(name), Some(Container::Object { names })) =
            (self.name.take(), self.open.last_mut())
        {
            json::append(&mut self.out, &name);
            self.out.push(b':');
            names.push(name);
        }
    }

    fn print(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.shown = self.out.len();
    }

    /// Prints the bytes that close the part shown so far.
    fn close(&mut self, closing: &mut Vec<u8>) {
        match self.state {
            ReaderState::InString => closing.push(b'"'),
            ReaderState::InNumber | ReaderState::InWord => self.close_scalar(closing),
            _ => {}
        }
        if self.out.is_empty() && closing.is_empty() {
            closing.extend_from_slice(b"{}");
        }
        for container in self.open.iter().rev() {
            closing.push(match container {
                Container::Object { .. } => b'}',
                Container::Array { .. } => b']',
            });
        }
    }

    /// Prints an incomplete number or word, if it has a value.
    fn close_scalar(&self, closing: &mut Vec<u8>) {
        let value = match self.state {
            ReaderState::InWord => word_of(&self.pending).map(|(_, value)| value),
            _ => partial_number(&self.pending),
        };
        let Some(value) = value else { return };
        match self.open.last() {
            Some(Container::Object { names }) => {
                if !names.is_empty() {
                    closing.push(b',');
                }
                json::append(closing, self.name.as_deref().unwrap_or_default());
                closing.push(b':');
            }
            Some(Container::Array { empty: false }) => closing.push(b','),
            _ => {}
        }
        json::append(closing, &value);
    }
}

fn is_high_surrogate(digits: &[u8]) -> bool {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u16::from_str_radix(digits, 16).is_ok_and(|unit| matches!(unit, 0xd800..0xdc00))
}

/// Returns the word that starts with `text`, and its value.
fn word_of(text: &str) -> Option<(&'static str, Value)> {
    [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
    ]
    .into_iter()
    .find(|(word, _)| word.starts_with(text))
}

/// Parses a number with an incomplete exponent; `None` for a trailing point or sign.
fn partial_number(text: &str) -> Option<Value> {
    let text = text.trim_end_matches(['+', '-', 'e', 'E']);
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(arguments: &PartialArguments) -> Value {
        let (head, tail) = arguments.snapshot();
        let text = [head, tail].concat();
        serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)))
    }

    /// Checks that the arguments equal those of the lenient parser after every prefix of `text`.
    fn check(text: &str) {
        let mut arguments = PartialArguments::default();
        let mut so_far = String::new();
        for character in text.chars() {
            so_far.push(character);
            arguments.push(character.encode_utf8(&mut [0; 4]));
            assert_eq!(
                shown(&arguments),
                parse_arguments(&so_far),
                "after {so_far:?}"
            );
        }
    }

    #[test]
    fn every_prefix_is_shown_as_the_lenient_parser_sees_it() {
        check(r#"{"path":"a b.txt","content":"line\n\"x\" \u00e9 \ud83d\ude00  end"}"#);
        check(r#"{"n":-12.5e+3,"ok":true,"no":false,"nil":null,"list":[1,"two",{"a":[]}],"o":{}}"#);
        check(r#"  { "a" : [ 1 , 2 ] , "b" : "x " } trailing"#);
        check(r#"["a",["b"]]"#);
    }

    #[test]
    fn text_that_is_not_plain_json_is_left_to_the_lenient_parser() {
        check("{\"a\":\"x\ty\",\"b\":1}");
        check(r#"{"a":1,"a":2}"#);
        check(r#"{"a":1}{"b":2}"#);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(|n| Value::from(i64::from(n))),
            "[ -~é\n\"\\\\]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_in_any_pieces(value in values(), cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6)) {
            let text = json!({ "v": value }).to_string();
            let characters: Vec<char> = text.chars().collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
            cuts.extend([0, characters.len()]);
            cuts.sort_unstable();
            let mut arguments = PartialArguments::default();
            let mut so_far = String::new();
            for pair in cuts.windows(2) {
                let piece: String = characters[pair[0]..pair[1]].iter().collect();
                so_far.push_str(&piece);
                arguments.push(&piece);
                prop_assert_eq!(shown(&arguments), parse_arguments(&so_far), "{}", so_far);
            }
        }

        #[test]
        fn any_text_is_shown_as_json(text in any::<String>()) {
            let mut arguments = PartialArguments::default();
            arguments.push(&text);
            shown(&arguments);
        }
    }

    use serde_json::json;
}
