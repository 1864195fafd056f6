//! Torn ends and damaged middles, through the binary. The session crate tests every cut of every byte; these tests
//! check a sample, and that the damage is reported.

use std::fs;
use std::path::{Path, PathBuf};

use pinion_testkit::Exit;
use serde_json::{Value, json};

use crate::support::{Client, HANG, script};

const ARGUMENTS: [&str; 5] = ["--mode", "rpc", "--model", "offline/demo", "--continue"];

/// Returns a session of three exchanges, and its file.
fn recorded() -> (Client, PathBuf, Vec<u8>) {
    let mut client = Client::offline();
    for number in 0..3 {
        let from = client.prompt(&script(
            &json!({"text": format!("answer {number} ünd möre")}),
        ));
        client.wait_end(from);
    }
    assert_eq!(client.finish(), Exit::Code(0));
    let (_, file) = client.sandbox.session_files().remove(0);
    let bytes = fs::read(&file).unwrap();
    (client, file, bytes)
}

fn entries(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or(Value::Null))
        .collect()
}

/// Returns the bytes that were set aside, in any file beside the session.
fn set_aside(file: &Path) -> Vec<u8> {
    let others = fs::read_dir(file.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    others
        .filter(|path| path != file)
        .flat_map(|path| fs::read(path).unwrap())
        .collect()
}

#[test]
fn d1_a_torn_tail_is_repaired_before_the_next_append_and_that_is_told() {
    let (mut client, file, whole) = recorded();
    // The beginnings of the last two records.
    let starts: Vec<usize> = (0..whole.len())
        .filter(|at| *at == 0 || whole[at - 1] == b'\n')
        .collect();
    let first = starts[starts.len() - 2];
    let span = whole.len() - first;
    // Every boundary and a spread of cuts in between, among them the middle of a two-byte character.
    let umlaut = whole.iter().rposition(|byte| *byte == 0xc3).unwrap() + 1;
    let mut cuts: Vec<usize> = (0..8).map(|n| first + span * n / 8).collect();
    cuts.extend([
        first + 1,
        starts[starts.len() - 1],
        starts[starts.len() - 1] + 1,
        umlaut,
        whole.len() - 2,
        whole.len() - 1,
    ]);
    for cut in cuts {
        fs::write(&file, &whole[..cut]).unwrap();
        client = client.restart(&ARGUMENTS);
        let seen = client.data("get_messages")["messages"]
            .as_array()
            .unwrap()
            .len();
        assert!(
            (4..=6).contains(&seen),
            "cut at {cut}: {seen} messages are left of 6"
        );
        let from = client.prompt(&script(&json!({"text": "after the cut"})));
        client.wait_end(from);
        assert_eq!(client.finish(), Exit::Code(0));

        let after = fs::read(&file).unwrap();
        let found = entries(&after);
        assert!(
            !found.contains(&Value::Null),
            "cut at {cut}: a glued record"
        );
        assert_eq!(
            found.last().unwrap()["message"]["content"][0]["text"],
            "after the cut"
        );
        // Complete records before the cut are all there, in front.
        let complete = whole[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        assert!(after.starts_with(&whole[..complete]), "cut at {cut}");
        // A piece that is not a whole record is set aside, and the user receives a warning.
        let piece = &whole[complete..cut];
        if !piece.is_empty() && serde_json::from_slice::<Value>(piece).is_err() {
            let aside = set_aside(&file);
            assert!(
                aside.windows(piece.len()).any(|window| window == piece),
                "cut at {cut}: the bytes are gone"
            );
            let told = format!("{} {:?}", client.process.stderr(), client.lines());
            assert!(told.contains("not a complete entry"), "{told}");
        }
        for path in fs::read_dir(file.parent().unwrap())
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
        {
            if path != file {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn d1_damage_in_the_middle_is_told_and_the_rest_is_read() {
    let (mut client, file, whole) = recorded();
    let line_starts: Vec<usize> = (0..whole.len())
        .filter(|at| *at > 0 && whole[at - 1] == b'\n')
        .collect();
    // The user message of the second exchange becomes something else.
    let victim = line_starts[4];
    let mut damaged = whole.clone();
    damaged[victim] = b'#';
    fs::write(&file, &damaged).unwrap();
    client = client.restart(&ARGUMENTS);
    let messages = client.data("get_messages");
    assert!(messages["messages"].as_array().is_some(), "{messages}");
    let from = client.prompt(&script(&json!({"text": "after the damage"})));
    client.wait_end(from);
    assert_eq!(client.finish(), Exit::Code(0));
    let told = format!("{} {:?}", client.process.stderr(), client.lines());
    assert!(
        told.contains("line") || told.contains("damage") || told.contains("could not be read"),
        "nobody was told: {told}"
    );
    // The unreadable bytes are still there.
    assert!(fs::read(&file).unwrap().starts_with(&damaged));
}

#[test]
fn d1_a_file_that_is_no_session_is_not_overwritten() {
    let client = Client::offline();
    let file = client.sandbox.work().join("letter.jsonl");
    fs::write(&file, "Dear Ada,\nall is well.\n").unwrap();
    let name = file.to_string_lossy().into_owned();
    let mut client = client.restart(&[
        "--mode",
        "rpc",
        "--model",
        "offline/demo",
        "--session",
        &name,
    ]);
    let exit = client.process.wait(HANG);
    client.process.drain(HANG);
    assert_eq!(exit, Some(Exit::Code(1)), "{}", client.report(0));
    assert!(
        client.process.stderr().contains("not a session"),
        "{}",
        client.process.stderr()
    );
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo"]);
    let answer = client
        .process
        .ask(json!({"type": "switch_session", "sessionPath": name}));
    assert_eq!(answer["success"], false, "{answer}");
    client.finish();
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "Dear Ada,\nall is well.\n"
    );
}
