//! Recorded streams of the command runner, and the table of valid and invalid requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::fs;
use std::path::{Path, PathBuf};

use pinion_proto::rpc::rpc_request_line::Request;
use pinion_proto::rpc::{RpcLine, RpcRequestLine};
use pinion_proto::{DecodeError, Message, Strictness};
use serde_json::Value;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pinocchio")
}

/// Returns every line of the files with this ending.
fn lines(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(vectors()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(ending) {
            let text = fs::read_to_string(&path).unwrap();
            let numbered = text.split('\n').filter(|it| !it.is_empty()).enumerate();
            found.extend(numbered.map(|(at, it)| (format!("{name}:{}", at + 1), it.to_owned())));
        }
    }
    found
}

fn strictly<M: Message>(text: &str) -> Result<M, DecodeError> {
    M::decode_json(text.as_bytes(), Strictness::Strict)
}

#[test]
fn every_recorded_frame_is_read_strictly_and_written_back_byte_by_byte() {
    let lines = lines(".stdout.jsonl");
    assert!(lines.len() > 180, "{} lines", lines.len());
    for (place, line) in lines {
        let frame: RpcLine = strictly(&line).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(frame.to_json(), line, "{place}");
    }
}

#[test]
fn every_recorded_request_is_read_strictly_and_written_back_byte_by_byte() {
    let lines = lines(".stdin.jsonl");
    assert!(lines.len() > 20, "{} lines", lines.len());
    for (place, line) in lines {
        let read = strictly::<RpcRequestLine>(&line);
        if place == "12-stdin-request-local-errors.stdin.jsonl:1" {
            assert_eq!(read.map_err(|error| error.code()), Err("syntax"));
            continue;
        }
        let request = read.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(request.to_json(), line, "{place}");
    }
}

#[test]
fn requests_are_accepted_and_refused_as_the_table_says() {
    let table = fs::read(vectors().join("request-codec.json")).unwrap();
    let table: Vec<Value> = serde_json::from_slice(&table).unwrap();
    assert_eq!(table.len(), 24);
    for row in table {
        let line = row["line"].as_str().unwrap();
        let read = RpcRequestLine::decode_json(line.as_bytes(), Strictness::Lenient);
        assert_eq!(
            Some(read.is_ok()),
            row["accepted"].as_bool(),
            "{row}: {read:?}"
        );
        let member = match read.ok().and_then(|it| it.request) {
            None => "",
            Some(Request::Submit(_)) => "submit",
            Some(Request::Cancel(_)) => "cancel",
            Some(Request::Snapshot(_)) => "snapshot",
            Some(Request::Shutdown(_)) => "shutdown",
        };
        assert_eq!(Some(member), row["request"].as_str(), "{row}");
    }
}
