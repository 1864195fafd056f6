//! What was said is on disk: after cuts, kills, full disks, and with others at the same file.

#![allow(clippy::expect_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_testkit::fault::limits::{Limit, limited};
use pinion_testkit::transcript::compare::leaves;
use pinion_testkit::transcript::fits;
use pinion_testkit::{Exit, Process, Signal, Stage};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_pinion");
const PATIENCE: Duration = Duration::from_secs(30);

/// A model that always has an answer.
fn talkative() -> Value {
    json!({"turns": [{"repeat_turn": 200, "turn": {"steps": [{"text": "Answer {i}.", "chunk": 3}]}}]})
}

fn prompt(process: &mut Process, text: &str) {
    let from = process.line_count();
    let answer = process.ask(json!({"type": "prompt", "message": text}));
    assert_eq!(answer["success"], true, "{answer}");
    process.expect(from, &json!({"type": "agent_end"}));
}

fn messages(process: &mut Process) -> Vec<Value> {
    let answer = process.ask(json!({"type": "get_messages"}));
    answer["data"]["messages"]
        .as_array()
        .expect("messages")
        .clone()
}

fn session_file(process: &mut Process) -> PathBuf {
    let state = process.ask(json!({"type": "get_state"}));
    state["data"]["sessionFile"]
        .as_str()
        .expect("a session file")
        .into()
}

fn end(mut process: Process) {
    process.close_stdin();
    assert_eq!(
        process.wait(PATIENCE),
        Some(Exit::Code(0)),
        "{}",
        process.stderr()
    );
}

fn open<'a>(stage: &Stage, file: &'a Path) -> (Process, &'a str) {
    let file = file.to_str().expect("a path in UTF-8");
    (stage.start(&["--session", file]), file)
}

#[test]
fn a_session_cut_at_any_byte_of_its_end_opens_and_goes_on() {
    let stage = Stage::new(BINARY, talkative());
    let mut process = stage.start(&[]);
    prompt(&mut process, "First.");
    prompt(&mut process, "Second, with Grüße.");
    let file = session_file(&mut process);
    let all = messages(&mut process);
    end(process);
    let bytes = fs::read(&file).expect("a session");
    let lines: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    let whole = lines[lines.len() - 3];
    // Every byte would take minutes; a step that meets no pattern in the lines does as well.
    for cut in (whole..bytes.len()).step_by(23).chain([bytes.len() - 1]) {
        fs::write(&file, &bytes[..cut]).expect("a cut session");
        let (mut process, _) = open(&stage, &file);
        let seen = messages(&mut process);
        assert!(
            seen.len() >= all.len() - 2,
            "cut at {cut}: {} messages",
            seen.len()
        );
        assert_eq!(seen[..], all[..seen.len()], "cut at {cut}");
        prompt(&mut process, "Third.");
        let longer = messages(&mut process);
        end(process);
        let (mut process, _) = open(&stage, &file);
        assert_eq!(
            messages(&mut process),
            longer,
            "cut at {cut}, after going on"
        );
        assert_eq!(longer.len(), seen.len() + 2);
        end(process);
    }
}

#[test]
fn what_was_reported_survives_being_killed() {
    let stage = Stage::new(BINARY, talkative());
    let mut process = stage.start(&[]);
    prompt(&mut process, "Begin.");
    let file = session_file(&mut process);
    end(process);
    for round in 0..8_u64 {
        let (mut process, _) = open(&stage, &file);
        let before = messages(&mut process);
        let from = process.line_count();
        process.send(&json!({"type": "prompt", "message": format!("Round {round}.")}));
        std::thread::sleep(Duration::from_millis(round * 9));
        process.signal(Signal::SIGKILL);
        process.wait(PATIENCE);
        process.drain(PATIENCE);
        let told = process.lines();
        let ends = told
            .iter()
            .skip(from)
            .filter(|l| l.value["type"] == "message_end");
        let told: Vec<Value> = ends.map(|line| line.value["message"].clone()).collect();
        let (mut process, _) = open(&stage, &file);
        let after = messages(&mut process);
        end(process);
        assert_eq!(
            after[..before.len()],
            before[..],
            "round {round}: what was there before"
        );
        let new = &after[before.len()..];
        assert!(
            new.len() >= told.len(),
            "round {round}: told {told:?}, kept {new:?}"
        );
        for (told, kept) in told.iter().zip(new) {
            assert!(fits(told, kept), "round {round}: told {told}, kept {kept}");
        }
    }
}

#[test]
fn one_session_has_one_writer() {
    let stage = Stage::new(BINARY, talkative());
    let mut first = stage.start(&[]);
    prompt(&mut first, "Mine.");
    let file = session_file(&mut first);
    let (mut second, name) = open(&stage, &file);
    second.close_stdin();
    let exit = second.wait(PATIENCE);
    assert_ne!(exit, Some(Exit::Code(0)));
    second.drain(PATIENCE);
    assert!(
        second.stderr().contains("in use by process"),
        "{}",
        second.stderr()
    );
    assert!(second.stderr().contains(name), "{}", second.stderr());
    // Changing over to it is refused too, and costs nothing.
    let mut third = stage.start(&[]);
    let answer = third.ask(json!({"type": "switch_session", "sessionPath": name}));
    assert_eq!(answer["success"], false, "{answer}");
    prompt(&mut third, "My own, then.");
    end(third);
    prompt(&mut first, "Still mine.");
    end(first);
    let (mut after, _) = open(&stage, &file);
    assert_eq!(messages(&mut after).len(), 4);
    end(after);
}

#[test]
fn many_programs_start_at_the_same_time() {
    let stage = Stage::new(BINARY, talkative());
    let started: Vec<Process> = (0..64).map(|_| stage.start(&[])).collect();
    let mut files = Vec::new();
    for mut process in started {
        prompt(&mut process, "Me too.");
        files.push(session_file(&mut process));
        end(process);
    }
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 64, "each has a session of its own");
    assert!(files.iter().all(|file| file.exists()));
}

#[test]
fn a_full_disk_is_told_and_what_was_written_opens() {
    let mut stage = Stage::new(BINARY, talkative());
    let unlimited = stage.program.clone();
    stage.program = limited(&unlimited, &[Limit::FileBlocks(8)]);
    let mut process = stage.start(&[]);
    prompt(&mut process, "Small.");
    let file = session_file(&mut process);
    prompt(&mut process, &"Large. ".repeat(2000));
    process.expect(
        0,
        &json!({"type": "extension_error", "extensionPath": "session"}),
    );
    // The conversation goes on.
    prompt(&mut process, "Still there?");
    assert_eq!(messages(&mut process).len(), 6);
    process.close_stdin();
    process.wait(PATIENCE);
    stage.program = unlimited;
    let (mut process, _) = open(&stage, &file);
    let kept = messages(&mut process);
    assert!(kept.len() >= 2, "{kept:?}");
    prompt(&mut process, "There is room again.");
    end(process);
}

/// All files below a directory.
fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found)
        } else {
            found.push(path)
        }
    }
}

#[test]
fn keys_stay_where_they_were_put() {
    const KEY: &str = "sk-ant-planted-0123456789abcdef";
    let echo = "grep apiKey \"$PI_CODING_AGENT_DIR/models.json\" | tee leaked.txt";
    let stage = Stage::with_settings(
        BINARY,
        json!({"turns": [
            {"steps": [{"tool": "bash", "args": {"command": "cat \"$PI_CODING_AGENT_DIR/models.json\""}}]},
            {"steps": [{"tool": "bash", "args": {"command": "env"}}]},
            {"http": {"status": 401, "body": {"error": {"message": format!("bad key {KEY}")}}}},
            {"steps": ["I saw nothing."]},
        ]}),
        json!({"retry": {"enabled": false}}),
    );
    let models = stage.sandbox.agent().join("models.json");
    let text = fs::read_to_string(&models)
        .expect("models")
        .replace("mock-key", KEY);
    fs::write(&models, text).expect("models");
    let mut process = stage.start(&[]);
    prompt(&mut process, "Look around.");
    prompt(&mut process, "And again.");
    process.ask(json!({"type": "bash", "command": echo}));
    process.ask(json!({"type": "get_messages"}));
    process.ask(json!({"type": "get_available_models"}));
    process.ask(json!({"type": "export_html", "outputPath": "page.html"}));
    process.close_stdin();
    process.wait(PATIENCE);
    process.drain(PATIENCE);
    let key_used = stage.server.requests()[0]["headers"]["x-api-key"].clone();
    assert_eq!(key_used, KEY, "the provider gets the real key");
    for line in process.lines() {
        let shown: Vec<String> = leaves(&line.value)
            .into_iter()
            .filter(|leaf| leaf.contains(KEY))
            .collect();
        assert!(shown.is_empty(), "on standard output: {shown:#?}");
    }
    assert!(!process.stderr().contains(KEY), "on standard error");
    let mut files = Vec::new();
    files_below(stage.sandbox.root(), &mut files);
    // The command wrote its own file, which is its own affair.
    let expected = [models, stage.sandbox.work().join("leaked.txt")];
    for file in files.iter().filter(|file| !expected.contains(file)) {
        let bytes = fs::read(file).unwrap_or_default();
        assert!(
            !bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()),
            "in {}",
            file.display()
        );
    }
}
