//! A reader that goes away ends the process: it stops, saves the conversation, and ends its children.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pinion_testkit::fault::pipe::{Reader, Reading};
use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, HANG, args, offline_sandbox, pinion, script};

/// A client that stops reading: a prompt that completes, then one in the middle of which it goes away.
fn leave_in_the_middle(second: &Value) -> (Sandbox, Child) {
    let sandbox = offline_sandbox(&json!({}));
    let mut command = pinion().command(
        &sandbox,
        &args(&["--mode", "rpc", "--model", "offline/demo"]),
    );
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut read_until = |wanted: &str| {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "no {wanted}");
        }
    };
    let stdin = child.stdin.as_mut().unwrap();
    let first = script(&json!({"text": "the first answer"}));
    writeln!(stdin, "{}", json!({"type": "prompt", "message": first})).unwrap();
    read_until(r#""type":"agent_end""#);
    writeln!(
        stdin,
        "{}",
        json!({"type": "prompt", "message": script(second)})
    )
    .unwrap();
    read_until(r#""type":"message_update""#);
    drop(stdout);
    (sandbox, child)
}

fn is_gone(child: &mut Child) -> bool {
    let end = Instant::now() + HANG;
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn what_was_said_is_saved(sandbox: Sandbox) {
    let mut client = Client::start(
        sandbox,
        &["--mode", "rpc", "--model", "offline/demo", "--continue"],
    );
    let messages = client.data("get_messages")["messages"]
        .as_array()
        .cloned()
        .unwrap();
    assert_eq!(
        messages[1]["content"][0]["text"], "the first answer",
        "{messages:?}"
    );
    assert_eq!(messages[2]["role"], "user", "{messages:?}");
}

#[test]
fn l9_a_reader_that_goes_away_in_the_middle_ends_the_process_and_what_was_said_is_saved() {
    let (sandbox, mut child) =
        leave_in_the_middle(&json!({"deltas": 100_000, "size": 5, "paceMs": 5}));
    assert!(is_gone(&mut child), "still running without a reader");
    what_was_said_is_saved(sandbox);
}

#[test]
fn l9_a_reader_that_goes_away_during_a_silent_command_ends_the_process_and_the_command() {
    let second = json!([{"text": "wait"}, {"tool": "bash", "args": {"command": "sleep 600"}}]);
    let (sandbox, mut child) = leave_in_the_middle(&second);
    assert!(is_gone(&mut child), "still running without a reader");
    assert_eq!(proc::left_behind(sandbox.marker(), HANG), []);
    what_was_said_is_saved(sandbox);
}

#[test]
fn l9_a_reader_behind_a_socket_is_missed_as_well() {
    let sandbox = offline_sandbox(&json!({}));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut command = pinion().command(
        &sandbox,
        &args(&["--mode", "rpc", "--model", "offline/demo"]),
    );
    command
        .stdin(Stdio::piped())
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The command holds the test's copy of its end of the socket.
    drop(command);
    let prompt = script(&json!({"tool": "bash", "args": {"command": "sleep 600"}}));
    let stdin = child.stdin.as_mut().unwrap();
    writeln!(stdin, "{}", json!({"type": "prompt", "message": prompt})).unwrap();
    let mut lines = BufReader::new(ours);
    let mut line = String::new();
    while !line.contains("tool_execution_start") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    drop(lines);
    assert!(is_gone(&mut child), "still running without a reader");
    assert_eq!(proc::left_behind(sandbox.marker(), HANG), []);
}

#[test]
fn l9_every_mode_ends_when_nobody_reads_it() {
    for mode in ["json", "text"] {
        let sandbox = offline_sandbox(&json!({}));
        let begin = json!({"tool": "bash", "args": {"command": "touch begun; sleep 600"}});
        let mut command = pinion().command(
            &sandbox,
            &args(&["--mode", mode, "--model", "offline/demo", &script(&begin)]),
        );
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let end = Instant::now() + HANG;
        while !sandbox.work().join("begun").exists() {
            assert!(Instant::now() < end, "{mode}: it never began");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(child.stdout.take());
        assert!(
            is_gone(&mut child),
            "{mode}: still running without a reader"
        );
        assert_eq!(Exit::of(child.wait().unwrap()), Exit::Code(1), "{mode}");
        assert_eq!(proc::left_behind(sandbox.marker(), HANG), [], "{mode}");
    }
}

/// Children that are easily missed.
const STUBBORN: &str = "setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & \
                        (setsid sh -c 'sleep 600 & sleep 600' &) ; touch begun; sleep 600";

#[test]
fn l9_a_reader_that_goes_away_at_any_byte_leaves_no_process() {
    for bytes in [1, 500, 5000] {
        let sandbox = offline_sandbox(&json!({}));
        let mut command = pinion().command(
            &sandbox,
            &args(&["--mode", "rpc", "--model", "offline/demo"]),
        );
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let reader = Reader::start(child.stdout.take().unwrap(), Reading::CloseAfter(bytes));
        let talk = json!([{"deltas": 300, "size": 11, "paceMs": 1}, {"tool": "bash", "args": {"command": STUBBORN}}]);
        writeln!(
            stdin,
            "{}",
            json!({"type": "prompt", "message": script(&talk)})
        )
        .unwrap();
        assert_eq!(reader.finish(HANG).len() as u64, bytes);
        assert!(is_gone(&mut child), "still running without a reader");
        assert_eq!(proc::left_behind(sandbox.marker(), HANG), []);
    }
}
