//! The first message of `InvokeStream`, in each of its spellings.

use bytes::Bytes;
use pinion_proto::hub::invoke_stream_message::Payload;
use pinion_proto::hub::{InputChunk, InvokeRequest, InvokeStreamMessage};
use pinion_proto::{Binary, FirstInvoke, Message};

use crate::rows::hex;
use crate::vectors::vector;

fn feed() -> InvokeRequest {
    InvokeRequest {
        clip_name: "feed".into(),
        command: "monitor".into(),
        input: "{}".into(),
        ..InvokeRequest::default()
    }
}

#[test]
fn recorded_spellings_are_told_apart() {
    let vectors = vector("connect/c04-invokestream-binary.json");
    let mut verdicts = Vec::new();
    for exchange in vectors["exchanges"].as_array().unwrap() {
        let bytes = hex(exchange["first_payload_hex"].as_str().unwrap());
        let expected = match exchange["verdict"].as_str().unwrap() {
            "flat" => FirstInvoke::Whole(feed()),
            _ => FirstInvoke::Open(feed()),
        };
        verdicts.push(expected.clone());
        assert_eq!(FirstInvoke::decode(bytes), Ok(expected));
    }
    assert_eq!(verdicts.len(), 2);
    assert_ne!(verdicts[0], verdicts[1]);
}

#[test]
fn the_fields_of_our_own_are_a_whole_call() {
    let message = InvokeStreamMessage {
        clip_name: "feed".into(),
        command: "monitor".into(),
        input: "{}".into(),
        ..InvokeStreamMessage::default()
    };
    let whole = Ok(FirstInvoke::Whole(feed()));
    assert_eq!(FirstInvoke::decode(message.to_bytes()), whole);
    assert_eq!(
        FirstInvoke::decode_json(message.to_json().as_bytes()),
        whole
    );
}

#[test]
fn long_names_do_not_hide_the_spelling() {
    for length in [1, 127, 128, 300, 20_000] {
        let request = InvokeRequest {
            clip_name: "a".repeat(length).into(),
            ..feed()
        };
        let nested = InvokeStreamMessage {
            payload: Some(Payload::Start(request.clone())),
            ..InvokeStreamMessage::default()
        };
        let whole = FirstInvoke::decode(request.to_bytes());
        assert_eq!(whole, Ok(FirstInvoke::Whole(request.clone())));
        let open = FirstInvoke::decode(nested.to_bytes());
        assert_eq!(open, Ok(FirstInvoke::Open(request)));
    }
}

#[test]
fn a_start_may_have_any_of_its_fields_first() {
    let requests = [
        InvokeRequest::default(),
        InvokeRequest {
            command: "x".into(),
            ..InvokeRequest::default()
        },
        InvokeRequest {
            input: "{}".into(),
            ..InvokeRequest::default()
        },
        InvokeRequest {
            clip_token: "x".into(),
            ..InvokeRequest::default()
        },
    ];
    for request in requests {
        let nested = InvokeStreamMessage {
            payload: Some(Payload::Start(request.clone())),
            ..InvokeStreamMessage::default()
        };
        let open = FirstInvoke::decode(nested.to_bytes());
        assert_eq!(open, Ok(FirstInvoke::Open(request)));
    }
}

#[test]
fn input_does_not_come_first() {
    let chunk = InvokeStreamMessage {
        payload: Some(Payload::Chunk(InputChunk {
            data: "{}".into(),
            done: true,
        })),
        ..InvokeStreamMessage::default()
    };
    assert_eq!(
        FirstInvoke::decode(chunk.to_bytes()),
        Ok(FirstInvoke::Chunk)
    );
    let json = FirstInvoke::decode_json(chunk.to_json().as_bytes());
    assert_eq!(json, Ok(FirstInvoke::Chunk));
}

#[test]
fn json_may_use_the_other_names() {
    let whole = [
        r#"{"clipName":"feed","command":"monitor","input":"e30="}"#,
        r#"{"alias":"feed","command":"monitor","input":{ }}"#,
        r#"{"clip":"feed","command":"monitor","input":"e30","later":1}"#,
        r#"{"start":null,"clip_name":"feed","command":"monitor","input":{}}"#,
    ];
    for text in whole {
        let read = FirstInvoke::decode_json(text.as_bytes());
        assert_eq!(read, Ok(FirstInvoke::Whole(feed())), "{text}");
    }
    let open = [
        r#"{"start":{"clipName":"feed","command":"monitor","input":"e30="}}"#,
        r#"{"start":{"alias":"feed","command":"monitor","input":{}}}"#,
        r#"{"start":{"clip":"feed","command":"monitor","input":{}}}"#,
    ];
    for text in open {
        let read = FirstInvoke::decode_json(text.as_bytes());
        assert_eq!(read, Ok(FirstInvoke::Open(feed())), "{text}");
    }
}

#[test]
fn broken_messages_are_errors() {
    for digits in ["0a", "0a05666565", "0a0166ff", "00", "0b0a"] {
        assert!(FirstInvoke::decode(hex(digits)).is_err(), "{digits}");
    }
    assert_eq!(
        FirstInvoke::decode(Bytes::new()),
        Ok(FirstInvoke::Whole(InvokeRequest::default()))
    );
}
