//! Conversions between kinds of values.

use super::{Function, exactly};
use crate::number;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("int", 1, |_, args| Ok(to_int(args.get(0)).into())),
    exactly("int64", 1, |_, args| Ok(to_int(args.get(0)).into())),
    exactly("float64", 1, |_, args| Ok(to_float(args.get(0)).into())),
    exactly("atoi", 1, |_, args| {
        Ok(args.text(0)?.parse::<i64>().unwrap_or(0).into())
    }),
    exactly("toDecimal", 1, |_, args| {
        Ok(i64::from_str_radix(&args.shown(0), 8).unwrap_or(0).into())
    }),
    exactly("parseInt", 1, |_, args| {
        Ok(args.text(0)?.parse::<i64>().unwrap_or(0).into())
    }),
    exactly("parseFloat", 1, |_, args| {
        Ok(args.text(0)?.parse::<f64>().unwrap_or(0.0).into())
    }),
];

/// Converts a value to a whole number; 0 if it is not one.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(whole) => *whole,
        Value::Float(number) => *number as i64,
        Value::Bool(flag) => i64::from(*flag),
        Value::String(text) => number::whole(text)
            .or_else(|| text.parse::<f64>().ok().map(|number| number as i64))
            .unwrap_or(0),
        _ => 0,
    }
}

/// Converts a value to a number; 0 if it is not one.
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(whole) => *whole as f64,
        Value::Float(number) => *number,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::String(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}
