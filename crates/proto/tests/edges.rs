//! Edge cases of protobuf's JSON form.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::BTreeMap;

use pinion_proto::chat::{
    ChatAttachment, ChatProviderCallFinished, ChatStreamPatchMode, ChatTextPatch, CorrelationInfo,
};
use pinion_proto::frontend_tools::FrontendToolDescriptor;
use pinion_proto::rpc::rpc_line::Frame;
use pinion_proto::rpc::rpc_request_line::Request;
use pinion_proto::rpc::{RpcLine, RpcRequestLine, ShutdownRequest, SnapshotFrame, UiEventFrame};
use pinion_proto::{
    Enum, Message, Payload, Strictness, Struct, Text, Unknown, Value, any, around_gap,
};

fn strict<M: Message>(text: &str) -> Result<M, (&'static str, String)> {
    M::decode_json(text.as_bytes(), Strictness::Strict).map_err(|error| (error.code(), error.field))
}

fn lenient<M: Message>(text: &str) -> Result<M, (&'static str, String)> {
    M::decode_json(text.as_bytes(), Strictness::Lenient)
        .map_err(|error| (error.code(), error.field))
}

fn refused(code: &'static str, field: &str) -> (&'static str, String) {
    (code, field.to_owned())
}

#[test]
fn text_is_escaped_only_where_it_must_be() {
    let patch = ChatTextPatch {
        text: "\"\\/\u{8}\u{c}\n\r\t\0\u{1f}\u{7f}<>&\u{2028}\u{85}é😀".into(),
        ..ChatTextPatch::default()
    };
    let json = patch.to_json();
    assert_eq!(
        json,
        "{\"text\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}<>&\u{2028}\u{85}é😀\"}"
    );
    assert_eq!(strict(&json), Ok(patch));
}

#[test]
fn what_is_unset_is_left_out_and_what_is_set_is_not() {
    assert_eq!(ChatProviderCallFinished::default().to_json(), "{}");
    let zero = ChatProviderCallFinished {
        duration_ms: Some(0),
        correlation: Some(CorrelationInfo::default()),
        ..ChatProviderCallFinished::default()
    };
    assert_eq!(zero.to_json(), r#"{"durationMs":"0","correlation":{}}"#);
    assert_eq!(strict(&zero.to_json()), Ok(zero));
    let line = RpcLine {
        frame: Some(Frame::Snapshot(SnapshotFrame::default())),
        ..RpcLine::default()
    };
    assert_eq!(line.to_json(), r#"{"snapshot":{}}"#);
    let request = RpcRequestLine {
        request: Some(Request::Shutdown(ShutdownRequest {})),
        ..RpcRequestLine::default()
    };
    assert_eq!(request.to_json(), r#"{"shutdown":{}}"#);
}

#[test]
fn null_is_as_good_as_nothing() {
    let finished =
        strict(r#"{"durationMs":null,"stopReason":null,"usage":null,"hasToolCalls":null}"#);
    assert_eq!(finished, Ok(ChatProviderCallFinished::default()));
    let request: RpcRequestLine = strict(r#"{"submit":null,"cancel":{}}"#).unwrap();
    assert!(matches!(request.request, Some(Request::Cancel(_))));
    let attachments = r#"{"attachments":null}"#;
    assert!(strict::<pinion_proto::chat::StartInferenceCommand>(attachments).is_ok());
    let null_inside = r#"{"attachments":[null]}"#;
    let read = strict::<pinion_proto::chat::StartInferenceCommand>(null_inside);
    assert_eq!(read, Err(refused("wrong_kind", "attachments.0")));
}

#[test]
fn a_field_comes_once() {
    for text in [
        r#"{"sessionId":"a","sessionId":"a"}"#,
        r#"{"sessionId":null,"session_id":"a"}"#,
        r#"{"session_id":"a","sessionId":"b"}"#,
    ] {
        let read = lenient::<RpcRequestLine>(text);
        assert_eq!(read, Err(refused("duplicate", "sessionId")), "{text}");
    }
    let two = lenient::<RpcRequestLine>(r#"{"submit":{},"cancel":{}}"#);
    assert_eq!(two, Err(refused("excluded", "cancel")));
    let map = strict::<ChatAttachment>(r#"{"metadata":{"a":"1","\u0061":"2"}}"#);
    assert_eq!(map, Err(refused("duplicate", "metadata.a")));
    let object = strict::<FrontendToolDescriptor>(r#"{"inputSchema":{"a":{"b":1,"b":1}}}"#);
    assert_eq!(object, Err(refused("duplicate", "inputSchema.a.b")));
}

#[test]
fn broken_text_is_refused() {
    for text in [
        r#"{"prompt":"\ud800"}"#,
        r#"{"prompt":"\ud800\u0041"}"#,
        r#"{"prompt":"\udc00"}"#,
        r#"{"prompt":"\ud83d"#,
        r#"{"prompt":"\x41"}"#,
        r#"{"prompt":"\u+041"}"#,
        "{\"prompt\":\"a\nb\"}",
        r#"{"prompt":"a""#,
        r#"{"prompt":"a"}}"#,
        r#"{"prompt":"a"} {}"#,
        r#"{"prompt":"a",}"#,
        r#"{,"prompt":"a"}"#,
        r#"{"prompt" "a"}"#,
        r#"{prompt:"a"}"#,
        r#"{"x":01}"#,
        r#"{"x":1.}"#,
        r#"{"x":+1}"#,
        r#"{"x":.5}"#,
        r#"{"x":1e}"#,
        r#"{"x":-}"#,
        r#"{"x":nul}"#,
        r#"{"x":True}"#,
        r#"{"x":[1 2]}"#,
        r#"{"x":[1,]}"#,
        r#"{"x":{"a"}}"#,
        r#"{"x":[}"#,
        "",
        " ",
        "nothing",
        "\u{feff}{}",
    ] {
        let read = lenient::<pinion_proto::rpc::SubmitPromptRequest>(text);
        assert_eq!(read.map_err(|it| it.0), Err("syntax"), "{text}");
    }
    let bytes = RpcRequestLine::decode_json(b"{\"sessionId\":\"\xff\"}", Strictness::Lenient);
    assert_eq!(
        bytes.map_err(|error| (error.code(), error.at)),
        Err(("not_utf8", 14))
    );
    let pair: pinion_proto::rpc::SubmitPromptRequest =
        strict(r#"{"prompt":"\ud83d\ude00\/"}"#).unwrap();
    assert_eq!(pair.prompt, "😀/");
}

#[test]
fn numbers_fit_or_are_refused() {
    let version = |number: &str| {
        let read = lenient::<RpcRequestLine>(&format!("{{\"version\":{number}}}"));
        read.map(|it| it.version).map_err(|error| error.0)
    };
    for (number, value) in [
        ("1", 1),
        ("\"1\"", 1),
        ("1.0", 1),
        ("10e-1", 1),
        ("0.1e1", 1),
        ("\"1e0\"", 1),
        ("-0", 0),
        ("0e999999999999999999999", 0),
        ("-0.0e-99999999999999999999", 0),
        ("4294967295", u32::MAX),
        ("4.294967295E+9", u32::MAX),
    ] {
        assert_eq!(version(number), Ok(value), "{number}");
    }
    for number in [
        "-1",
        "1.5",
        "4294967296",
        "1e99999999999999999999",
        "1.25e-9223372036854775807",
        "\"\"",
        "\" 1\"",
        "\"1 \"",
        "\"0x1\"",
        "\"Infinity\"",
        "\"01\"",
    ] {
        assert_eq!(version(number), Err("out_of_range"), "{number}");
    }
    let long = "9".repeat(100_000);
    assert_eq!(version(&long), Err("out_of_range"));
    for other in ["true", "{}", "[]"] {
        assert_eq!(version(other), Err("wrong_kind"), "{other}");
    }
    let extremes: ChatProviderCallFinished =
        strict(r#"{"durationMs":-9223372036854775808}"#).unwrap();
    assert_eq!(
        extremes.to_json(),
        r#"{"durationMs":"-9223372036854775808"}"#
    );
    let too_small = strict::<ChatProviderCallFinished>(r#"{"durationMs":"-9223372036854775809"}"#);
    assert_eq!(too_small, Err(refused("out_of_range", "durationMs")));
    let float = strict::<FrontendToolDescriptor>(r#"{"inputSchema":{"x":1e400}}"#);
    assert_eq!(float, Err(refused("out_of_range", "inputSchema.x")));
}

#[test]
fn depth_has_a_limit_and_the_stack_none_of_it() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let passed_over =
        |depth: usize| lenient::<RpcRequestLine>(&format!("{{\"x\":{}}}", nested(depth)));
    assert_eq!(passed_over(9_000), Ok(RpcRequestLine::default()));
    assert_eq!(passed_over(11_000), Err(refused("too_deep", "")));
    assert_eq!(passed_over(1_000_000), Err(refused("too_deep", "")));
    let kept = |depth: usize| {
        let text = format!("{{\"inputSchema\":{{\"x\":{}}}}}", nested(depth));
        strict::<FrontendToolDescriptor>(&text)
            .map(|_| ())
            .map_err(|error| error.0)
    };
    assert_eq!(kept(90), Ok(()));
    assert_eq!(kept(1_000_000), Err("too_deep"));
}

#[test]
fn enums_have_names_and_keep_numbers_without_one() {
    let mode =
        |value: &str| strict::<ChatTextPatch>(&format!("{{\"mode\":{value}}}")).map(|it| it.mode);
    assert_eq!(
        mode("\"CHAT_STREAM_PATCH_MODE_SNAPSHOT\""),
        Ok(ChatStreamPatchMode::Snapshot)
    );
    assert_eq!(mode("2"), Ok(ChatStreamPatchMode::Snapshot));
    assert_eq!(mode("77"), Ok(ChatStreamPatchMode::Unrecognized(77)));
    assert_eq!(mode("\"snapshot\""), Err(refused("unknown_value", "mode")));
    assert_eq!(mode("true"), Err(refused("wrong_kind", "mode")));
    let passed_over: ChatTextPatch = lenient(r#"{"mode":"LATER"}"#).unwrap();
    assert_eq!(passed_over.mode, ChatStreamPatchMode::Unspecified);
    let odd = ChatTextPatch {
        mode: ChatStreamPatchMode::from_number(-5),
        ..ChatTextPatch::default()
    };
    assert_eq!(odd.to_json(), r#"{"mode":-5}"#);
}

#[test]
fn payloads_say_their_type_wherever_it_stands() {
    let event = |payload: &str| lenient::<UiEventFrame>(&format!("{{\"payload\":{payload}}}"));
    let type_last =
        r#"{"text":"x","@type":"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch"}"#;
    let patch = ChatTextPatch {
        text: "x".into(),
        ..ChatTextPatch::default()
    };
    assert_eq!(event(type_last).unwrap().payload, any(patch));
    assert_eq!(event(r#"{"text":"x"}"#), Err(refused("no_type", "payload")));
    let twice = event(r#"{"@type":"a/b","@type":"a/b"}"#);
    assert_eq!(twice, Err(refused("duplicate", "payload.@type")));
    let none = event("{}").unwrap();
    assert_eq!(none.payload, any(Unknown::default()));
    assert_eq!(none.to_json(), r#"{"payload":{}}"#);
    let foreign = event(r#"{"@type":"example.com/later.News", "a" : [1, "b \" c"]}"#).unwrap();
    assert_eq!(foreign.payload.as_ref().unwrap().full_name(), "later.News");
    assert_eq!(
        foreign.to_json(),
        r#"{"payload":{"@type":"example.com/later.News","a":[1,"b \" c"]}}"#
    );
    let in_plain_message = strict::<ChatTextPatch>(r#"{"@type":"x"}"#);
    assert_eq!(in_plain_message, Err(refused("unknown_field", "@type")));
}

#[test]
fn payloads_are_kept_without_their_type() {
    let text = br#"{"text":"x"}"#;
    let name = ChatTextPatch::FULL_NAME;
    let payload = Payload::decode_json(name, text, Strictness::Strict).unwrap();
    assert!(matches!(&payload, Payload::ChatTextPatch(it) if it.text == "x"));
    let mut plain = Vec::new();
    payload.encode_json(&mut plain);
    assert_eq!(plain, text);
    let later = Payload::decode_json("later.v1.News", b"{\"a\": 1}", Strictness::Lenient).unwrap();
    let mut with_type = Vec::new();
    later.encode_any(&mut with_type);
    assert_eq!(
        with_type,
        br#"{"@type":"type.googleapis.com/later.v1.News","a":1}"#
    );
}

#[test]
fn undeclared_data_is_sorted_and_whole_numbers_have_no_fraction() {
    let text =
        r#"{"inputSchema":{"z":2.0,"a":[1e21,-0.0,0.000001,1e-7,null,{}],"m":{"y":1,"x":false}}}"#;
    let tool: FrontendToolDescriptor = strict(text).unwrap();
    assert_eq!(
        tool.to_json(),
        r#"{"inputSchema":{"a":[1e+21,-0,0.000001,1e-7,null,{}],"m":{"x":false,"y":1},"z":2}}"#
    );
    let odd = Struct(BTreeMap::from([("x".into(), Value::Number(f64::INFINITY))]));
    let tool = FrontendToolDescriptor {
        input_schema: Some(odd),
        ..FrontendToolDescriptor::default()
    };
    assert_eq!(tool.to_json(), r#"{"inputSchema":{"x":null}}"#);
}

#[test]
fn a_gap_is_filled_by_whoever_keeps_the_text() {
    let patch = ChatTextPatch {
        text: Text::GAP,
        status: "streaming\0".into(),
        ..ChatTextPatch::default()
    };
    let mut out = Vec::new();
    patch.encode_json(&mut out);
    let (before, after) = around_gap(&out).unwrap();
    assert_eq!(before, br#"{"text":""#);
    assert_eq!(after, br#"","status":"streaming\u0000"}"#);
    assert_eq!(around_gap(b"{}"), None);
}

#[test]
fn errors_say_what_and_where() {
    let line = r#"{"uiEvent":{"payload":{"@type":"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch","mode":"x"}}}"#;
    let error = RpcLine::decode_json(line.as_bytes(), Strictness::Strict).unwrap_err();
    assert_eq!(
        error.to_string(),
        "uiEvent.payload.mode: unknown value `x` for this field (byte 95)"
    );
}
