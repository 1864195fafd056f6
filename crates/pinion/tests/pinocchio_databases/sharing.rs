//! Several processes on the same databases.

use std::collections::HashSet;

use pinion_testkit::{Exit, Frames};
use serde_json::json;

use super::{Home, errors, finish, ordinals, status};
use crate::support::script;

#[test]
fn d3_sixteen_cold_starts_on_databases_that_are_not_there_yet_all_work() {
    let home = Home::new();
    let processes: Vec<Frames> = (0..16)
        .map(|number| home.start(&format!("s{number}"), &["--rpc"]))
        .collect();
    for process in processes {
        let (frames, exit) = finish(process);
        assert_eq!(exit, Exit::Code(0), "{frames:?}");
        assert_eq!(status(&frames), "ok");
        assert!(errors(&frames).is_empty(), "{frames:?}");
    }
    for number in 0..16 {
        let session = format!("s{number}");
        assert!(home.events(&session).len() > 4);
        assert!(home.turns().latest(&session, "final").unwrap().is_some());
    }
}

#[test]
fn d2_two_processes_in_two_sessions_do_not_disturb_each_other() {
    let home = Home::new();
    let long = script(&json!({"deltas": 1500, "size": 20}));
    let both: Vec<Frames> = ["a", "b"]
        .iter()
        .map(|session| home.start(session, &["--rpc", "--what", &long]))
        .collect();
    for (process, session) in both.into_iter().zip(["a", "b"]) {
        let (frames, exit) = finish(process);
        assert_eq!((status(&frames), exit), ("ok", Exit::Code(0)));
        assert!(errors(&frames).is_empty(), "{:?}", errors(&frames));
        let told = ordinals(&frames);
        assert_eq!(home.events(session).len(), told.len());
    }
}

#[test]
fn d2_two_writers_of_one_session_leave_one_whole_timeline() {
    let home = Home::new();
    let long = script(&json!({"deltas": 400, "size": 20, "paceMs": 1}));
    let both: Vec<Frames> = (0..2)
        .map(|_| home.start("s", &["--rpc", "--no-coalesce", "--what", &long]))
        .collect();
    let mut refused = 0;
    for process in both {
        let (frames, exit) = finish(process);
        assert_eq!((status(&frames), exit), ("ok", Exit::Code(0)));
        let told: HashSet<&str> = errors(&frames).into_iter().collect();
        assert!(told.is_empty() || told == HashSet::from(["store_failed"]));
        refused += told.len();
    }
    // The process that opened the session second reports that its events are not stored; no events are mixed.
    assert!(refused <= 1);
    let events = home.events("s");
    assert!(events.len() > 400);
    let (frames, _) = home.say("s", "hello", &[]);
    assert_eq!(ordinals(&frames)[0], events.len() as u64 + 1);
}
