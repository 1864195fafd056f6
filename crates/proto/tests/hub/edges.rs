//! Protobuf's rules for bytes that no encoder writes, and the spellings that the hub accepts in
//! JSON.

use bytes::Bytes;
use pinion_proto::hub::invoke_stream_message::Payload;
use pinion_proto::hub::{
    AddClipRequest, ClipBinding, ClipInfo, ClipManifest, ClipStatus, DependencySlot,
    GetLogsRequest, HubError, InvokeRequest, InvokeResponse, InvokeStreamMessage, ProviderInfo,
    SetBindingRequest,
};
use pinion_proto::{Binary, FirstInvoke, Message, Strictness};

use crate::rows::{hex, rows};

fn decoded<M: Binary>(digits: &str) -> M {
    M::decode(hex(digits)).unwrap_or_else(|error| panic!("{digits}: {error}"))
}

/// Returns the code of the error and the field it names.
fn refused<M: Binary>(digits: &str) -> (&'static str, String) {
    let error = M::decode(hex(digits)).expect_err(digits);
    (error.code(), error.field)
}

fn lenient<M: Message>(text: &str) -> M {
    M::decode_json(text.as_bytes(), Strictness::Lenient)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn payloads_are_slices_of_what_came() {
    let bytes = InvokeRequest {
        clip_name: "todo".into(),
        input: vec![b'1'; 1000].into(),
        ..InvokeRequest::default()
    }
    .to_bytes();
    let read = InvokeRequest::decode(bytes.clone()).unwrap();
    let range = bytes.as_ptr_range();
    assert!(range.contains(&read.input.as_ptr()));
}

#[test]
fn large_payloads_are_not_copied_to_be_sent() {
    let output = Bytes::from(vec![b'1'; 100_000]);
    let message = InvokeResponse {
        output: output.clone(),
        error: Some(HubError {
            code: "internal".into(),
            ..HubError::default()
        }),
    };
    let pieces = message.to_pieces(b"head".to_vec());
    assert_eq!(pieces.len(), 3);
    assert!(pieces[0].starts_with(b"head"));
    assert_eq!(pieces[1].as_ptr(), output.as_ptr());
    assert_eq!(pieces.concat()[4..], message.to_bytes());
    let only = InvokeResponse {
        output,
        error: None,
    };
    assert_eq!(only.to_pieces(Vec::new()).len(), 2);
    assert!(InvokeResponse::default().to_pieces(Vec::new()).is_empty());
}

#[test]
fn the_last_value_counts_and_messages_are_merged() {
    let twice: InvokeRequest = decoded("0a01610a01621201780a00");
    assert_eq!((&*twice.clip_name, &*twice.command), ("", "x"));
    // An error with a code, then one with a message.
    let merged: InvokeResponse = decoded("12030a016112031201620a0131");
    let error = merged.error.unwrap();
    assert_eq!((&*error.code, &*error.message), ("a", "b"));
}

#[test]
fn the_last_of_those_that_exclude_each_other_counts() {
    // start, chunk, start: the first start is dropped.
    let message: InvokeStreamMessage = decoded("0a030a016112021001" /* … */);
    assert!(matches!(message.payload, Some(Payload::Chunk(it)) if it.done));
    let message: InvokeStreamMessage = decoded("0a030a0161120210010a03120178");
    let Some(Payload::Start(start)) = message.payload else {
        panic!("{message:?}");
    };
    assert_eq!((&*start.clip_name, &*start.command), ("", "x"));
    // The same field twice is merged.
    let message: InvokeStreamMessage = decoded("0a030a01610a03120178");
    let Some(Payload::Start(start)) = message.payload else {
        panic!("{message:?}");
    };
    assert_eq!((&*start.clip_name, &*start.command), ("a", "x"));
}

#[test]
fn maps_keep_the_last_entry_of_a_name() {
    // {"a": {package: "p"}}, then {"a": {version: "v"}}, then a name without a value and a value without a name.
    let digits = "5a080a016112030a0170 5a080a0161120312 0176 5a030a0162 5a051203 0a0171";
    let manifest: ClipManifest = decoded(&digits.replace(' ', ""));
    let slots: Vec<_> = manifest.dependency_slots.into_iter().collect();
    let slot = |package: &'static str, version: &'static str| DependencySlot {
        package: package.into(),
        version: version.into(),
    };
    let expected = [
        ("".into(), slot("q", "")),
        ("a".into(), slot("", "v")),
        ("b".into(), slot("", "")),
    ];
    assert_eq!(slots, expected);
}

#[test]
fn maps_are_written_in_the_order_of_names_with_both_halves() {
    let manifest = ClipManifest {
        entities: [("b".into(), "".into()), ("".into(), "x".into())].into(),
        ..ClipManifest::default()
    };
    assert_eq!(manifest.to_bytes(), hex("52050a0012017852050a01621200"));
}

#[test]
fn what_is_not_declared_is_passed_over() {
    let unknown = [
        "f80701",                 // a number
        "f9070102030405060708",   // eight bytes
        "fa0703616263",           // a text
        "fd0701020304",           // four bytes
        "fb0708010b0a01610cfc07", // a group with a group inside
        "c03e01",                 // a number in a field beyond ours
    ];
    for digits in unknown {
        let request: InvokeRequest =
            decoded(&format!("{digits}0a0161{digits}1201 62{digits}").replace(' ', ""));
        assert_eq!(
            (&*request.clip_name, &*request.command),
            ("a", "b"),
            "{digits}"
        );
    }
}

#[test]
fn values_of_another_form_are_passed_over() {
    // clip_name as a number, has_web as a text.
    let request: InvokeRequest = decoded("0801120162");
    assert_eq!((&*request.clip_name, &*request.command), ("", "b"));
    let info: ClipInfo = decoded("3a01780a0161");
    assert_eq!((info.has_web, &*info.name), (false, "a"));
}

#[test]
fn numbers_take_all_their_forms() {
    let logs: GetLogsRequest = decoded("10ffffffffffffffffff0120feffffffffffffffff013064");
    assert_eq!((logs.tail, logs.since_unix_ms, logs.system), (-1, -2, true));
    assert_eq!(
        logs.to_bytes(),
        hex("10ffffffffffffffffff0120feffffffffffffffff013001")
    );
    // The upper bits beyond 32 are dropped, and a number may be longer than necessary.
    let logs: GetLogsRequest = decoded("1081808080201880 00".replace(' ', "").as_str());
    assert_eq!((logs.tail, logs.follow), (1, false));
    let info: ProviderInfo = decoded("20ffffffffffffffff7f");
    assert_eq!(info.connected_at, i64::MAX);
    let info: ProviderInfo = decoded("20ffffffffffffffffff7f");
    assert_eq!(info.connected_at, -1);
    let info: ClipInfo = decoded("5063");
    assert_eq!(info.status, ClipStatus::Unrecognized(99));
    assert_eq!(info.to_bytes(), hex("5063"));
    assert_eq!(info.to_json(), r#"{"status":99}"#);
    assert_eq!(
        lenient::<ClipInfo>(r#"{"status":"99"}"#).status,
        ClipStatus::Unspecified
    );
}

#[test]
fn what_is_set_to_its_default_inside_a_message_is_there() {
    let response = InvokeResponse {
        error: Some(HubError::default()),
        ..InvokeResponse::default()
    };
    assert_eq!(response.to_bytes(), hex("1200"));
    assert_eq!(decoded::<InvokeResponse>("1200"), response);
}

#[test]
fn broken_bytes_are_refused_with_the_field_named() {
    let truncated = ["0a", "0a0561", "0aff", "12060a0461", "0affffffff0f"];
    for digits in truncated {
        assert_eq!(refused::<InvokeResponse>(digits).0, "truncated", "{digits}");
    }
    assert_eq!(refused::<InvokeResponse>("12040a056161").0, "truncated");
    assert_eq!(refused::<InvokeResponse>("12040a056161").1, "error.code");
    assert_eq!(refused::<InvokeResponse>("12040a02ff61").1, "error.code");
    assert_eq!(refused::<InvokeResponse>("12040a02ff61").0, "not_utf8");
    let malformed = [
        "00",                         // number 0
        "0e",                         // a form that does not exist
        "0c",                         // the end of nothing
        "0b14",                       // another group's end
        "80808080808001",             // a number of more than 29 bits
        "f807ffffffffffffffffffff01", // more than ten bytes
    ];
    for digits in malformed {
        assert_eq!(refused::<InvokeResponse>(digits).0, "malformed", "{digits}");
    }
    for digits in ["0b", "0b0801", "f807", "f90701", "fd0701"] {
        assert_eq!(refused::<InvokeResponse>(digits).0, "truncated", "{digits}");
    }
    // 2^62 bytes that are not there.
    let (code, field) = refused::<InvokeResponse>("0a808080808080808040");
    assert_eq!((code, &*field), ("truncated", "output"));
}

#[test]
fn groups_may_be_nested_a_hundred_times() {
    let groups = |depth| format!("{}{}", "fb07".repeat(depth), "fc07".repeat(depth));
    assert_eq!(decoded::<HubError>(&groups(100)), HubError::default());
    assert_eq!(refused::<HubError>(&groups(101)).0, "too_deep");
    assert_eq!(refused::<HubError>(&"fb07".repeat(1_000_000)).0, "too_deep");
}

#[test]
fn payloads_are_base64_in_json() {
    let request = InvokeRequest {
        input: Bytes::from_static(b"\xfb\xff\xfe>"),
        ..InvokeRequest::default()
    };
    assert_eq!(request.to_json(), r#"{"input":"+//+Pg=="}"#);
    for text in ["+//+Pg==", "+//+Pg", "-__-Pg==", "-__-Pg", r"+\/\/+Pg=="] {
        let json = format!(r#"{{"input":"{text}"}}"#);
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let read = InvokeRequest::decode_json(json.as_bytes(), strictness);
            assert_eq!(read.as_ref(), Ok(&request), "{text}");
        }
    }
    for text in ["+//+P", "+_/+Pg==", "*", "a b="] {
        let json = format!(r#"{{"input":"{text}"}}"#);
        let read = InvokeRequest::decode_json(json.as_bytes(), Strictness::Lenient);
        let error = read.expect_err(text);
        assert_eq!((error.code(), &*error.field), ("wrong_kind", "input"));
    }
}

#[test]
fn payloads_may_be_any_json_where_reading_is_lenient() {
    let values = [
        (r#"{ "a" : [ 1 , 2.50e+1 ] }"#, r#"{"a":[1,2.50e+1]}"#),
        ("[\n]", "[]"),
        ("1.0", "1.0"),
        ("-0", "-0"),
        ("true", "true"),
        (r#"{"x y": " \" \\"}"#, r#"{"x y":" \" \\"}"#),
        ("12345678901234567890123", "12345678901234567890123"),
        ("null", ""),
        (r#""""#, ""),
    ];
    for (text, expected) in values {
        let json = format!(r#"{{"command":"x","input": {text} }}"#);
        let read: InvokeRequest = lenient(&json);
        assert_eq!(read.input, expected.as_bytes(), "{text}");
        assert_eq!(read.command, "x");
    }
    let strict = InvokeRequest::decode_json(br#"{"input":{}}"#, Strictness::Strict);
    assert_eq!(strict.expect_err("an object").code(), "wrong_kind");
    for text in ["{", "[1,]", "tru", "01", r#"{"a"}"#] {
        let json = format!(r#"{{"input":{text}}}"#);
        let read = InvokeRequest::decode_json(json.as_bytes(), Strictness::Lenient);
        assert_eq!(read.expect_err(text).code(), "syntax");
    }
}

#[test]
fn requests_go_by_other_names_where_reading_is_lenient() {
    let mut found = 0;
    for row in rows() {
        let Ok(expected) = (row.to_binary)(r#"{"clipName":"todo"}"#, Strictness::Strict) else {
            continue;
        };
        let is_request = row.name.ends_with("Request") || row.name.ends_with("StreamMessage");
        for name in ["alias", "clip"] {
            let json = format!(r#"{{"{name}":"todo"}}"#);
            let read = (row.to_binary)(&json, Strictness::Lenient).unwrap();
            assert_eq!(read == expected, is_request, "{}: {name}", row.name);
            assert!((row.to_binary)(&json, Strictness::Strict).is_err());
        }
        found += usize::from(is_request);
        let twice = (row.to_binary)(r#"{"clipName":"a","alias":"b"}"#, Strictness::Lenient);
        assert_eq!(twice.is_err(), is_request, "{}", row.name);
    }
    assert_eq!(found, 10);
}

#[test]
fn clips_may_be_added_by_package_and_alias() {
    let request: AddClipRequest =
        lenient(r#"{"package":"@acme/todo","version":"^1","alias":"todo","later":{}}"#);
    assert_eq!((&*request.package, &*request.version), ("@acme/todo", "^1"));
    assert_eq!(request.requested_alias, "todo");
    assert_eq!(
        request.to_bytes(),
        hex("2a04746f646fa2060a4061636d652f746f646faa06025e31")
    );
}

#[test]
fn numbers_and_enums_take_either_spelling_in_json() {
    for text in [r#"{"sinceUnixMs":"-5"}"#, r#"{"since_unix_ms":-5}"#] {
        assert_eq!(lenient::<GetLogsRequest>(text).since_unix_ms, -5);
    }
    for text in [r#"{"status":2}"#, r#"{"status":"CLIP_STATUS_SLEEPING"}"#] {
        let info: ClipInfo = lenient(text);
        assert_eq!(info.status, ClipStatus::Sleeping);
        assert_eq!(info.to_json(), r#"{"status":"CLIP_STATUS_SLEEPING"}"#);
    }
}

#[test]
fn secrets_are_not_shown() {
    let binding = ClipBinding {
        alias: "todo".into(),
        hub_token: "pnx_secret".into(),
        ..ClipBinding::default()
    };
    let request = SetBindingRequest {
        binding: Some(binding),
        ..SetBindingRequest::default()
    };
    let shown = format!("{request:?}");
    assert!(shown.contains(r#"alias: "todo""#), "{shown}");
    assert!(
        shown.contains(r#"hub_token: ***, clip_token: """#),
        "{shown}"
    );
    for row in rows() {
        let json = r#"{"clipToken":"pnx_secret"}"#;
        let shown = (row.shown)(json);
        assert!(!shown.contains("pnx_secret"), "{shown}");
    }
    let start = FirstInvoke::decode_json(br#"{"start":{"clipToken":"pnx_secret"}}"#);
    assert!(!format!("{start:?}").contains("pnx_secret"));
}
