//! JSON Schema's types: checks values, and converts them where the conversion is unambiguous.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use serde_json::{Number, Value};

/// Integers up to here are exact in JavaScript; a coerced number below it is written without a point.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Reports whether `value` is of the schema type `kind`. Unknown types accept everything.
pub(crate) fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// `value` converted to `kind`; `None` if the conversion is ambiguous.
pub(crate) fn to(kind: &str, value: &Value) -> Option<Value> {
    match kind {
        "string" => match value {
            Value::Number(number) => Some(Value::String(number_text(number))),
            Value::Bool(flag) => Some(Value::String(flag.to_string())),
            Value::Null => Some(Value::String(String::new())),
            _ => None,
        },
        "number" => to_number(value).and_then(number_value),
        "integer" => to_number(value)
            .filter(|number| number.fract() == 0.0)
            .and_then(number_value),
        "boolean" => match value {
            Value::String(text) if text == "true" => Some(Value::Bool(true)),
            Value::String(text) if text == "false" => Some(Value::Bool(false)),
            Value::Null => Some(Value::Bool(false)),
            Value::Number(number) if number.as_f64() == Some(1.0) => Some(Value::Bool(true)),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(Value::Bool(false)),
            _ => None,
        },
        "null" => match value {
            Value::String(text) if text.is_empty() => Some(Value::Null),
            Value::Number(number) if number.as_f64() == Some(0.0) => Some(Value::Null),
            Value::Bool(false) => Some(Value::Null),
            _ => None,
        },
        _ => None,
    }
}

fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Null => Some(0.0),
        Value::String(text) => {
            let text = text.trim();
            let digit = |byte: u8| byte.is_ascii_digit();
            // Rust also parses `inf` and `nan`, which models do not mean as numbers.
            if !text.bytes().any(digit) {
                return None;
            }
            text.parse().ok().filter(|number: &f64| number.is_finite())
        }
        _ => None,
    }
}

fn number_value(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER {
        Some(Value::from(number as i64))
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}

/// A number as JavaScript prints it: without a point when it is whole.
pub(crate) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// Reports whether `text` certainly does not match. A pattern that Rust cannot compile (JavaScript
/// has look-around) accepts everything.
pub(crate) fn mismatches(pattern: &str, text: &str) -> bool {
    RegexMatcher::new(pattern)
        .is_ok_and(|matcher| matcher.is_match(text.as_bytes()).is_ok_and(|found| !found))
}
