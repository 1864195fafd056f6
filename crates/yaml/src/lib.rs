//! YAML as a tree with source locations, so that an error can name its line.
//!
//! Use it for documents that people write and whose keys are checked one by one: fleet plans,
//! configuration, profiles. Callers decide which keys exist and which files are read. Documents
//! with a fixed shape are deserialised into types instead; [`problem`] explains their errors.

mod explain;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use self::explain::{Limits, explain};

/// The limits of a document after its aliases are replaced. The parser recurses once per level, on
/// stacks of 2 MB.
const LIMITS: Limits = Limits {
    nodes: 100_000,
    levels: 32,
    text_bytes: 64 << 20,
};

/// One error in a document, with its location; line 0 is a value that is not from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// The error, and what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

/// A value and its location; line 0 is a value that is not from a file.
#[derive(Debug)]
pub struct Node {
    /// The start of the value.
    pub at: SourceLocation,
    pub kind: NodeKind,
}

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

#[derive(Debug)]
pub enum NodeKind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A member of a mapping.
#[derive(Debug)]
pub struct Entry {
    pub key: String,
    /// The start of the key.
    pub at: SourceLocation,
    pub value: Node,
}

impl SourceLocation {
    /// Creates an error at this location.
    pub fn problem(self, message: impl Into<String>) -> Problem {
        Problem {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }
}

/// Parses one YAML document; an empty one is null.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        // `y`, `on` and similar words are text; where a boolean is expected they are still
        // accepted.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: LIMITS.nodes,
            max_depth: LIMITS.levels,
            max_total_scalar_bytes: LIMITS.text_bytes,
        },
    };
    let parsed = serde_saphyr::from_str_with_options::<Node>(text, options);
    parsed.map_err(|error| located(&error, Some(&LIMITS)))
}

/// Explains the error of a document that was deserialised into a type, in plain words.
pub fn problem(error: &serde_saphyr::Error) -> Problem {
    located(error, None)
}

fn located(error: &serde_saphyr::Error, limits: Option<&Limits>) -> Problem {
    let at = error
        .location()
        .map_or(SourceLocation::default(), |location| SourceLocation {
            line: location.line(),
            column: location.column(),
        });
    at.problem(explain(error, limits))
}

impl Node {
    /// Converts a value that is not from a file.
    pub fn from_value(value: &Value) -> Self {
        let kind = match value {
            Value::Null => NodeKind::Null,
            Value::Bool(yes) => NodeKind::Bool(*yes),
            Value::Number(number) => NodeKind::Number(number.clone()),
            Value::String(text) => NodeKind::Text(text.clone()),
            Value::Array(items) => NodeKind::List(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => NodeKind::Map(
                members
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        at: SourceLocation::default(),
                        value: Self::from_value(value),
                    })
                    .collect(),
            ),
        };
        Self {
            at: SourceLocation::default(),
            kind,
        }
    }

    /// Converts the node to JSON, without locations.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(yes) => Value::Bool(*yes),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::Text(text) => Value::String(text.clone()),
            NodeKind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            NodeKind::Map(entries) => Value::Object(to_map(entries)),
        }
    }

    /// Names the kind of the value for messages.
    pub fn describe(&self) -> &'static str {
        match self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Number(_) => "a number",
            NodeKind::Text(_) => "text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a mapping",
        }
    }

    /// Returns the members; null has none. Fails for other kinds; `what` names the value in the
    /// message.
    pub fn members(&self, what: &str) -> Result<&[Entry], Problem> {
        match &self.kind {
            NodeKind::Null => Ok(&[]),
            NodeKind::Map(entries) => Ok(entries),
            _ => Err(self.not(what, "a mapping")),
        }
    }

    /// Returns the items; null has none. Fails for other kinds; `what` names the value in the
    /// message.
    pub fn items(&self, what: &str) -> Result<&[Node], Problem> {
        match &self.kind {
            NodeKind::Null => Ok(&[]),
            NodeKind::List(items) => Ok(items),
            _ => Err(self.not(what, "a list")),
        }
    }

    /// Returns the text; numbers and booleans are converted as they are written.
    pub fn text(&self, what: &str) -> Result<String, Problem> {
        match &self.kind {
            NodeKind::Text(text) => Ok(text.clone()),
            NodeKind::Number(number) => Ok(number.to_string()),
            NodeKind::Bool(yes) => Ok(yes.to_string()),
            _ => Err(self.not(what, "text")),
        }
    }

    /// Creates the error that `what` must be `expected`.
    pub fn not(&self, what: &str, expected: &str) -> Problem {
        self.at.problem(format!(
            "{what} must be {expected}, and this is {}",
            self.describe()
        ))
    }
}

fn to_map(entries: &[Entry]) -> Map<String, Value> {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.value.to_value()))
        .collect()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<NodeKind>::deserialize(deserializer)?;
        Ok(Self {
            at: location(&spanned),
            kind: spanned.value,
        })
    }
}

fn location<T>(spanned: &Spanned<T>) -> SourceLocation {
    SourceLocation {
        line: spanned.referenced.line(),
        column: spanned.referenced.column(),
    }
}

impl<'de> Deserialize<'de> for NodeKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = NodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_none<E: Error>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<NodeKind, D::Error> {
        NodeKind::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, yes: bool) -> Result<NodeKind, E> {
        Ok(NodeKind::Bool(yes))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NodeKind, E> {
        Ok(NodeKind::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NodeKind, E> {
        Ok(NodeKind::Number(number.into()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(number.to_string()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NodeKind, E> {
        // JSON has no infinite numbers.
        Ok(Number::from_f64(number)
            .map_or_else(|| NodeKind::Text(number.to_string()), NodeKind::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NodeKind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(NodeKind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<NodeKind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = members.next_key::<Spanned<String>>()? {
            let at = location(&key);
            entries.push(Entry {
                key: key.value,
                at,
                value: members.next_value()?,
            });
        }
        Ok(NodeKind::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_knows_its_line() {
        assert_eq!(
            parse("[y, on, true]").unwrap().to_value(),
            json!(["y", "on", true])
        );
        let text = "# one\na: 1\nb:\n  value: [x, 2.5, true, null]\n  referenced:\n    c: \"7\"\n";
        let node = parse(text).unwrap();
        assert_eq!(
            node.to_value(),
            json!({"a": 1, "b": {"value": ["x", 2.5, true, null], "referenced": {"c": "7"}}})
        );
        let members = node.members("it").unwrap();
        assert_eq!((members[0].at.line, members[0].at.column), (2, 1));
        let inner = members[1].value.members("b").unwrap();
        assert_eq!(inner[1].at.line, 5);
        assert_eq!(inner[1].value.members("c").unwrap()[0].value.at.line, 6);
        assert_eq!(inner[0].value.items("value").unwrap()[1].at.column, 14);
    }

    #[test]
    fn nothing_is_null_and_a_mistake_has_its_line_and_no_picture() {
        assert!(matches!(
            parse("# only words\n").unwrap().kind,
            NodeKind::Null
        ));
        assert!(matches!(parse("").unwrap().kind, NodeKind::Null));
        let problem = parse("a: 1\nkey: sk-planted-secret: [\n").err().unwrap();
        assert_eq!(problem.line, 2, "{problem}");
        assert!(!problem.to_string().contains("planted"), "{problem}");
        let problem = parse("a: 1\na: 2\n").err().unwrap();
        assert_eq!(problem.line, 2, "{problem}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-a-z:\\[\\]{}&*!|>'\" #\r\n\t0-9.]{0,80}") {
            if let Ok(node) = parse(&text) {
                let _ = node.to_value();
            }
        }

        #[test]
        fn what_json_says_yaml_says_too(text in "[ -~\u{e0}-\u{ff}]{0,20}", number in -1_000_000i64..1_000_000) {
            let value = json!({"text": text, "number": number, "list": [text, {"a": null}]});
            let node = parse(&value.to_string());
            prop_assert_eq!(node.ok().map(|node| node.to_value()), Some(value));
        }
    }
}
