use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn one(text: &str) -> Result<Message, MalformedMessage> {
    match read(text.as_bytes()) {
        Incoming::One(one) => one,
        Incoming::Batch(_) => panic!("a batch: {text}"),
    }
}

fn wrong(text: &str) -> (Option<Id>, i64) {
    let wrong = one(text).expect_err(text);
    (wrong.id, wrong.fault.code)
}

fn number(number: u64) -> Id {
    Id::Number(number.into())
}

fn text(text: &str) -> Id {
    Id::Text(text.to_owned())
}

#[test]
fn messages_of_every_kind() {
    let asked = one(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[1]}}"#);
    let Ok(Message::Request(Request { id, method, params })) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!((id, method.as_str()), (number(7), "ping"));
    assert_eq!(params.unwrap().get(), r#"{"a":[1]}"#);

    let told = one(r#"{"jsonrpc":"2.0","method":"m","params":null}"#);
    assert!(matches!(told, Ok(Message::Notification(it)) if it.params.is_none()));

    let answered = one(r#"{"jsonrpc":"2.0","id":"x","result":null}"#);
    let Ok(Message::Response(Response { id, outcome })) = answered else {
        panic!("{answered:?}");
    };
    assert_eq!((id, outcome.unwrap().get()), (Some(text("x")), "null"));

    let failed = one(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
    assert!(matches!(failed, Ok(Message::Response(it)) if it.id.is_none()));
}

#[test]
fn malformed_messages_are_recognised() {
    for broken in ["", "{", "nonsense", "{\"a\":1}x", "\"\\ud800\""] {
        if broken.starts_with('"') {
            assert_eq!(wrong(broken), (None, code::INVALID_REQUEST));
        } else {
            assert_eq!(wrong(broken), (None, code::PARSE), "{broken}");
        }
    }
    for (broken, id) in [
        ("5", None),
        ("[]", None),
        ("{}", None),
        ("\"x\"", None),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Some(number(1))),
        (r#"{"id":"a","method":"m"}"#, Some(text("a"))),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(number(1))),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(number(1))),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, None),
    ] {
        assert_eq!(wrong(broken), (id, code::INVALID_REQUEST), "{broken}");
    }
    let listed = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#;
    assert_eq!(wrong(listed), (Some(number(1)), code::INVALID_PARAMS));
}

#[test]
fn a_batch_is_read_part_by_part() {
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, ["2.0",1,"a"], {"jsonrpc":"2.0","method":"b"}]"#;
    let Incoming::Batch(parts) = read(batch.as_bytes()) else {
        panic!("no batch");
    };
    let kinds: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Ok(Message::Request(_)) => "request",
            Ok(Message::Notification(_)) => "notification",
            Ok(Message::Response(_)) => "response",
            Err(_) => "wrong",
        })
        .collect();
    assert_eq!(kinds, ["request", "wrong", "notification"]);
}

#[test]
fn what_is_written_is_one_line() {
    let raw = RawValue::from_string("{\n  \"a\":\r\n 1, \"b\": \"x\\ny\"}".to_owned()).unwrap();
    let line = result(&number(1), &raw);
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    let value: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        value,
        json!({"jsonrpc": "2.0", "id": 1, "result": {"a": 1, "b": "x\ny"}})
    );
    let told = notification("n", Some(&json!({"a": 1})));
    assert_eq!(
        told,
        r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#.as_bytes()
    );
    let nothing = fault(None, &Fault::new(code::PARSE, "no"));
    assert_eq!(
        nothing,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#.as_bytes()
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("2.0")),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn fields() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("jsonrpc"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("more"),
    ];
    proptest::collection::vec((name, value()), 0..6).prop_map(|fields| {
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect())
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_request_is_read_if_and_only_if_it_is_one(mut value in fields(), versioned in any::<bool>()) {
        if versioned {
            value["jsonrpc"] = json!("2.0");
        }
        let is_id = value.get("id").is_some_and(|id| id.is_string() || id.is_number());
        let params = value.get("params").unwrap_or(&Value::Null);
        let is_request = value.get("jsonrpc") == Some(&json!("2.0"))
            && value.get("method").is_some_and(Value::is_string)
            && is_id
            && (params.is_object() || params.is_null());
        match one(&value.to_string()) {
            Ok(Message::Request(request)) => {
                prop_assert!(is_request);
                prop_assert_eq!(serde_json::to_value(&request.id).unwrap(), value["id"].clone());
                prop_assert_eq!(Value::from(request.method), value["method"].clone());
            }
            other => prop_assert!(!is_request, "{other:?}"),
        }
    }

    #[test]
    fn what_is_written_can_be_read(id in "\\PC{0,9}", method in "\\PC{1,9}", params in fields()) {
        let line = request(&text(&id), &method, Some(&params));
        let Incoming::One(Ok(Message::Request(back))) = read(&line) else {
            panic!("{line:?}");
        };
        prop_assert_eq!((back.id, back.method), (text(&id), method));
        let back: Value = serde_json::from_str(back.params.unwrap().get()).unwrap();
        prop_assert_eq!(back, params);
    }
}
