//! JSON as the original program prints it, and the hash of a block that is computed from it.
//!
//! Two programs share a row of `blocks` only if they agree on every byte.

use std::fmt::Write;

use pinion_text::hex;
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

use crate::{Block, Map};

/// The name of the hash in the databases.
pub(crate) const ALGORITHM: &str = "sha256-canonical-json-v1";

/// Returns the hash of a block's content as lower-case hexadecimal digits.
pub(crate) fn hash(block: &Block) -> String {
    let mut text = String::with_capacity(256);
    text.push_str("{\"kind\":");
    string(&mut text, block.kind.name());
    text.push_str(",\"role\":");
    string(&mut text, block.role.trim());
    text.push_str(",\"payload\":");
    members(&mut text, &block.payload);
    text.push_str(",\"metadata\":");
    members(&mut text, &block.metadata);
    text.push('}');
    hex::encode(&Sha256::digest(text.as_bytes()))
}

/// Prints an object as compact JSON with sorted keys.
pub(crate) fn object(map: &Map) -> String {
    let mut text = String::with_capacity(64);
    members(&mut text, map);
    text
}

fn members(out: &mut String, map: &Map) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    out.push('{');
    for (index, key) in keys.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        string(out, key);
        out.push(':');
        value(out, &map[key]);
    }
    out.push('}');
}

fn value(out: &mut String, given: &Value) {
    match given {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(given) => number(out, given),
        Value::String(given) => string(out, given),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => members(out, map),
    }
}

fn number(out: &mut String, given: &Number) {
    // Writing to a String cannot fail.
    let _ = match (given.as_i64(), given.as_u64(), given.as_f64()) {
        (Some(whole), ..) => write!(out, "{whole}"),
        (_, Some(whole), _) => write!(out, "{whole}"),
        (_, _, Some(float)) => write_float(out, float),
        _ => write!(out, "{given}"),
    };
}

/// Prints the shortest digits that parse to the same number, with an exponent below 1e-6 and from
/// 1e21.
fn write_float(out: &mut String, float: f64) -> std::fmt::Result {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return write!(out, "{float}");
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            write!(out, "{digits}e+{exponent}")
        }
        _ => write!(out, "{text}"),
    }
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockKind;
    use proptest::prelude::*;
    use serde_json::json;

    fn print(given: Value) -> String {
        let mut out = String::new();
        value(&mut out, &given);
        out
    }

    #[test]
    fn strings_are_escaped_as_the_original_escapes_them() {
        assert_eq!(
            print(json!(
                "<a href=\"x\">&\u{2028}\u{2029}\u{7f}é😀\u{1}\u{8}\u{c}\n\r\t\\/"
            )),
            "\"\\u003ca href=\\\"x\\\"\\u003e\\u0026\\u2028\\u2029\u{7f}é😀\\u0001\\b\\f\\n\\r\\t\\\\/\""
        );
    }

    #[test]
    fn numbers_are_printed_as_the_original_prints_them() {
        for (given, text) in [
            (json!(0), "0"),
            (json!(-7), "-7"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1.0), "1"),
            (json!(-0.0), "-0"),
            (json!(0.5), "0.5"),
            (json!(1e-6), "0.000001"),
            (json!(1e-7), "1e-7"),
            (json!(1.25e-9), "1.25e-9"),
            (json!(1e-10), "1e-10"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e21), "1e+21"),
            (json!(-2.5e22), "-2.5e+22"),
            (json!(0.1 + 0.2), "0.30000000000000004"),
            (json!(5e-324), "5e-324"),
        ] {
            assert_eq!(print(given), text);
        }
    }

    #[test]
    fn keys_are_sorted_by_bytes_at_every_depth() {
        let given =
            json!({ "b": { "z": 1, "B": 2, "é": 3, "a": [ { "y": null, "x": true } ] }, "a": "" });
        assert_eq!(
            print(given),
            r#"{"a":"","b":{"B":2,"a":[{"x":true,"y":null}],"z":1,"é":3}}"#
        );
    }

    /// The digests were computed with `printf '%s' TEXT | sha256sum` from the text in the comments.
    #[test]
    fn blocks_hash_to_known_values() {
        // {"kind":"other","role":"","payload":{},"metadata":{}}
        assert_eq!(
            hash(&Block::default()),
            "998e30d27a4b07a8360279718878ae18baf34a3966b52750e6fb25f64d85808f"
        );
        // {"kind":"user","role":"user","payload":{"text":"a \u003c b \u0026 c"},"metadata":{}}
        let mut said = Block::text("not part of it", BlockKind::User, "a < b & c");
        said.role = " user ".to_owned();
        assert_eq!(
            hash(&said),
            "15292f5c5545c1c25e33a7f20302c9042a190240d993a27cc4ae971866583e06"
        );
        // {"kind":"tool_call","role":"","payload":{"args":{"limit":2.5e-7,"n":3},"id":"call_1","name":"find"},"metadata":{"x.y@v1":[1,null]}}
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let called = Block {
            id: "call_1".to_owned(),
            kind: BlockKind::ToolCall,
            role: String::new(),
            payload: object(
                json!({ "name": "find", "id": "call_1", "args": { "n": 3, "limit": 2.5e-7 } }),
            ),
            metadata: object(json!({ "x.y@v1": [1.0, null] })),
        };
        assert_eq!(
            hash(&called),
            "a9fb1c5e1ef7233092394fef55332e91cbd6f18339a9fc739e3d557460d23bfe"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(text in ".*", float in any::<f64>().prop_filter("finite", |f| f.is_finite())) {
            let given = json!({ "text": text, "float": float });
            let read: Value = serde_json::from_str(&print(given.clone())).unwrap();
            prop_assert_eq!(&read["text"], &given["text"]);
            prop_assert_eq!(read["float"].as_f64(), given["float"].as_f64());
        }
    }
}
