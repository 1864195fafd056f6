use super::*;
use proptest::prelude::*;

fn message(line: &str) -> Message {
    decode(&Bytes::copy_from_slice(line.as_bytes())).unwrap().0
}

fn junk(line: &[u8]) -> Junk {
    decode(&Bytes::copy_from_slice(line)).unwrap_err()
}

#[test]
fn both_dialects_mean_the_same() {
    for (left, right) in [
        (
            r#"{"type":"result","id":"1","output":[1]}"#,
            r#"{"output":[1],"id":"1","type":"response"}"#,
        ),
        (
            r#"{"type":"chunk","id":"1","output":null}"#,
            r#"{"type":"stream","id":"1","chunk":null}"#,
        ),
        (
            r#"{"type":"chunk","id":"1","output":"a"}"#,
            r#"{"type":"stream","id":"1","data":"a"}"#,
        ),
        (
            r#"{"type":"done","id":"1"}"#,
            r#"{"type":"stream_end","id":"1"}"#,
        ),
        (
            r#"{"type":"error","id":"1","error":"no"}"#,
            r#"{"type":"response","id":"1","error":"no"}"#,
        ),
        (
            r#"{"type":"error","id":"1","error":{"code":"NOT_FOUND","message":"m"}}"#,
            r#"{"type":"stream_end","id":"1","error":{"code":"not_found","message":"m"}}"#,
        ),
        (
            r#"{"type":"invoke","id":7,"clip":"b","command":" c "}"#,
            r#"{"type":"invoke_clip","id":7,"alias":"b","command":"c","input":{}}"#,
        ),
    ] {
        let (left_message, left_spelling) = decode(&Bytes::from_static(left.as_bytes())).unwrap();
        let (right_message, right_spelling) =
            decode(&Bytes::from_static(right.as_bytes())).unwrap();
        assert_eq!(
            format!("{left_message:?}"),
            format!("{right_message:?}"),
            "{left} {right}"
        );
        assert_eq!(
            (left_spelling, right_spelling),
            (LineDialect::Register, LineDialect::Direct)
        );
    }
}

#[test]
fn values_pass_as_they_were_written() {
    let number = "12345678901234567890123.4500";
    let line = format!(r#"{{"type":"result","id":"1","output":{{"n" : {number}, "s":"\u00e9"}}}}"#);
    let Message::Result(_, Some(output)) = message(&line) else {
        panic!()
    };
    assert_eq!(output, format!(r#"{{"n" : {number}, "s":"\u00e9"}}"#));
}

#[test]
fn a_missing_value_differs_from_null() {
    assert!(matches!(
        message(r#"{"type":"result","id":"1"}"#),
        Message::Result(_, None)
    ));
    assert!(
        matches!(message(r#"{"type":"result","id":"1","output":null}"#), Message::Result(_, Some(output)) if output == "null")
    );
    assert!(matches!(
        message(r#"{"type":"response","id":"1","error":null}"#),
        Message::Result(_, None)
    ));
    assert!(matches!(
        message(r#"{"type":"register"}"#),
        Message::Register(None)
    ));
}

#[test]
fn failures_keep_their_words() {
    let error = |line: &str, after_chunks| match message(line) {
        Message::Failed(_, failure) => failure.into_error(after_chunks),
        other => panic!("{other:?}"),
    };
    let unknown = error(
        r#"{"type":"error","id":"1","error":"unknown command: nope"}"#,
        false,
    );
    assert_eq!(
        (unknown.code, unknown.message.as_ref()),
        (Code::NotFound, "unknown command: nope")
    );
    let issues =
        r#"{"type":"error","id":"1","error":"[{\"code\":\"x\",\"path\":[],\"message\":\"m\"}]"}"#;
    assert_eq!(error(issues, false).code, Code::InvalidArgument);
    assert_eq!(error(issues, true).code, Code::Internal);
    assert_eq!(
        error(r#"{"type":"error","id":"1","error":"[1]"}"#, false).code,
        Code::Internal
    );
    assert_eq!(
        error(
            r#"{"type":"response","id":"1","error":{"code":"weird","message":"m"}}"#,
            false
        )
        .code,
        Code::Internal
    );
    assert_eq!(
        error(r#"{"type":"error","id":"1","error":[5]}"#, false).message,
        "[5]"
    );
}

#[test]
fn lines_that_are_not_messages_are_classified() {
    for line in [
        &b"hello"[..],
        b"[]",
        b"{",
        b"\xff",
        b"",
        b"5",
        b"\0",
        b"{\"type\":\"result\",\"id\":\"\xff\"}",
    ] {
        assert_eq!(junk(line), Junk::NotJson, "{line:?}");
    }
    assert_eq!(junk(b"{}"), Junk::UnknownType(String::new()));
    assert_eq!(
        junk(br#"{"type":"registered"}"#),
        Junk::UnknownType("registered".into())
    );
    for kind in [
        "result",
        "chunk",
        "done",
        "error",
        "invoke",
        "data",
        "list_clips",
        "response",
    ] {
        for id in ["", r#","id":"""#, r#","id":null"#, r#","id":{}"#] {
            let line = format!(r#"{{"type":"{kind}"{id}}}"#);
            assert_eq!(junk(line.as_bytes()), Junk::NoId, "{line}");
        }
    }
}

#[test]
fn deep_nesting_is_passed_on_without_being_walked() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let line = format!(r#"{{"type":"result","id":"1","output":{deep}}}"#);
    assert!(matches!(message(&line), Message::Result(_, Some(output)) if output == deep));
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_line_makes_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes.into());
    }

    #[test]
    fn no_object_makes_the_decoder_panic(
        kind in prop_oneof!["register|result|response|error|chunk|stream|done|stream_end|invoke|invoke_clip|log|data|list_clips", any::<String>()],
        keys in proptest::collection::btree_map("id|output|chunk|data|error|manifest|clip|command|input|operation|path|content|level|message", json(), 0..6),
    ) {
        let mut line = serde_json::Map::from_iter(keys);
        line.insert("type".into(), kind.into());
        let _ = decode(&serde_json::Value::Object(line).to_string().into());
    }

    #[test]
    fn outputs_survive_in_both_dialects(output in json(), id in "[a-z0-9-]{1,40}") {
        for kind in ["result", "response"] {
            let line = serde_json::json!({"type": kind, "id": id, "output": output}).to_string();
            match decode(&line.into()) {
                Ok((Message::Result(found, Some(raw)), _)) => {
                    prop_assert_eq!(&*found, id.as_str());
                    prop_assert_eq!(raw, output.to_string());
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// Decodes a line without the short cut for long strings.
fn thorough(line: &Bytes) -> Result<(Message, LineDialect), Junk> {
    understand(line, &|raw| part(line, raw.get().as_bytes()))
}

#[test]
fn a_long_plain_string_is_passed_on_without_being_read() {
    let long = "QUJD".repeat(20_000);
    for (line, output) in [
        (
            format!(r#"{{"type":"chunk","id":"1","output":"{long}"}}"#),
            format!("\"{long}\""),
        ),
        (
            format!(r#" {{"id":"1","chunk" : "{long}" , "type":"stream"}} "#),
            format!("\"{long}\""),
        ),
        (
            format!(r#"{{"type":"result","id":"1","output":{{"a":[1,"{long}",2]}}}}"#),
            format!(r#"{{"a":[1,"{long}",2]}}"#),
        ),
        (
            format!(r#"{{"type":"result","note":"{long}","id":"1","output":[1]}}"#),
            "[1]".to_owned(),
        ),
    ] {
        let line = Bytes::from(line);
        assert!(
            Shortened::of(&line)
                .and_then(|short| decode_short(&line, &short))
                .is_some()
        );
        match decode(&line) {
            Ok((Message::Chunk(id, bytes) | Message::Result(id, Some(bytes)), _)) => {
                assert_eq!((&*id, &bytes[..]), ("1", output.as_bytes()));
            }
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn long_lines_decode_the_same_with_and_without_the_short_cut(
        kind in prop_oneof![Just("chunk"), Just("stream"), Just("result"), Just("error"), Just("log"), Just("data"), Just("other")],
        members in proptest::collection::vec(
            (
                prop_oneof![Just("id"), Just("output"), Just("chunk"), Just("error"), Just("message"), Just("content"), Just("x")],
                prop_oneof![
                    Just(r#""1""#.to_owned()),
                    Just("7".to_owned()),
                    Just("null".to_owned()),
                    Just(r#""a\"b""#.to_owned()),
                    Just(r#"{"k":["v"]}"#.to_owned()),
                    (4096usize..6000).prop_map(|length| format!("\"{}\"", "y".repeat(length))),
                    (4096usize..6000).prop_map(|length| format!("[1,\"{}\"]", "y".repeat(length))),
                    (4096usize..6000).prop_map(|length| format!("\"{}\\n\"", "y".repeat(length))),
                    (4096usize..6000).prop_map(|length| format!("\"é{}\"", "y".repeat(length))),
                    (4096usize..6000).prop_map(|length| format!("\"{}\u{1}\"", "y".repeat(length))),
                ],
            ),
            0..6,
        ),
        damage in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
    ) {
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let mut line = format!("{{\"type\":\"{kind}\",{}}}", members.join(",")).into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(line.len());
            line[at] = byte;
        }
        let line = Bytes::from(line);
        prop_assert_eq!(format!("{:?}", decode(&line)), format!("{:?}", thorough(&line)));
    }
}
