//! Lenient deserializers: a JSON member of the wrong type counts as missing.
//!
//! Other programs change their output, and a number that became `null` must not make the whole_number line invalid.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a whole_number number. Fractions are rounded; negative numbers and other types become 0.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(whole_number(&Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Converts a parsed value to a whole_number number; `None` if it is not a number.
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    // The cast saturates: negative numbers become 0, and too large ones the maximum.
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|number| number.round() as u64))
}

/// Reads a number; other types become 0.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Value::deserialize(deserializer)?
        .as_f64()
        .unwrap_or_default())
}

/// Reads a string; other types become `None`.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Reads a value of any type, or its default if the JSON does not fit.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).unwrap_or_default())
}

/// Returns the items of a list that fit `T`; nothing if `list` is not a list.
pub(crate) fn items<T: DeserializeOwned>(list: Value) -> Vec<T> {
    let Value::Array(items) = list else {
        return Vec::new();
    };
    items
        .into_iter()
        .filter_map(|item| T::deserialize(item).ok())
        .collect()
}
