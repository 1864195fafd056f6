//! L1: in any order of requests, every request that can be read is answered with exactly one `done`.

use std::collections::HashMap;

use pinion_testkit::{Exit, frames};
use serde_json::{Value, json};

use crate::rules;
use crate::stage::Home;
use crate::support::{HANG, Random, script};

/// The expected result of a request.
#[derive(Debug, Clone, PartialEq)]
enum Due {
    /// `done` with one of these, and these codes of errors before it.
    Done(&'static [&'static str], &'static [&'static str]),
    /// An error frame without an id.
    Malformed,
    /// Nothing.
    Nothing,
}

const RUN: Due = Due::Done(
    &["ok", "stopped", "failed"],
    &["run_failed", "session_busy"],
);

/// Returns a line, the id it carries, and its expected result.
fn request(random: &mut Random, number: usize) -> (Vec<u8>, String, Due) {
    let id = format!("r{number}");
    let line = |mut value: Value| {
        value["requestId"] = json!(id);
        value.to_string().into_bytes()
    };
    let submit =
        |prompt: &str| json!({"version": 1, "sessionId": "s1", "submit": {"prompt": prompt}});
    let (bytes, due) = match random.below(15) {
        0 | 1 => (line(submit(&script(&json!({"text": "fine"})))), RUN),
        2 => (
            line(submit(&script(
                &json!({"deltas": 40, "size": 8, "paceMs": 2}),
            ))),
            RUN,
        ),
        3 => (
            line(submit(&script(
                &json!([{"text": "half"}, {"error": "400 broken"}]),
            ))),
            RUN,
        ),
        4 => (line(submit(&script(&json!({"error": "400 nothing"})))), RUN),
        5 | 6 => (
            line(json!({"sessionId": "s1", "cancel": {}})),
            Due::Done(&["ok"], &["no_active_request"]),
        ),
        7 => (
            line(json!({"sessionId": "s1", "snapshot": {}})),
            Due::Done(&["ok"], &[]),
        ),
        8 => (
            line(json!({"snapshot": {}, "version": 7})),
            Due::Done(&["ok"], &[]),
        ),
        9 => (
            line(json!({"sessionId": "s1"})),
            Due::Done(&["failed"], &["unknown_request"]),
        ),
        10 => (
            line(json!({"sessionId": "s2", "snapshot": {}})),
            Due::Done(&["failed"], &["session_mismatch"]),
        ),
        11 => (
            line(submit(" \n ")),
            Due::Done(&["failed"], &["empty_prompt"]),
        ),
        12 => {
            let broken: [&[u8]; 6] = [
                b"{",
                b"not json",
                b"[]",
                b"{\"submit\":{},\"cancel\":{}}",
                b"{\"version\":\"x\"}",
                b"\xff\xfe",
            ];
            (random.pick(&broken).to_vec(), Due::Malformed)
        }
        13 => (
            random.pick(&[&b""[..], b"  ", b"\t", b"\r"]).to_vec(),
            Due::Nothing,
        ),
        _ => (
            line(json!({"session_id": "s1", "snapshot": {}, "somethingNew": [1]})),
            Due::Done(&["ok"], &[]),
        ),
    };
    (bytes, id, due)
}

fn errors_of<'a>(lines: &'a [Value], id: &str) -> Vec<&'a str> {
    let own = lines.iter().filter(|line| line["requestId"] == id);
    own.filter_map(|line| line["error"]["code"].as_str())
        .collect()
}

#[test]
fn l1_every_request_is_done_exactly_once() {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let mut talk = Home::offline().talk(&["--patch-mode", "append"]);
        // Binds the session.
        let mut due: HashMap<String, Due> = HashMap::new();
        talk.ask("first", "snapshot");
        due.insert("first".into(), Due::Done(&["ok"], &[]));
        let mut malformed = 0;
        let mut input = Vec::new();
        for number in 0..60 {
            let (bytes, id, what) = request(&mut random, number);
            input.extend(bytes);
            input.push(b'\n');
            malformed += usize::from(what == Due::Malformed);
            due.insert(id, what);
            if random.below(4) == 0 {
                talk.process.send_bytes(&input);
                input.clear();
                std::thread::sleep(std::time::Duration::from_millis(random.below(30)));
            }
        }
        talk.process.send_bytes(&input);
        let ends_with_shutdown = random.below(2) == 0;
        if ends_with_shutdown {
            talk.ask("bye", "shutdown");
        }
        assert_eq!(talk.finish(), Exit::Code(0), "seed {seed}");
        let lines = talk.lines();
        let last = lines.last().unwrap();
        if ends_with_shutdown {
            assert_eq!(last["done"]["status"], "shutdown", "seed {seed}");
        }
        for (id, due) in &due {
            let done: Vec<&Value> = lines
                .iter()
                .filter(|line| line["requestId"] == id.as_str() && line.get("done").is_some())
                .collect();
            let Due::Done(statuses, codes) = due else {
                assert!(done.is_empty(), "seed {seed}, {id}: {done:?}");
                continue;
            };
            assert_eq!(done.len(), 1, "seed {seed}, {id} {due:?}: {done:?}");
            let status = done[0]["done"]["status"].as_str().unwrap();
            assert!(
                statuses.contains(&status),
                "seed {seed}, {id} {due:?}: {status}"
            );
            for code in errors_of(&lines, id) {
                assert!(codes.contains(&code), "seed {seed}, {id} {due:?}: {code}");
            }
        }
        let told = lines
            .iter()
            .filter(|line| line["error"]["code"] == "invalid_request_json");
        assert_eq!(told.count(), malformed, "seed {seed}");
        check_order(&lines);
    }
}

/// Checks the order within a request: events, then the snapshot, then the error, then `done`.
fn check_order(lines: &[Value]) {
    let mut stage: HashMap<&str, usize> = HashMap::new();
    for line in lines.iter().skip(1) {
        let Some(id) = line["requestId"].as_str() else {
            continue;
        };
        let kinds = ["uiEvent", "snapshot", "error", "done"];
        let kind = kinds
            .iter()
            .position(|kind| line.get(*kind).is_some())
            .unwrap();
        let before = stage.insert(id, kind).unwrap_or(0);
        assert!(
            before <= kind && before != 3,
            "{id}: {line} after {}",
            kinds[before]
        );
    }
}

#[test]
fn l1_an_id_that_is_used_again_is_answered_again() {
    let home = Home::offline();
    let arguments = ["run-command", "seed.yaml", "--stdin-rpc"];
    let line = |kind: &str| format!("{}\n", json!({"requestId": "same", kind: {}}));
    let input = [
        line("snapshot"),
        line("cancel"),
        line("snapshot"),
        line("shutdown"),
    ]
    .concat();
    let ran = home.run_as(
        &home.program(crate::support::pinion()),
        &arguments,
        input.as_bytes(),
    );
    frames::check(ran.stdout.as_bytes());
    let lines = crate::stage::lines(&ran.stdout);
    rules::check_with(&lines, &["same"]).unwrap();
    let done: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["done"]["status"].as_str())
        .collect();
    assert_eq!(done, ["ok", "ok", "ok", "shutdown"]);
}

#[test]
fn l1_nothing_is_read_after_a_shutdown() {
    let mut talk = Home::offline().talk(&[]);
    talk.ask("a", "shutdown");
    talk.ask("b", "snapshot");
    // The input stays open: the end is the answer to the request.
    assert_eq!(talk.process.wait(HANG), Some(Exit::Code(0)));
    talk.end();
    assert_eq!(talk.lines().len(), 2);
}

#[test]
fn l1_a_prompt_that_follows_a_done_is_never_too_early() {
    let mut talk = Home::offline().talk(&["--patch-mode", "append"]);
    for number in 0..40 {
        let id = format!("r{number}");
        assert_eq!(
            talk.say(&id, &script(&json!({"text": "fine"}))),
            "ok",
            "{id}"
        );
    }
    assert_eq!(talk.finish(), Exit::Code(0));
}
