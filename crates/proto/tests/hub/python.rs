//! This crate's binary form compared with that of Python's protobuf, byte by byte. Needs protobuf
//! for the interpreter that `PINION_PROTOBUF_PYTHON` names; `cargo xtask test --all` installs it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use bytes::Bytes;
use pinion_proto::HUB_DESCRIPTORS;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::properties::{any_message, binary, changed, changes};

/// Runs Python on the lines; returns whether it agrees with them, and its output.
fn python(lines: &[Value]) -> (bool, String) {
    let python = std::env::var_os("PINION_PROTOBUF_PYTHON")
        .expect("PINION_PROTOBUF_PYTHON names an interpreter with protobuf");
    let descriptors = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hub-descriptors.bin");
    fs::write(&descriptors, HUB_DESCRIPTORS).unwrap();
    let mut child = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/hub.py"))
        .arg(descriptors)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(text.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

#[test]
#[ignore = "needs python3 and protobuf: cargo xtask test --all"]
fn python_writes_and_reads_the_same_bytes() {
    let mut runner = TestRunner::deterministic();
    let messages = any_message();
    let lines: Vec<Value> = (0..1000)
        .map(|_| {
            let it = messages.new_tree(&mut runner).unwrap().current();
            json!({"type": it.0.name, "binary": digits(&binary(&it)), "json": it.1})
        })
        .collect();
    let (agrees, said) = python(&lines);
    assert!(agrees && said.contains("1000 lines, 0 wrong"), "{said}");
    let (agrees, said) = python(&[json!({
        "type": "pinix.v2.HubError", "binary": "0a0161", "json": {"code": "b"}
    })]);
    assert!(!agrees && said.contains("1 wrong"), "{said}");
}

#[test]
#[ignore = "needs python3 and protobuf: cargo xtask test --all"]
fn python_accepts_and_refuses_the_same_bytes() {
    let mut runner = TestRunner::deterministic();
    let messages = (any_message(), changes());
    let lines: Vec<Value> = (0..3000)
        .map(|_| {
            let (it, changes) = messages.new_tree(&mut runner).unwrap().current();
            let bytes = changed(binary(&it), changes);
            let again = (it.0.again)(Bytes::from(bytes.clone()));
            let again = again.ok().map(|it| digits(&it));
            json!({"type": it.0.name, "bytes": digits(&bytes), "again": again})
        })
        .collect();
    let accepted = lines.iter().filter(|it| !it["again"].is_null()).count();
    assert!((200..2800).contains(&accepted), "{accepted} accepted");
    let (agrees, said) = python(&lines);
    assert!(agrees, "{said}");
}
