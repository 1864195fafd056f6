//! The result of parsing a command line.

use std::collections::BTreeMap;

use pinion_templates::Value;

use crate::field::FieldType;

/// The source of a value, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// An option on the command line.
    CommandLine,
    /// A positional argument.
    Argument,
    /// An alias.
    Alias,
    /// An environment variable.
    Environment,
    /// The default in the file or the program.
    Default,
}

impl Source {
    /// Returns the name in listings.
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

/// A parsed command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The command's own fields, as its templates see them. Fields without a value are absent.
    pub values: BTreeMap<String, Value>,
    /// The source of each field.
    pub sources: BTreeMap<String, Source>,
    /// The program's options.
    pub builtin: BuiltInValues,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BuiltInValue {
    pub kind: FieldType,
    pub value: Value,
    pub source: Source,
}

/// The program's options: the given values, and otherwise their defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuiltInValues {
    pub(crate) slots: BTreeMap<String, BuiltInValue>,
}

impl BuiltInValues {
    /// Returns the value of an option, if it has one.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.slots.get(name).map(|slot| &slot.value)
    }

    /// Reports whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bool(true)))
    }

    /// Returns a text; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.value(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a text, if it is not empty.
    pub fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns the texts of a list.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(list)) => list.iter().map(pinion_templates::printed).collect(),
            _ => Vec::new(),
        }
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Float(number)) => Some(*number),
            Some(Value::Int(number)) => Some(*number as f64),
            _ => None,
        }
    }

    /// Returns the pairs of an option of type `keyValue`.
    pub fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        match self.value(name) {
            Some(Value::Map(map)) => map
                .iter()
                .map(|(key, value)| (key.clone(), pinion_templates::printed(value)))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Reports whether the option was set on the command line or in the environment.
    pub fn given(&self, name: &str) -> bool {
        self.source(name)
            .is_some_and(|source| source != Source::Default)
    }

    /// Returns the source of an option's value.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.slots.get(name).map(|slot| slot.source)
    }

    /// Returns the names of all options that were set.
    pub fn given_names(&self) -> impl Iterator<Item = &str> {
        self.slots
            .iter()
            .filter(|(_, slot)| slot.source != Source::Default)
            .map(|(name, _)| name.as_str())
    }
}
