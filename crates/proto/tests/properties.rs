//! Random messages built from the declarations: written messages decode to the same value in every
//! spelling, and no input makes the reader panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::sync::LazyLock;

use pinion_jsonl::json;
use pinion_proto::frontend_tools::FrontendToolDescriptor;
use pinion_proto::rpc::{RpcLine, RpcRequestLine};
use pinion_proto::{Message, Payload, Strictness, Struct, TYPE_URL};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// The schema that the build generates from the declarations.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/schema.json"))).unwrap()
});

fn names() -> Vec<&'static str> {
    let messages = SCHEMA["messages"].as_object().unwrap();
    assert_eq!(messages.len(), 74);
    messages.keys().map(String::as_str).collect()
}

fn fields(message: &str) -> &'static [Value] {
    SCHEMA["messages"][message].as_array().unwrap()
}

/// Generates the canonical JSON of a message with some of its fields set.
fn message(name: &'static str, depth: u32) -> BoxedStrategy<Value> {
    let mut members: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    for field in fields(name) {
        let key = field["json"].as_str().unwrap();
        let oneof = field["oneof"].as_str().unwrap();
        let taken: Vec<&str> = fields(name)
            .iter()
            .filter(|it| !oneof.is_empty() && it["oneof"] == *oneof)
            .map(|it| it["json"].as_str().unwrap())
            .collect();
        let value = prop::option::weighted(0.6, field_value(field, depth));
        members = (members, value)
            .prop_map(move |(mut members, value)| {
                let free = taken.iter().all(|it| !members.contains_key(*it));
                if let Some(value) = value.filter(|_| free) {
                    members.insert(key.to_owned(), value);
                }
                members
            })
            .boxed();
    }
    members.prop_map(Value::Object).boxed()
}

fn field_value(field: &'static Value, depth: u32) -> BoxedStrategy<Value> {
    let kind = field["kind"].as_str().unwrap();
    if field["list"] == true {
        let values = prop::collection::vec(value(kind, true, depth), 1..3);
        return values.prop_map(Value::Array).boxed();
    }
    value(kind, field["presence"] == true, depth)
}

/// Generates a value of this kind; zero and empty ones only where they are written.
fn value(kind: &'static str, defaults: bool, depth: u32) -> BoxedStrategy<Value> {
    let nonzero = move |it: &Value| {
        let zero = [json!(""), json!("0"), json!(0), json!(false)];
        defaults || !zero.contains(it)
    };
    let any_value = match kind {
        "string" => any::<String>().prop_map(Value::from).boxed(),
        "bool" => any::<bool>().prop_map(Value::from).boxed(),
        "uint32" => any::<u32>().prop_map(Value::from).boxed(),
        "int32" => any::<i32>().prop_map(Value::from).boxed(),
        "uint64" => any::<u64>().prop_map(|it| json!(it.to_string())).boxed(),
        "int64" => any::<i64>().prop_map(|it| json!(it.to_string())).boxed(),
        "map" => prop::collection::btree_map(any::<String>(), any::<String>(), 1..3)
            .prop_map(|it| json!(it))
            .boxed(),
        "google.protobuf.Struct" => undeclared_object(),
        "google.protobuf.Any" => payload(depth + 1),
        _ if SCHEMA["enums"][kind].is_array() => {
            let values = SCHEMA["enums"][kind].as_array().unwrap();
            select(&values[usize::from(!defaults)..]).boxed()
        }
        _ => message(kind, depth + 1),
    };
    any_value.prop_filter("a default", nonzero).boxed()
}

fn payload(depth: u32) -> BoxedStrategy<Value> {
    let names = names();
    // An envelope in an envelope is valid; one level is enough.
    let nested =
        |it: &&str| !it.starts_with("pinocchio.chatapp.rpc") && !it.starts_with("sessionstream");
    let names: Vec<&str> = names
        .into_iter()
        .filter(|it| depth < 3 && nested(it))
        .collect();
    if names.is_empty() {
        return Just(json!({})).boxed();
    }
    select(names)
        .prop_flat_map(move |name| (Just(name), message(name, depth)))
        .prop_map(|(name, members)| {
            let mut with_type = Map::new();
            with_type.insert("@type".to_owned(), json!(format!("{TYPE_URL}{name}")));
            with_type.extend(members.as_object().unwrap().clone());
            Value::Object(with_type)
        })
        .boxed()
}

fn undeclared() -> BoxedStrategy<Value> {
    let number = any::<f64>().prop_filter("finite", |it| it.is_finite() && *it != 0.0);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number.prop_map(Value::from),
        (-1000..1000_i32).prop_map(|it| json!(f64::from(it))),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..3)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
    .boxed()
}

fn undeclared_object() -> BoxedStrategy<Value> {
    prop::collection::btree_map(any::<String>(), undeclared(), 0..3)
        .prop_map(|it| Value::Object(it.into_iter().collect()))
        .boxed()
}

fn any_message() -> impl Strategy<Value = (&'static str, Value)> {
    select(names()).prop_flat_map(|name| (Just(name), message(name, 0)))
}

fn written(payload: &Payload) -> String {
    let mut out = Vec::new();
    payload.encode_json(&mut out);
    String::from_utf8(out).unwrap()
}

/// Returns the same message as a careless client might spell it: declared names, members in reverse
/// order, numbers in and out of quotes.
fn respelled(name: &str, value: &Value) -> Value {
    let members = value.as_object().unwrap().iter().rev();
    let members = members.map(|(key, value)| {
        let Some(field) = fields(name).iter().find(|it| it["json"] == *key) else {
            return (key.clone(), value.clone());
        };
        let kind = field["kind"].as_str().unwrap();
        let single = field["list"] == false;
        let value = match (kind, value) {
            ("uint64" | "int64", Value::String(digits)) if single => {
                serde_json::from_str(digits).unwrap()
            }
            ("uint32" | "int32", Value::Number(number)) if single => json!(format!("{number}.0")),
            ("google.protobuf.Any", Value::Object(members)) => {
                let backwards = members.iter().rev();
                Value::Object(backwards.map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            (kind, Value::Object(_)) if SCHEMA["messages"][kind].is_array() => {
                respelled(kind, value)
            }
            _ => value.clone(),
        };
        (field["proto"].as_str().unwrap().to_owned(), value)
    });
    Value::Object(members.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn canonical_json_comes_back_byte_by_byte((name, value) in any_message()) {
        let text = json::to_string(&value);
        let payload = Payload::decode_json(name, text.as_bytes(), Strictness::Strict);
        let payload = payload.map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        prop_assert_eq!(written(&payload), text);
        prop_assert_eq!(payload.full_name(), name);
    }

    #[test]
    fn spelling_does_not_change_the_meaning((name, value) in any_message()) {
        let canonical = json::to_string(&value);
        let respelled = serde_json::to_string_pretty(&respelled(name, &value)).unwrap();
        let payload = Payload::decode_json(name, respelled.as_bytes(), Strictness::Strict);
        let payload = payload.map_err(|error| TestCaseError::fail(format!("{error}: {respelled}")))?;
        prop_assert_eq!(written(&payload), canonical);
    }

    #[test]
    fn what_is_not_declared_is_refused_or_passed_over((name, value) in any_message(), extra in undeclared()) {
        let mut with_extra = Map::new();
        with_extra.insert("notDeclared".to_owned(), extra);
        with_extra.extend(value.as_object().unwrap().clone());
        let text = json::to_string(&Value::Object(with_extra));
        let strict = Payload::decode_json(name, text.as_bytes(), Strictness::Strict);
        prop_assert_eq!(strict.map_err(|error| (error.code(), error.field)), Err(("unknown_field", "notDeclared".to_owned())));
        let lenient = Payload::decode_json(name, text.as_bytes(), Strictness::Lenient).unwrap();
        prop_assert_eq!(written(&lenient), json::to_string(&value));
    }

    #[test]
    fn messages_of_unknown_types_are_kept(value in undeclared_object()) {
        let mut payload = json!({"@type": "type.googleapis.com/later.v9.News"});
        payload.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        let line = json!({"version": 1, "uiEvent": {"payload": payload}});
        // Numbers are preserved as they were spelled, so the text is compared in serde_json's
        // spelling.
        let pretty = serde_json::to_string_pretty(&line).unwrap();
        let read = RpcLine::decode_json(pretty.as_bytes(), Strictness::Lenient).unwrap();
        prop_assert_eq!(read.to_json(), line.to_string());
        let strict = RpcLine::decode_json(pretty.as_bytes(), Strictness::Strict);
        prop_assert_eq!(strict.unwrap_err().code(), "unknown_type");
    }

    #[test]
    fn undeclared_data_reads_as_other_parsers_read_it(value in undeclared_object()) {
        let text = format!("{{\"inputSchema\":{}}}", serde_json::to_string(&value).unwrap());
        let read = FrontendToolDescriptor::decode_json(text.as_bytes(), Strictness::Strict).unwrap();
        prop_assert_eq!(read.input_schema, Some(Struct::from(value.as_object().unwrap())));
    }

    #[test]
    fn broken_lines_are_errors_and_never_panics(
        (name, value) in any_message(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let mut bytes = json::to_vec(&value);
        for (at, byte, change) in changes {
            let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match change {
                _ if bytes.is_empty() => bytes.push(byte),
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            if let Ok(payload) = Payload::decode_json(name, &bytes, strictness) {
                // Accepted text is also JSON for other parsers, and is written so that it decodes
                // to the same value.
                prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok(), "{}", String::from_utf8_lossy(&bytes));
                let text = written(&payload);
                let again = Payload::decode_json(name, text.as_bytes(), Strictness::Lenient).unwrap();
                prop_assert_eq!(again, payload);
            }
        }
    }

    #[test]
    fn any_bytes_at_all(bytes in any::<Vec<u8>>(), text in "[\\[\\]{}\",:0-9eE.+\\-truefalsn\\\\ud8c]{0,40}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = RpcRequestLine::decode_json(bytes, Strictness::Lenient);
            let inside = [b"{\"x\":", bytes, b"}"].concat();
            let accepted = RpcRequestLine::decode_json(&inside, Strictness::Lenient).is_ok();
            let json = serde_json::from_slice::<serde::de::IgnoredAny>(&inside).is_ok()
                && std::str::from_utf8(&inside).is_ok();
            // The other parser does not check escapes in ignored values.
            if accepted {
                prop_assert!(json, "{}", String::from_utf8_lossy(&inside));
            }
        }
    }

    #[test]
    fn whole_numbers_in_any_spelling(number in any::<u32>(), zeros in 0..12_usize, shift in -9..9_i32) {
        // number × 10^zeros, its point moved by `shift`, and the power that moves it back.
        let digits = format!("{number}{}", "0".repeat(zeros));
        let moved = match shift {
            0.. => format!("{digits}{}", "0".repeat(shift as usize)),
            _ => {
                let padded = format!("{digits:0>width$}", width = shift.unsigned_abs() as usize + 1);
                let (whole, fraction) = padded.split_at(padded.len() - shift.unsigned_abs() as usize);
                format!("{}.{fraction}", if whole.trim_start_matches('0').is_empty() { "0" } else { whole.trim_start_matches('0') })
            }
        };
        let moved = if number == 0 { "0.0".to_owned() } else { moved };
        let value: u128 = digits.parse().unwrap();
        for text in [format!("{moved}e{}", -shift), format!("\"{moved}E{:+}\"", -shift)] {
            let line = format!("{{\"revision\":{text}}}");
            let read = Payload::decode_json("pinocchio.chatapp.frontendtools.v1.FrontendToolManifestUpdated", line.as_bytes(), Strictness::Strict);
            match (read, u64::try_from(value)) {
                (Ok(Payload::FrontendToolManifestUpdated(it)), Ok(value)) => prop_assert_eq!(it.revision, value),
                (Err(error), Err(_)) => prop_assert_eq!(error.code(), "out_of_range"),
                (read, value) => prop_assert!(false, "{}: {:?} for {:?}", line, read, value),
            }
        }
    }
}
