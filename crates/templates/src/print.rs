//! Printing of values as Go's `%v` prints them.

use std::fmt::Write;

use crate::number;
use crate::time;
use crate::value::Value;

/// Returns the text of a value as Go prints it: `[a b]`, `map[k:v]`, `1e+06`, `<nil>`.
pub fn printed(value: &Value) -> String {
    let mut out = String::new();
    write_plain(&mut out, value);
    out
}

pub(crate) fn write_plain(out: &mut String, value: &Value) {
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(whole) => {
            let _ = write!(out, "{whole}");
        }
        Value::Float(number) => out.push_str(&number::general(*number)),
        Value::String(text) => out.push_str(text),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_plain(out, item);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_plain(out, item);
            }
            out.push(']');
        }
        Value::Time(moment) => out.push_str(&time::shown(moment)),
    }
}

/// Go's `fmt.Sprint`: a blank between two operands if neither is text.
pub(crate) fn sprint(values: &[Value]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        let text = |value: &Value| matches!(value, Value::String(_));
        if index > 0 && !text(value) && !text(&values[index - 1]) {
            out.push(' ');
        }
        write_plain(&mut out, value);
    }
    out
}

/// Go's `fmt.Sprintln`: blanks between all operands, a line feed at the end.
pub(crate) fn sprintln(values: &[Value]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write_plain(&mut out, value);
    }
    out.push('\n');
    out
}

/// Quotes text as Go's `%q` and `strconv.Quote` do.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            other => escape(&mut out, other),
        }
    }
    out.push('"');
    out
}

/// Escapes a character for Go's quotes, except the quote itself.
pub(crate) fn escape(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        other if (other as u32) < 0x20 || other == '\u{7f}' => {
            let _ = write!(out, "\\x{:02x}", other as u32);
        }
        other
            if other.is_control()
                || matches!(other, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}') =>
        {
            let _ = write!(out, "\\u{:04x}", other as u32);
        }
        other => out.push(other),
    }
}
