//! Random messages built from the declarations, and random bytes.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pinion_proto::{FirstInvoke, Strictness};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::rows::{Row, named, rows};

/// The schema that the build generates from the declarations.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/hub.json"))).unwrap()
});

fn fields(message: &str) -> &'static [Value] {
    SCHEMA["messages"][message].as_array().unwrap()
}

/// Generates the canonical JSON of a message with some of its fields set.
fn message(name: &'static str) -> BoxedStrategy<Value> {
    let mut members: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    for field in fields(name) {
        let key = field["json"].as_str().unwrap();
        let oneof = &field["oneof"];
        let excluded: Vec<&str> = fields(name)
            .iter()
            .filter(|it| *oneof != "" && it["oneof"] == *oneof)
            .map(|it| it["json"].as_str().unwrap())
            .collect();
        let value = prop::option::weighted(0.6, field_value(field));
        members = (members, value)
            .prop_map(move |(mut members, value)| {
                let free = excluded.iter().all(|it| !members.contains_key(*it));
                if let Some(value) = value.filter(|_| free) {
                    members.insert(key.to_owned(), value);
                }
                members
            })
            .boxed();
    }
    members.prop_map(Value::Object).boxed()
}

fn field_value(field: &'static Value) -> BoxedStrategy<Value> {
    let kind = field["kind"].as_str().unwrap();
    if field["list"] == true {
        let values = prop::collection::vec(value(kind), 1..3);
        return values.prop_map(Value::Array).boxed();
    }
    let defaults = [json!(""), json!("0"), json!(0), json!(false)];
    let is_left_out = move |it: &Value| field["presence"] != true && defaults.contains(it);
    let value = value(kind);
    value
        .prop_filter("a default", move |it| !is_left_out(it))
        .boxed()
}

fn value(kind: &'static str) -> BoxedStrategy<Value> {
    let named = |values: BoxedStrategy<Value>| {
        let map = prop::collection::btree_map(any::<String>(), values, 1..3);
        map.prop_map(|it| Value::Object(it.into_iter().collect()))
            .boxed()
    };
    match kind {
        "string" => any::<String>().prop_map(Value::from).boxed(),
        "bytes" => any::<Vec<u8>>()
            .prop_map(|it| json!(STANDARD.encode(it)))
            .boxed(),
        "bool" => any::<bool>().prop_map(Value::from).boxed(),
        "int32" => any::<i32>().prop_map(Value::from).boxed(),
        "int64" => any::<i64>().prop_map(|it| json!(it.to_string())).boxed(),
        "map" => named(any::<String>().prop_map(Value::from).boxed()),
        "pinix.v2.ClipStatus" | "pinion.cluster.v1.BeatState" => {
            select(SCHEMA["enums"][kind].as_array().unwrap().get(1..).unwrap()).boxed()
        }
        _ => match kind.strip_prefix("map ") {
            Some(kind) => named(message(kind)),
            None => message(kind),
        },
    }
}

pub fn any_message() -> impl Strategy<Value = (Row, Value)> {
    let names: Vec<&'static str> = rows().into_iter().map(|it| it.name).collect();
    select(names).prop_flat_map(|name| (Just(named(name)), message(name)))
}

pub fn binary((row, value): &(Row, Value)) -> Bytes {
    (row.to_binary)(&value.to_string(), Strictness::Strict).unwrap()
}

/// Generates offsets, bytes and kinds of changes.
pub fn changes() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 1..4)
}

/// Returns the bytes with some of them replaced, removed or added.
pub fn changed(bytes: Bytes, changes: Vec<(Index, u8, u8)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, byte, change) in changes {
        let at = at.index(bytes.len().max(1));
        match change {
            _ if bytes.is_empty() => bytes.push(byte),
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn messages_come_back_from_either_form(it in any_message()) {
        let bytes = binary(&it);
        let json = (it.0.to_json)(bytes.clone()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), it.1);
        prop_assert_eq!((it.0.again)(bytes.clone()).unwrap(), bytes);
    }

    #[test]
    fn fields_in_another_order_and_others_between_change_nothing(
        it in any_message(),
        extra in any::<u32>(),
        from in any::<Index>(),
    ) {
        let bytes = binary(&it);
        let mut fields = top_level(&bytes);
        // Fields with one number stay in order; numbers may come in any order.
        fields.sort_by_key(|it| it.0);
        let mut numbers: Vec<u64> = fields.iter().map(|it| it.0).collect();
        numbers.dedup();
        if !numbers.is_empty() {
            let from = from.index(numbers.len());
            numbers.rotate_left(from);
        }
        let mut other = Vec::new();
        for number in numbers {
            other.extend_from_slice(&[0xfd, 0x3f]);
            other.extend_from_slice(&extra.to_le_bytes());
            for (_, field) in fields.iter().filter(|it| it.0 == number) {
                other.extend_from_slice(field);
            }
        }
        prop_assert_eq!((it.0.again)(other.into()).unwrap(), bytes);
    }

    #[test]
    fn one_message_behind_another_is_both_merged(it in any_message()) {
        // After an empty message, and twice in a row if nothing is repeated, it equals itself.
        let bytes = binary(&it);
        let twice: Bytes = [&bytes[..], &bytes[..]].concat().into();
        let merged = (it.0.again)(twice).unwrap();
        prop_assert!(merged.len() >= bytes.len());
        if !it.1.to_string().contains('[') {
            prop_assert_eq!(merged, bytes);
        }
    }

    #[test]
    fn the_beginning_of_a_message_is_a_message_or_an_error(it in any_message(), at in any::<Index>()) {
        let bytes = binary(&it);
        let at = at.index(bytes.len() + 1);
        let ends: Vec<usize> = top_level(&bytes).iter().scan(0, |end, it| { *end += it.1.len(); Some(*end) }).collect();
        let read = (it.0.again)(bytes.slice(..at));
        match read {
            Ok(again) => {
                prop_assert!(at == 0 || ends.contains(&at));
                prop_assert_eq!(again, bytes.slice(..at));
            }
            Err(error) => {
                prop_assert!(!ends.contains(&at) && at != 0);
                prop_assert_eq!(error.code(), "truncated");
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic_and_read_the_same_again(
        it in any_message(),
        changes in changes(),
    ) {
        let bytes = changed(binary(&it), changes);
        if let Ok(again) = (it.0.again)(bytes.clone().into()) {
            prop_assert_eq!((it.0.again)(again.clone()).unwrap(), again.clone());
            let json = (it.0.to_json)(again.clone()).unwrap();
            prop_assert_eq!((it.0.to_binary)(&json, Strictness::Strict).unwrap(), again);
        }
        let _ = FirstInvoke::decode(bytes.into());
    }

    #[test]
    fn any_bytes_at_all(bytes in any::<Vec<u8>>()) {
        let bytes = Bytes::from(bytes);
        for row in rows() {
            let _ = (row.again)(bytes.clone());
        }
        let _ = FirstInvoke::decode(bytes.clone());
        let _ = FirstInvoke::decode_json(&bytes);
    }
}

/// Splits a message written by this crate into its fields, each with its number.
fn top_level(bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut fields = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (key, mut length) = varint(rest);
        let (value, taken) = varint(&rest[length..]);
        length += taken + if key & 7 == 2 { value as usize } else { 0 };
        fields.push((key >> 3, &rest[..length]));
        rest = &rest[length..];
    }
    fields
}

fn varint(bytes: &[u8]) -> (u64, usize) {
    let length = 1 + bytes.iter().position(|it| it & 0x80 == 0).unwrap();
    let digits = bytes[..length].iter().rev();
    (
        digits.fold(0, |value, it| value << 7 | u64::from(it & 0x7f)),
        length,
    )
}
