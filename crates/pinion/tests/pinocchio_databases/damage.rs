//! Files that are not databases, and disks without room.

use std::fs;

use pinion_testkit::fault::limits::{Limit, limited};
use pinion_testkit::{Exit, Frames};
use serde_json::json;

use super::{Home, answers, errors, finish, status};
use crate::support::{args, pinion, script};

#[test]
fn d1_a_file_that_is_no_database_is_refused_and_left_alone() {
    for name in ["turns.db", "timeline.db"] {
        let home = Home::new();
        let words = "these are notes, not a database\n".repeat(300);
        fs::write(home.path(name), &words).unwrap();
        let (frames, exit) = home.say("s", "hello", &[]);
        assert_eq!(exit, Exit::Code(1), "{name}");
        assert_eq!(errors(&frames), ["runner_init_failed"], "{name}");
        assert_eq!(status(&frames), "failed");
        let message = frames[1]["error"]["message"].as_str().unwrap();
        assert!(message.contains(name), "{message}");
        assert_eq!(fs::read_to_string(home.path(name)).unwrap(), words);
    }
}

#[test]
fn d1_a_database_that_is_cut_short_is_told_and_not_made_worse() {
    let home = Home::new();
    for number in 0..4 {
        let long = script(&json!({"deltas": 200, "size": 60}));
        let (frames, _) = home.say(&format!("s{number}"), &long, &[]);
        assert_eq!(status(&frames), "ok");
    }
    let path = home.path("turns.db");
    let whole = fs::read(&path).unwrap();
    let cut = &whole[..whole.len() / 2];
    fs::write(&path, cut).unwrap();
    let (frames, exit) = home.say("s0", "again", &["--resume"]);
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(status(&frames), "failed");
    assert!(!errors(&frames).is_empty());
    assert_eq!(fs::read(&path).unwrap().len(), cut.len());
}

#[test]
fn d5_a_timeline_that_cannot_grow_is_told_once_and_the_run_goes_on() {
    let home = Home::new();
    let (frames, _) = home.say("s", "hello", &[]);
    let before = super::ordinals(&frames).len();
    let timeline = home.path("timeline.db");
    let program = limited(&pinion(), &[Limit::FileBlocks(256)]);
    let long = script(&json!({"deltas": 4000, "size": 60}));
    let arguments = [
        "run-command",
        "say.yaml",
        "--model",
        "offline/demo",
        "--rpc",
        "--session-id",
        "s",
        "--timeline-db",
        &timeline,
        "--patch-mode",
        "append",
        "--what",
        &long,
    ];
    let process = Frames::start(&program, &home.sandbox, &args(&arguments));
    let (frames, exit) = finish(process);
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(status(&frames), "ok");
    assert_eq!(errors(&frames), ["store_failed"]);
    assert_eq!(answers(&frames)[0].len(), 4000 * 60);
    // The stored events are still there, and the session continues.
    assert!(home.events("s").len() >= before);
    let (frames, _) = home.say("s", "hello", &[]);
    assert_eq!(status(&frames), "ok");
    assert!(errors(&frames).is_empty(), "{frames:?}");
}

#[test]
fn d5_an_answer_that_cannot_be_kept_is_no_success() {
    let home = Home::new();
    let (frames, _) = home.say("s", "hello", &[]);
    assert_eq!(status(&frames), "ok");
    let turns = home.path("turns.db");
    let program = limited(&pinion(), &[Limit::FileBlocks(128)]);
    let long = script(&json!({"deltas": 4000, "size": 60}));
    let arguments = [
        "run-command",
        "say.yaml",
        "--model",
        "offline/demo",
        "--rpc",
        "--session-id",
        "s",
        "--turns-db",
        &turns,
        "--what",
        &long,
    ];
    let (frames, exit) = finish(Frames::start(&program, &home.sandbox, &args(&arguments)));
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(status(&frames), "failed");
    assert_eq!(errors(&frames), ["run_failed"]);
    // The next run still resumes from the turn before it.
    let (frames, _) = home.say("s", "again", &["--resume"]);
    assert_eq!(status(&frames), "ok");
}
