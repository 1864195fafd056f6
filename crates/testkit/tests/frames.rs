//! A program whose lines are held against the declarations of frames.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::panic::catch_unwind;
use std::process::Command;
use std::time::Duration;

use pinion_proto::rpc::rpc_line::Frame;
use pinion_testkit::Frames;
use pinion_testkit::frames::check;

const DONE: &str = r#"{"version":1,"sessionId":"s","done":{"status":"ok"}}"#;

/// A program that writes this text.
fn writing(text: &str) -> Frames {
    let mut command = Command::new("printf");
    command.args(["%s", text]);
    let mut frames = Frames::start_command(command);
    frames.wait(Duration::from_secs(20)).unwrap();
    frames.drain(Duration::from_secs(20));
    frames
}

#[test]
fn frames_are_read_as_what_they_are() {
    let frames = writing(&format!("{DONE}\n{DONE}\n"));
    assert_eq!(frames.line_count(), 2);
    let frames = frames.frames();
    assert_eq!(frames.len(), 2);
    assert!(matches!(&frames[1].frame, Some(Frame::Done(it)) if it.status == "ok"));
}

#[test]
fn a_line_cut_off_by_a_kill_is_not_held_against_it() {
    let frames = writing(&format!("{DONE}\n{{\"vers"));
    assert_eq!(frames.frames().len(), 1);
}

#[test]
fn anything_else_fails_the_test_that_wrote_it() {
    for line in [
        "Loading…",
        "{\"version\": 1}",
        "{\"version\":0}",
        "{\"version\":1,\"extra\":1}",
        "{\"sessionId\":\"s\",\"version\":1}",
        "",
    ] {
        let text = format!("{DONE}\n{line}\n");
        let dropped = catch_unwind(|| drop(writing(&text)));
        assert!(dropped.is_err(), "{line}");
        assert!(catch_unwind(|| check(text.as_bytes())).is_err(), "{line}");
    }
    assert!(
        catch_unwind(|| check(DONE.as_bytes())).is_err(),
        "no LF at the end"
    );
}
