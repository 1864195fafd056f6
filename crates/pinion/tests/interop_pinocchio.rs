//! Frames of the Pinocchio front and Python's protobuf: each reads what the other writes. Needs protobuf for the
//! interpreter that `PINION_PROTOBUF_PYTHON` names; `cargo xtask test --all` puts it there. Where it is installed, it
//! also reads the frames of every other test of the front (`pinion_testkit::frames`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs;
use std::path::Path;

use pinion_proto::rpc::{RpcLine, RpcRequestLine};
use pinion_proto::sessionstream::{ClientFrame, ServerFrame};
use pinion_proto::{Message, Strictness};
use pinion_testkit::frames::{Python, check, python};
use serde_json::Value;

fn ready() -> Python {
    python().expect("PINION_PROTOBUF_PYTHON names an interpreter with protobuf")
}

/// Returns the recorded streams whose names have this ending, concatenated.
fn recorded(ending: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pinocchio");
    let paths = fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().path());
    let streams = paths.filter(|path| path.to_str().unwrap().ends_with(ending));
    streams
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
#[ignore = "needs python3 and protobuf: cargo xtask test --all"]
fn python_reads_the_recorded_lines() {
    let python = ready();
    let frames = check(recorded(".stdout.jsonl").as_bytes());
    assert!(frames.len() > 200, "{} frames", frames.len());
    // One recorded client writes a line that is not a request.
    let requests = recorded(".stdin.jsonl").replace("not-json\n", "");
    let (succeeded, said) = python.run("check", RpcRequestLine::FULL_NAME, requests.as_bytes());
    assert!(succeeded && !said.starts_with("0 lines"), "{said}");
}

#[test]
#[ignore = "needs python3 and protobuf: cargo xtask test --all"]
fn python_refuses_what_is_not_a_frame() {
    for line in [
        "{\"version\":1,\"sessionID\":\"x\"}\n",
        "{\"version\":1,\"version\":1}\n",
        "{\"version\":0}\n",
        "{\"uiEvent\":{\"payload\":{\"@type\":\"type.googleapis.com/later.v1.News\"}}}\n",
        "{\"uiEvent\":{\"ordinal\":7}}\n",
    ] {
        let (succeeded, said) = ready().run("check", RpcLine::FULL_NAME, line.as_bytes());
        assert!(!succeeded && said.contains("1 wrong"), "{line}{said}");
    }
}

/// Compares as JSON: 2 equals 2.0.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let there = |(name, left)| right.get(name).is_some_and(|right| same(left, right));
            left.len() == right.len() && left.iter().all(there)
        }
        _ => left == right,
    }
}

/// Checks that messages made by Python are read strictly here, and that those written here are the same to Python.
fn both_ways<M: Message>(enough: usize) {
    let (succeeded, made) = ready().run("make", M::FULL_NAME, b"");
    assert!(succeeded, "{made}");
    let mut ours = Vec::new();
    let mut lines = 0;
    for line in made.split('\n').filter(|it| !it.is_empty()) {
        let message = M::decode_json(line.as_bytes(), Strictness::Strict)
            .unwrap_or_else(|error| panic!("{error}\n{line}"));
        let start = ours.len();
        message.encode_json(&mut ours);
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        let same = same(&value(line.as_bytes()), &value(&ours[start..]));
        assert!(same, "{line}\n{}", String::from_utf8_lossy(&ours[start..]));
        ours.push(b'\n');
        lines += 1;
    }
    assert!(lines >= enough, "{lines} lines");
    let (succeeded, said) = ready().run("check", M::FULL_NAME, &ours);
    assert!(succeeded, "{said}");
}

#[test]
#[ignore = "needs python3 and protobuf: cargo xtask test --all"]
fn every_message_goes_both_ways() {
    both_ways::<RpcLine>(200);
    both_ways::<RpcRequestLine>(4);
    both_ways::<ServerFrame>(150);
    both_ways::<ClientFrame>(4);
}
