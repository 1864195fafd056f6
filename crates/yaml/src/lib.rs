//! YAML as a tree that remembers where everything stands, so that a mistake can be shown with its line.
//!
//! For documents that people write and whose keys are checked one by one: plans of fleets, configuration, profiles. What
//! keys there are, and which files are read, is up to those who ask. Documents with a fixed shape are read into types.

mod explain;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use self::explain::explain;

/// The values a document may hold after its aliases are replaced.
const MOST_NODES: usize = 100_000;
/// Levels of lists and mappings in each other. The reader calls itself for each level, on stacks of 2 MB.
const MOST_LEVELS: usize = 32;
/// The bytes of text a document may hold after its aliases are replaced.
const MOST_TEXT: usize = 64 << 20;

/// One mistake in a document, with its place; line 0 is a value that stands in no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// What is wrong, and what to write instead.
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

/// A value and where it begins; line 0 is a value that came from no file.
#[derive(Debug)]
pub struct Node {
    /// Where it begins.
    pub at: Place,
    /// What it is.
    pub kind: Kind,
}

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

/// The kinds of values there are.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
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
    /// The name of the member.
    pub key: String,
    /// Where that stands.
    pub at: Place,
    /// The member itself.
    pub value: Node,
}

impl Place {
    /// Something is wrong here.
    pub fn problem(self, message: impl Into<String>) -> Problem {
        Problem {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }
}

/// Reads one YAML document; an empty one is null.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        // `y`, `on` and their like are words; where a switch is wanted they still count.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: MOST_NODES,
            max_depth: MOST_LEVELS,
            max_total_scalar_bytes: MOST_TEXT,
        },
    };
    let parsed = serde_saphyr::from_str_with_options::<Node>(text, options);
    parsed.map_err(|error| {
        let place = error.location().map_or(Place::default(), |location| Place {
            line: location.line(),
            column: location.column(),
        });
        place.problem(explain(&error))
    })
}

impl Node {
    /// A value that came from no file.
    pub fn from_value(value: &Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(yes) => Kind::Bool(*yes),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => Kind::List(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => Kind::Map(
                members
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        at: Place::default(),
                        value: Self::from_value(value),
                    })
                    .collect(),
            ),
        };
        Self {
            at: Place::default(),
            kind,
        }
    }

    /// The same without places.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(yes) => Value::Bool(*yes),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Map(entries) => Value::Object(to_map(entries)),
        }
    }

    /// What kind of thing it is, in words.
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// The members, none for null; else what is wrong.
    pub fn members(&self, what: &str) -> Result<&[Entry], Problem> {
        match &self.kind {
            Kind::Null => Ok(&[]),
            Kind::Map(entries) => Ok(entries),
            _ => Err(self.not(what, "a mapping")),
        }
    }

    /// The items, none for null; else what is wrong.
    pub fn items(&self, what: &str) -> Result<&[Node], Problem> {
        match &self.kind {
            Kind::Null => Ok(&[]),
            Kind::List(items) => Ok(items),
            _ => Err(self.not(what, "a list")),
        }
    }

    /// The text; numbers and switches count as what they look like.
    pub fn text(&self, what: &str) -> Result<String, Problem> {
        match &self.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Number(number) => Ok(number.to_string()),
            Kind::Bool(yes) => Ok(yes.to_string()),
            _ => Err(self.not(what, "text")),
        }
    }

    /// `what` should have been something else.
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
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self {
            at: place(&spanned),
            kind: spanned.value,
        })
    }
}

fn place<T>(spanned: &Spanned<T>) -> Place {
    Place {
        line: spanned.referenced.line(),
        column: spanned.referenced.column(),
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, yes: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(yes))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Kind, E> {
        Ok(Kind::Text(number.to_string()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Kind, E> {
        Ok(Kind::Text(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Kind, E> {
        // Infinities have no number in JSON.
        Ok(Number::from_f64(number).map_or_else(|| Kind::Text(number.to_string()), Kind::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Kind, E> {
        Ok(Kind::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = members.next_key::<Spanned<String>>()? {
            let at = place(&key);
            entries.push(Entry {
                key: key.value,
                at,
                value: members.next_value()?,
            });
        }
        Ok(Kind::Map(entries))
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
        assert!(matches!(parse("# only words\n").unwrap().kind, Kind::Null));
        assert!(matches!(parse("").unwrap().kind, Kind::Null));
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
