//! `kill -9` at any moment: everything reported is stored, and the conversation continues.

use std::time::Duration;

use nix::sys::signal::Signal;
use pinion_testkit::Exit;
use serde_json::json;

use super::{Home, answers, frames, ordinals, status};
use crate::support::{HANG, script};

#[test]
fn d4_what_was_told_is_kept_when_the_process_is_killed() {
    let home = Home::new();
    let mut kept = 0;
    for round in 0..8 {
        let slow = script(&json!({"deltas": 3000, "size": 20, "paceMs": 1}));
        let mut process = home.start("s", &["--rpc", "--what", &slow]);
        // The answer has begun in every round; in later ones it is longer.
        let wanted = 5 + round * 9;
        process.find(0, wanted, HANG, |line| line.get("uiEvent").is_some());
        process.signal(Signal::SIGKILL);
        process.wait(HANG).unwrap();
        process.drain(HANG);
        let told = ordinals(&frames(&process));
        let events = home.events("s");
        let last = *told.last().unwrap();
        assert!(told[0] == kept + 1, "{told:?} after {kept}");
        assert!(events.len() as u64 >= last, "{} < {last}", events.len());
        kept = events.len() as u64;
    }
    // The session opens, its numbers continue, and an unfinished answer is shown as far as it came.
    let (frames, exit) = home.say("s", "hello", &[]);
    assert_eq!((status(&frames), exit), ("ok", Exit::Code(0)));
    assert_eq!(ordinals(&frames)[0], kept + 1);
    let shown = frames[1]["snapshot"]["entities"].as_array().unwrap();
    assert_eq!(shown.len(), 16, "a prompt and an answer of every round");
}

#[test]
fn d4_a_finished_turn_survives_and_an_unfinished_one_leaves_no_trace_in_it() {
    let home = Home::new();
    let (first, _) = home.say("s", &script(&json!({"text": "The word is gneiss."})), &[]);
    assert_eq!(status(&first), "ok");
    let slow = script(&json!({"deltas": 3000, "size": 20, "paceMs": 2}));
    let mut process = home.start("s", &["--rpc", "--resume", "--what", &slow]);
    process.find(0, 6, HANG, |line| line.get("uiEvent").is_some());
    // Somewhere in the middle of the answer.
    std::thread::sleep(Duration::from_millis(30));
    process.signal(Signal::SIGKILL);
    process.wait(HANG).unwrap();
    let (again, exit) = home.say("s", &script(&json!({"text": "Still here."})), &["--resume"]);
    assert_eq!((status(&again), exit), ("ok", Exit::Code(0)));
    assert_eq!(answers(&again), ["Still here."]);
    let latest = home.turns().latest("s", "final").unwrap().unwrap();
    let texts: Vec<&str> = latest
        .turn
        .blocks
        .iter()
        .filter_map(|block| block.payload_text("text"))
        .collect();
    let said: Vec<&str> = texts
        .into_iter()
        .filter(|text| !text.starts_with("offline:"))
        .collect();
    assert_eq!(said, ["Be brief.", "The word is gneiss.", "Still here."]);
}
