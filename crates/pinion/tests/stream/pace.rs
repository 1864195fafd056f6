//! Pace and number of lines: sent at once to a reader that is fast enough, merged for one that is not, and never
//! without the ones that matter.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use pinion_testkit::fault::pipe::{Reader, Reading};
use pinion_testkit::fault::proc;
use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::support::{
    Client, HANG, answers_by_id, args, check_runs, offline_sandbox, pinion, script,
};

/// Starts the program with a pipe of one page, so that a slow reader has an effect at once.
fn start_narrow(sandbox: &Sandbox, extra: &[&str]) -> Child {
    let arguments = [&["--mode", "rpc", "--model", "offline/demo"], extra].concat();
    let mut command = pinion().command(sandbox, &args(&arguments));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let stdout = child.stdout.as_ref().unwrap();
    fcntl(stdout.as_fd(), FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    child
}

fn send(child: &mut Child, command: &Value) {
    writeln!(child.stdin.as_mut().unwrap(), "{command}").unwrap();
}

fn parse(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'), "the last record is cut off");
    text.split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Joins the deltas, as a client does that looks at nothing else.
fn assembled(lines: &[Value]) -> String {
    let events = lines.iter().map(|line| &line["assistantMessageEvent"]);
    events
        .filter(|event| event["type"] == "text_delta")
        .filter_map(|event| event["delta"].as_str())
        .collect()
}

#[test]
fn s5_what_a_slow_reader_gets_grows_with_the_answer_and_not_with_its_square() {
    let sandbox = offline_sandbox(&json!({}));
    let mut child = start_narrow(&sandbox, &[]);
    let reader = Reader::start(child.stdout.take().unwrap(), Reading::StopAfter(20_000));
    send(
        &mut child,
        &json!({"type": "prompt", "message": script(&json!({"deltas": 20_000, "size": 12}))}),
    );
    // The reader stands still until the whole answer is on disk.
    let answer_is_saved = || {
        sandbox.session_files().iter().any(|(_, path)| {
            std::fs::read_to_string(path)
                .unwrap_or_default()
                .contains(r#""role":"assistant""#)
        })
    };
    let end = std::time::Instant::now() + HANG;
    while !answer_is_saved() {
        assert!(
            std::time::Instant::now() < end,
            "a reader that stands still holds up the model"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    reader.go_on();
    drop(child.stdin.take());
    let bytes = reader.finish(HANG);
    child.wait().unwrap();
    let lines = parse(&bytes);
    check_runs(&lines).unwrap();
    let text = assembled(&lines);
    assert_eq!(text.len(), 240_000);
    // In full that would be 20,000 lines and nearly five gigabytes. What is left is what had been printed when the
    // reader stopped, and the whole answer a handful of times.
    assert!(
        bytes.len() < 20 * text.len(),
        "{} bytes for {} of text",
        bytes.len(),
        text.len()
    );
}

#[test]
fn s5_a_reader_that_wants_every_delta_gets_it_however_slow_it_is() {
    let sandbox = offline_sandbox(&json!({}));
    let mut child = start_narrow(&sandbox, &["--no-coalesce"]);
    let reader = Reader::start(child.stdout.take().unwrap(), Reading::StopAfter(5000));
    let deltas = script(&json!({"deltas": 300, "size": 12}));
    send(&mut child, &json!({"type": "prompt", "message": deltas}));
    drop(child.stdin.take());
    // Time to merge deltas, if it did that.
    std::thread::sleep(Duration::from_millis(300));
    reader.go_on();
    let lines = parse(&reader.finish(HANG));
    child.wait().unwrap();
    let events = lines
        .iter()
        .map(|line| &line["assistantMessageEvent"]["type"]);
    assert_eq!(events.filter(|kind| **kind == "text_delta").count(), 300);
}

#[test]
fn s5_a_tool_that_talks_without_end_is_merged_too() {
    let sandbox = offline_sandbox(&json!({}));
    let mut child = start_narrow(&sandbox, &[]);
    let reader = Reader::start(child.stdout.take().unwrap(), Reading::StopAfter(10_000));
    let talk = json!({"turns": [
        {"tool": "bash", "args": {"command": "yes 0123456789 | head -c 3000000; touch done"}}, {"text": "over"}]});
    send(
        &mut child,
        &json!({"type": "prompt", "message": script(&talk)}),
    );
    let end = std::time::Instant::now() + HANG;
    while !sandbox.work().join("done").exists() {
        assert!(
            std::time::Instant::now() < end,
            "a reader that stands still holds up the tool"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    reader.go_on();
    drop(child.stdin.take());
    let bytes = reader.finish(HANG);
    child.wait().unwrap();
    check_runs(&parse(&bytes)).unwrap();
    assert!(bytes.len() < 4_000_000, "{} bytes", bytes.len());
}

#[test]
fn s6_a_record_can_be_read_before_the_next_event_happens() {
    // After each piece the model waits until the test has read that piece.
    let pieces: Vec<Value> = (0..20)
        .flat_map(|n| {
            [
                json!(format!("piece {n};")),
                json!({"gate": format!("g{n}")}),
            ]
        })
        .collect();
    let server = ModelServer::start(json!({"turns": [{"steps": [{"text": pieces}]}]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    for n in 0..20 {
        let delta = json!({"type": "message_update", "assistantMessageEvent": {"delta": format!("piece {n};")}});
        client.wait_for(from, &delta);
        server.release(&format!("g{n}"));
    }
    client.wait_end(from);
}

#[test]
fn s6_what_a_tool_prints_can_be_read_while_it_runs() {
    let mut client = Client::offline();
    let command = "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo over";
    let from = client.prompt(&script(&json!({"turns": [
        {"tool": "bash", "args": {"command": command}}, {"text": "done"}]})));
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    let begun = json!({"type": "tool_execution_update", "partialResult": {"content": [{"text": "begun\n"}]}});
    client.wait_for(from, &begun);
    assert!(
        !client
            .kinds(from)
            .contains(&"tool_execution_end".to_owned())
    );
    client.sandbox.add_files(&json!({"go": ""}));
    client.wait_end(from);
}

#[test]
fn s6_the_first_answer_does_not_wait_for_a_full_buffer() {
    let mut client = Client::offline();
    for _ in 0..50 {
        client.data("get_state");
    }
}

#[test]
fn s7_a_reader_at_1_kb_per_second_loses_no_answer_and_no_end() {
    let sandbox = offline_sandbox(&json!({}));
    let mut child = start_narrow(&sandbox, &[]);
    let reader = Reader::start(child.stdout.take().unwrap(), Reading::SlowAtFirst(1024));
    let mut sent = 0;
    for number in 0..3 {
        let prompt = script(&json!({"deltas": 3000, "size": 12}));
        let behaviour = json!({"type": "prompt", "message": prompt, "id": format!("p{number}"),
                               "streamingBehavior": "followUp"});
        send(&mut child, &behaviour);
        sent += 1;
        for _ in 0..200 {
            send(
                &mut child,
                &json!({"type": "get_state", "id": format!("s{sent}")}),
            );
            sent += 1;
        }
    }
    // Three seconds at this speed: a few lines have been read, hundreds wait.
    std::thread::sleep(Duration::from_secs(3));
    assert!(reader.bytes().len() < 20_000, "the reader was to be slow");
    let held = proc::peak_resident_bytes(child.id());
    assert!(
        held < 64 * 1024 * 1024,
        "{held} bytes are held for a slow reader"
    );
    reader.go_on();
    drop(child.stdin.take());
    let bytes = reader.finish(HANG);
    assert!(child.wait().unwrap().success());
    let lines = parse(&bytes);
    let answers = answers_by_id(&lines);
    assert_eq!(answers.len(), sent, "answers are missing");
    assert!(answers.values().all(|count| *count == 1));
    let runs = check_runs(&lines).unwrap();
    assert!(runs >= 1);
    let prompts = lines
        .iter()
        .filter(|line| line["type"] == "message_end" && line["message"]["role"] == "user");
    assert_eq!(prompts.count(), 3);
    assert_eq!(assembled(&lines).len(), 3 * 36_000);
}
