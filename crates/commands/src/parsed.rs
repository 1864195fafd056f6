//! What a command line gave.

use std::collections::BTreeMap;

use pinion_templates::Value;

use crate::field::FieldType;

/// Where a value comes from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// An option on the command line.
    CommandLine,
    /// A positional argument.
    Argument,
    /// An alias.
    Alias,
    /// A variable of the environment.
    Environment,
    /// The file's or the program's default.
    Default,
}

impl Source {
    /// The name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "command line",
            Self::Argument => "argument",
            Self::Alias => "alias",
            Self::Environment => "environment",
            Self::Default => "default",
        }
    }
}

/// A command line, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The command's own fields, as its templates see them. A field that nobody gave is not there.
    pub values: BTreeMap<String, Value>,
    /// Where each of them comes from.
    pub sources: BTreeMap<String, Source>,
    /// The program's options.
    pub builtin: BuiltInValues,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    pub kind: FieldType,
    pub value: Value,
    pub source: Source,
}

/// The program's options: what was given, and otherwise their defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuiltInValues {
    pub(crate) slots: BTreeMap<String, Slot>,
}

impl BuiltInValues {
    /// The value of an option; nothing if it has none.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.slots.get(name).map(|slot| &slot.value)
    }

    /// Whether a flag is on.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bool(true)))
    }

    /// A text; empty if it has none.
    pub fn text(&self, name: &str) -> &str {
        self.value(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A text, if it has one that is not empty.
    pub fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// The texts of a list.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(list)) => list.iter().map(pinion_templates::printed).collect(),
            _ => Vec::new(),
        }
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// A number.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Float(number)) => Some(*number),
            Some(Value::Int(number)) => Some(*number as f64),
            _ => None,
        }
    }

    /// The pairs of an option that takes pairs.
    pub fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        match self.value(name) {
            Some(Value::Map(map)) => map
                .iter()
                .map(|(key, value)| (key.clone(), pinion_templates::printed(value)))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Whether somebody gave the option, on the command line or in the environment.
    pub fn given(&self, name: &str) -> bool {
        self.source(name)
            .is_some_and(|source| source != Source::Default)
    }

    /// Where the value comes from.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.slots.get(name).map(|slot| slot.source)
    }

    /// The names of all options that somebody gave.
    pub fn given_names(&self) -> impl Iterator<Item = &str> {
        self.slots
            .iter()
            .filter(|(_, slot)| slot.source != Source::Default)
            .map(|(name, _)| name.as_str())
    }
}
