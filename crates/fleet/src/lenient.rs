//! Members of lines that may be anything: what is not of the kind that is wanted counts as if it were missing.
//!
//! Other programs change, and a number that became `null` must not cost the rest of its line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A whole number: fractions are rounded, what is below zero or no number is nothing.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(whole(&Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The same of a value that was read already.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    // A cast takes what is below zero as nothing, and what is too large as the largest.
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|number| number.round() as u64))
}

/// Any number; what is none is zero.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Value::deserialize(deserializer)?
        .as_f64()
        .unwrap_or_default())
}

/// A text, if it is one.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Anything with a default, which stands in for what does not fit.
pub(crate) fn part<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).unwrap_or_default())
}

/// The items of a list that fit; a text alone is told apart by the caller.
pub(crate) fn items<T: DeserializeOwned>(list: Value) -> Vec<T> {
    let Value::Array(items) = list else {
        return Vec::new();
    };
    items
        .into_iter()
        .filter_map(|item| T::deserialize(item).ok())
        .collect()
}
