//! Tolerant deserialization of provider JSON: text that borrows from the frame, counts in any
//! number form, and members of an unexpected type treated as absent. Most servers only resemble the
//! API they claim to support, so one unexpected member must not lose the answer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::partial_json::repair;
use crate::surrogates::without_lone_surrogates;

/// A string member; absent when it is anything but a string.
#[derive(Debug, Default, Clone)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl Text<'_> {
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, or an empty string.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, unless it is absent or empty.
    pub(crate) fn non_empty(&self) -> Option<&str> {
        self.get().filter(|text| !text.is_empty())
    }
}

/// Larger counts are cut to this value, so that sums of counts cannot overflow.
const MAX_COUNT: u64 = 1 << 53;

/// A count of tokens; zero when it is not a number, or negative.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

/// A boolean member; false when it is anything but `true`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(AnyVisitor)
            .map(|any| match any {
                Any::Text(text) => Self(Some(text)),
                _ => Self(None),
            })
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(AnyVisitor)
            .map(|any| match any {
                Any::Number(number) => Self(number.min(MAX_COUNT)),
                _ => Self(0),
            })
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let any = deserializer.deserialize_any(AnyVisitor)?;
        Ok(Self(matches!(any, Any::Flag(true))))
    }
}

enum Any<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Flag(bool),
    Other,
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Any::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Any::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Any::Text(Cow::Owned(text)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Any::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Any::Number(u64::try_from(number).unwrap_or(0)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        // A cast from a float saturates, and turns negative values into zero.
        Ok(Any::Number(number as u64))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Any::Flag(flag))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Any::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Any::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Any::Other)
    }
}

/// Visitor methods for values without members or items.
macro_rules! absent {
    ($nothing:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

/// Argument text of a tool call. An object, which some servers send, is converted to text.
#[derive(Debug, Default, Clone)]
pub(crate) struct ArgumentText(pub(crate) String);

impl<'de> Deserialize<'de> for ArgumentText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        }))
    }
}

/// An object member; absent when it is anything but an object.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// A list member; empty when it is missing, null, or not a list. Items that are not objects are
/// skipped.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// An object, or nothing.
struct Object<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        AnyVisitor.visit_seq(items).map(|_| None)
    }

    absent!(None);
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Object(item)) = items.next_element()? {
            list.extend(item);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        AnyVisitor.visit_map(members).map(|_| Vec::new())
    }

    absent!(Vec::new());
}

/// Parses `data`, or its repaired form, which is stored in `repaired`; `None` if it is not an
/// object. The error is that of the original data.
pub(crate) fn read<'d, T: Deserialize<'d>>(
    data: &'d str,
    repaired: &'d mut String,
) -> Result<Option<T>, serde_json::Error> {
    let read = serde_json::from_str(data).or_else(|error| match repair_frame(data) {
        Some(text) => {
            *repaired = text;
            serde_json::from_str(repaired).map_err(|_| error)
        }
        None => Err(error),
    });
    read.map(|Object(read)| read)
}

/// Repairs `data` that a strict parser rejects; `None` if there is nothing to repair.
///
/// Half surrogate pairs are dropped; raw control characters and stray backslashes are escaped.
fn repair_frame(data: &str) -> Option<String> {
    let repaired = repair(data);
    let cleaned = without_lone_surrogates(&repaired);
    (*cleaned != *data).then(|| cleaned.into_owned())
}

/// The message of an `error` object, or the object itself as JSON.
pub(crate) fn error_message(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        _ => match error.get("message").and_then(Value::as_str) {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => error.to_string(),
        },
    }
}

/// The bare JSON error some servers send in place of a stream, if `stray` contains one.
pub(crate) fn stray_error(stray: &str) -> Option<Value> {
    if !stray.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(stray).ok()?;
    value.get("error").is_some_and(is_truthy).then_some(value)
}

/// Reports whether an `error` member means an error: some servers send `null`, `false` or an empty
/// text.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        _ => true,
    }
}
