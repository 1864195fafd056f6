//! YAML as a tree in which everything knows its line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A value and the line it begins on.
#[derive(Debug)]
pub(super) struct Node {
    pub line: u64,
    pub kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    /// As it was written, so that money is read to the cent.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(super) struct Key {
    pub name: String,
    pub line: u64,
}

/// Reads a document; else the line and what is wrong there.
pub(super) fn parse(text: &str) -> Result<Node, (u64, String)> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_nodes: 100_000 },
    };
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        let words = error.without_snippet().to_string();
        let first = words.lines().map(str::trim).find(|line| !line.is_empty());
        (
            line,
            format!(
                "this is not valid YAML: {}",
                first.unwrap_or("it cannot be read")
            ),
        )
    })
}

impl Node {
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
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            kind: spanned.value,
        })
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
        Ok(Kind::Number(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Number(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Kind, E> {
        Ok(Kind::Number(number.to_string()))
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
            let line = key.referenced.line();
            let name = key.value;
            entries.push((Key { name, line }, members.next_value()?));
        }
        Ok(Kind::Map(entries))
    }
}
