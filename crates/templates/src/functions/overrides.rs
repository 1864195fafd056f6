//! Functions that Pinocchio defines differently from sprig.

use super::{Arguments, Function, Outcome, exactly, text_value};
use crate::layout;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("trim", 1, |_, args| text_value(args.text(0)?.trim())),
    exactly("quote", 1, |_, args| {
        text_value(format!("`{}`", args.shown(0)))
    }),
    exactly("add", 2, |_, args| {
        arithmetic(args, i64::checked_add, |a, b| a + b)
    }),
    exactly("sub", 2, |_, args| {
        arithmetic(args, i64::checked_sub, |a, b| a - b)
    }),
    exactly("mul", 2, |_, args| {
        arithmetic(args, i64::checked_mul, |a, b| a * b)
    }),
    exactly("div", 2, |_, args| {
        arithmetic(args, i64::checked_div, |a, b| a / b)
    }),
    exactly("toDate", 1, |_, args| match args.get(0) {
        Value::String(text) => text_value(text.split('T').next().unwrap_or_default()),
        Value::Time(time) => text_value(layout::format(time, "2006-01-02")),
        _ => Err(args.wrong(0, "a date as text, or a time")),
    }),
];

/// Calculates: two whole numbers have a whole result; a fraction on either side gives a fraction.
fn arithmetic(
    args: &Arguments<'_>,
    whole: fn(i64, i64) -> Option<i64>,
    real: fn(f64, f64) -> f64,
) -> Outcome {
    match (args.get(0), args.get(1)) {
        (Value::Int(a), Value::Int(b)) => match whole(*a, *b) {
            Some(result) => Ok(result.into()),
            None if *b == 0 => Err("the second number is 0".to_owned()),
            None => Err("the result is too large for a whole number".to_owned()),
        },
        (Value::Float(a), Value::Float(b)) => Ok(real(*a, *b).into()),
        (Value::Int(a), Value::Float(b)) => Ok(real(*a as f64, *b).into()),
        (Value::Float(a), Value::Int(b)) => Ok(real(*a, *b as f64).into()),
        (Value::Int(_) | Value::Float(_), _) => Err(args.wrong(1, "a number")),
        _ => Err(args.wrong(0, "a number")),
    }
}
