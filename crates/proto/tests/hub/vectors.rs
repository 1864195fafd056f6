//! Recorded encodings and exchanges between clients and hubs.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use pinion_proto::Strictness;
use serde_json::{Value, json};

use crate::rows::{hex, named};

pub fn vector(path: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pinix");
    serde_json::from_slice(&fs::read(root.join(path)).unwrap()).unwrap()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_encoding_is_read_and_written_byte_by_byte() {
    let vectors = vector("provider/p12-binary-encodings.json");
    let encodings = vectors["encodings"].as_array().unwrap();
    assert_eq!(encodings.len(), 18);
    for encoding in encodings {
        let row = named(encoding["type"].as_str().unwrap());
        let bytes = hex(encoding["hex"].as_str().unwrap());
        let json = encoding["json"].to_string();
        let read = (row.to_json)(bytes.clone());
        assert_eq!(read.map(|it| value(&it)), Ok(encoding["json"].clone()));
        assert_eq!((row.again)(bytes.clone()), Ok(bytes.clone()), "{json}");
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let written = (row.to_binary)(&json, strictness);
            assert_eq!(written, Ok(bytes.clone()), "{json}");
        }
    }
}

/// Returns the request and response messages of a method.
fn messages(path: &str) -> Option<(&'static str, &'static str)> {
    Some(match path.rsplit('/').next()? {
        "Invoke" => ("InvokeRequest", "InvokeResponse"),
        "InvokeStream" => ("InvokeStreamMessage", "InvokeResponse"),
        "ListClips" => ("ListClipsRequest", "ListClipsResponse"),
        "AddClip" => ("AddClipRequest", "AddClipResponse"),
        "HubInfo" => ("HubInfoRequest", "HubInfoResponse"),
        "GetLogs" => ("GetLogsRequest", "LogEntry"),
        "GetClipManifest" | "GetManifest" => ("GetManifestRequest", "GetManifestResponse"),
        "Data" | "DataRead" | "DataWrite" => ("DataRequest", "DataResponse"),
        _ => return None,
    })
}

/// Returns the messages in a body of envelopes; the last envelope of a stream is not a message.
fn envelopes(mut body: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        let head = body.split_to(5);
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let message = body.split_to(length as usize);
        if head[0] == 0 {
            messages.push(message);
        }
    }
    messages
}

/// Returns every message of one side of an exchange.
fn sent(side: &Value) -> Vec<Bytes> {
    let mut messages = Vec::new();
    messages.extend(side["body"].as_str().map(|it| Bytes::from(it.to_owned())));
    let body = side["body_hex"].as_str();
    messages.extend(body.into_iter().flat_map(|it| envelopes(hex(it))));
    for frame in side["frames"].as_array().into_iter().flatten() {
        let frame = frame.as_array().unwrap();
        if frame[frame.len() - 2] == 0 {
            messages.push(frame[frame.len() - 1].to_string().into());
        }
    }
    messages
}

/// Converts a message to both forms and back.
fn both_ways(name: &str, message: &Bytes) {
    let row = named(&format!("pinix.v2.{name}"));
    if message.first().is_some_and(|&it| it != b'{') {
        let json = (row.to_json)(message.clone()).unwrap();
        assert_eq!(
            (row.to_binary)(&json, Strictness::Strict).as_ref(),
            Ok(message)
        );
        return;
    }
    let text = std::str::from_utf8(message).unwrap();
    let binary = (row.to_binary)(text, Strictness::Lenient).unwrap();
    let canonical = match value(text) {
        it if it["alias"] == "todo" => json!({
            "clipName": "todo", "command": "add", "input": "eyJ0aXRsZSI6IkJ1eSBtaWxrIn0="
        }),
        it if it["clip_name"] == "todo" => json!({"clipName": "todo"}),
        it => it,
    };
    assert_eq!(value(&(row.to_json)(binary).unwrap()), canonical);
}

#[test]
fn what_clients_and_hubs_say_is_read_and_written() {
    let files = [
        "c01-invoke-unary",
        "c02-invoke-stream-json",
        "c03-error-forms",
        "c05-grpc-invoke",
        "c07-data",
        "c08-info-logs-manifest",
    ];
    let mut count = 0;
    for file in files {
        let vectors = vector(&format!("connect/{file}.json"));
        for exchange in vectors["exchanges"].as_array().unwrap() {
            let Some(path) = exchange["request"]["path"].as_str() else {
                continue;
            };
            let Some((request, response)) = messages(path) else {
                panic!("{file}: {path}");
            };
            for message in sent(&exchange["request"]) {
                both_ways(request, &message);
                count += 1;
            }
            if exchange["response"]["status"] != 200 {
                continue;
            }
            for message in sent(&exchange["response"]) {
                both_ways(response, &message);
                count += 1;
            }
        }
    }
    assert_eq!(count, 46);
}
