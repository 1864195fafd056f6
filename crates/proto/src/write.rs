//! Writers of JSON fields. Each field ends with a comma, and closing an object removes the last
//! comma, so that no field must know whether it is the first.

use std::collections::BTreeMap;

use crate::codec::{Codec, Enum};
use crate::text::Text;

/// Writes a field unless it has its default. `key` includes its quotes and its colon.
pub(crate) fn plain<T: Codec>(out: &mut Vec<u8>, key: &str, value: &T) {
    if !value.is_default() {
        present(out, key, value);
    }
}

/// Writes a field with any value.
pub(crate) fn present<T: Codec>(out: &mut Vec<u8>, key: &str, value: &T) {
    out.extend_from_slice(key.as_bytes());
    value.write(out);
    out.push(b',');
}

/// Writes a field with presence.
pub(crate) fn optional<T: Codec>(out: &mut Vec<u8>, key: &str, value: &Option<T>) {
    if let Some(value) = value {
        present(out, key, value);
    }
}

/// Writes a repeated field.
pub(crate) fn list<T: Codec>(out: &mut Vec<u8>, key: &str, values: &[T]) {
    if values.is_empty() {
        return;
    }
    out.extend_from_slice(key.as_bytes());
    out.push(b'[');
    for value in values {
        value.write(out);
        out.push(b',');
    }
    close(out, b']');
    out.push(b',');
}

/// Writes a map field, sorted by name.
pub(crate) fn map<T: Codec>(out: &mut Vec<u8>, key: &str, values: &BTreeMap<Text, T>) {
    if values.is_empty() {
        return;
    }
    out.extend_from_slice(key.as_bytes());
    out.push(b'{');
    for (name, value) in values {
        name.write(out);
        out.push(b':');
        value.write(out);
        out.push(b',');
    }
    close(out, b'}');
    out.push(b',');
}

/// Ends an object or a list.
pub(crate) fn close(out: &mut Vec<u8>, bracket: u8) {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = bracket,
        _ => out.push(bracket),
    }
}

/// Writes the name of a value, or its number if it has no name.
pub(crate) fn enumeration(out: &mut Vec<u8>, value: impl Enum) {
    match value.name() {
        Some(name) => {
            out.push(b'"');
            out.extend_from_slice(name.as_bytes());
            out.push(b'"');
        }
        None => signed(out, i64::from(value.number())),
    }
}

pub(crate) fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
}

pub(crate) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
