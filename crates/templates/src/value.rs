//! Values of templates.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Zoned;

/// A value of a template: a field, an argument or a result.
///
/// Clones are cheap. Lists and maps store their depth and weight, so that a template that builds a
/// value from many copies of itself can be stopped before the value is traversed.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Nil: a missing key. Printed as `<no value>`.
    #[default]
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// Values in order.
    List(List),
    /// Values by name, in the order of the names.
    Map(Map),
    /// A time in a time zone.
    Time(Box<Zoned>),
}

/// The depth of a value and the work to traverse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub depth: u32,
    pub weight: u64,
}

/// The items of a list.
#[derive(Debug, Clone)]
pub struct List(Arc<Sized<Vec<Value>>>);

/// The entries of a map.
#[derive(Debug, Clone)]
pub struct Map(Arc<Sized<BTreeMap<String, Value>>>);

#[derive(Debug)]
struct Sized<T> {
    content: T,
    extent: Extent,
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list of values.
    pub fn list(items: Vec<Value>) -> Self {
        let extent = around(items.iter());
        Self::List(List(Arc::new(Sized {
            content: items,
            extent,
        })))
    }

    /// A list of texts.
    pub fn texts<T: Into<Arc<str>>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::list(items.into_iter().map(Self::text).collect())
    }

    /// A map of values.
    pub fn map(entries: BTreeMap<String, Value>) -> Self {
        let mut extent = around(entries.values());
        let keys = entries.keys().map(|key| key.len() as u64 / 32);
        extent.weight = keys.fold(extent.weight, u64::saturating_add);
        Self::Map(Map(Arc::new(Sized {
            content: entries,
            extent,
        })))
    }

    /// A map from pairs.
    pub fn object<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::map(entries.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// A time.
    pub fn time(time: Zoned) -> Self {
        Self::Time(Box::new(time))
    }

    /// Converts a JSON value. Whole numbers stay whole.
    pub fn from_json(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(flag) => Self::Bool(*flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Float(number.as_f64().unwrap_or(0.0)),
            },
            serde_json::Value::String(text) => Self::text(text.as_str()),
            serde_json::Value::Array(items) => {
                Self::list(items.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(entries) => {
                Self::object(entries.iter().map(|(k, v)| (k, Self::from_json(v))))
            }
        }
    }

    /// Converts the value to JSON; numbers that JSON cannot hold become null, times their text.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Nil => serde_json::Value::Null,
            Self::Bool(flag) => (*flag).into(),
            Self::Int(whole) => (*whole).into(),
            // A float without a fraction is written as a whole number, as Go does.
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                (*number as i64).into()
            }
            Self::Float(number) => {
                serde_json::Number::from_f64(*number).map_or(serde_json::Value::Null, Into::into)
            }
            Self::String(text) => (&**text).into(),
            Self::List(list) => list.iter().map(Self::to_json).collect(),
            Self::Map(map) => map.iter().map(|(k, v)| (k.clone(), v.to_json())).collect(),
            Self::Time(time) => crate::time::rfc3339(time).into(),
        }
    }

    /// Reports whether the value counts as true: not nil, not zero, not empty.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(flag) => *flag,
            Self::Int(whole) => *whole != 0,
            Self::Float(number) => *number != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Time(_) => true,
        }
    }

    /// Returns the text of a text value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the entry of a map by name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Map(map) => map.get(name),
            _ => None,
        }
    }

    /// Returns Go's name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
            Self::Time(_) => "time.Time",
        }
    }

    /// Returns Go's name of the value's kind.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Time(_) => "struct",
            other => other.type_name(),
        }
    }

    /// Names the value in messages.
    pub(crate) fn described(&self) -> &'static str {
        match self {
            Self::Nil => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::String(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Time(_) => "a time",
        }
    }

    /// Returns the work to read the value without its items.
    pub(crate) fn surface(&self) -> u64 {
        match self {
            Self::List(list) => 1 + list.len() as u64,
            Self::Map(map) => 1 + map.len() as u64,
            other => other.extent().weight,
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::String(text) => Extent {
                depth: 0,
                weight: 1 + text.len() as u64 / 32,
            },
            Self::List(list) => list.0.extent,
            Self::Map(map) => map.0.extent,
            _ => Extent {
                depth: 0,
                weight: 1,
            },
        }
    }
}

fn around<'a>(parts: impl Iterator<Item = &'a Value>) -> Extent {
    let mut extent = Extent {
        depth: 1,
        weight: 1,
    };
    for part in parts {
        let inner = part.extent();
        extent.depth = extent.depth.max(inner.depth.saturating_add(1));
        extent.weight = extent.weight.saturating_add(inner.weight);
    }
    extent
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.content
    }
}

impl std::ops::Deref for Map {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &BTreeMap<String, Value> {
        &self.0.content
    }
}

impl PartialEq for Value {
    /// Compares as Go's `reflect.DeepEqual` does: a whole number never equals one with a fraction.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::List(a), Self::List(b)) => Arc::ptr_eq(&a.0, &b.0) || **a == **b,
            (Self::Map(a), Self::Map(b)) => Arc::ptr_eq(&a.0, &b.0) || **a == **b,
            (Self::Time(a), Self::Time(b)) => a.timestamp() == b.timestamp(),
            _ => false,
        }
    }
}

impl PartialOrd for Value {
    /// Compares values of one basic kind; other pairs have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(whole: i64) -> Self {
        Self::Int(whole)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}
