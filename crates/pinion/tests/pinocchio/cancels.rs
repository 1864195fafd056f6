//! L5: a cancelled request stops wherever it is: it never fails, nothing is left running, and the next prompt is
//! served.

use std::time::{Duration, Instant};

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::stage::{Home, Talk, names, of_request};
use crate::support::{HANG, script};

fn stop(mut talk: Talk, what: &str) -> Vec<Value> {
    talk.ask("stop", "cancel");
    assert_eq!(talk.done("stop"), "ok", "{what}");
    assert_eq!(talk.done("run"), "stopped", "{what}");
    let own = of_request(&talk.lines(), "run");
    let told = names(&own);
    let ends: Vec<&&str> = told
        .iter()
        .filter(|name| crate::rules::ENDS.contains(name))
        .collect();
    assert_eq!(ends, [&"ChatRunStopped"], "{what}");
    assert!(
        own.iter().all(|line| line.get("error").is_none()),
        "{what}: {own:?}"
    );
    assert_eq!(talk.finish(), Exit::Code(0), "{what}");
    assert_eq!(
        proc::left_behind(talk.home.sandbox.marker(), HANG),
        [],
        "{what}"
    );
    own
}

fn running(home: Home, prompt: &str) -> Talk {
    let mut talk = home.talk(&["--patch-mode", "append", "--tools", "bash"]);
    talk.submit("run", prompt);
    talk.event("run", "ChatRunStarted");
    talk
}

#[test]
fn l5_in_the_middle_of_a_text() {
    let prompt = script(&json!({"deltas": 100_000, "size": 5, "paceMs": 5}));
    let talk = running(Home::offline(), &prompt);
    talk.event("run", "ChatTextPatch");
    let own = stop(talk, "text");
    let finished = own
        .iter()
        .find(|line| line["uiEvent"]["name"] == "ChatTextSegmentFinished");
    let payload = &finished.unwrap()["uiEvent"]["payload"];
    assert_eq!(payload["status"], "stopped", "{payload}");
    assert_eq!(payload["finishReason"], "stopped", "{payload}");
}

#[test]
fn a_cancel_is_answered_after_what_it_stops_has_begun() {
    for _ in 0..10 {
        let mut talk = Home::offline().talk(&[]);
        let prompt = script(&json!({"stall": 600_000}));
        let submit = json!({"sessionId": "s1", "requestId": "run", "submit": {"prompt": prompt}});
        let cancel = json!({"sessionId": "s1", "requestId": "stop", "cancel": {}});
        talk.process.send_text(&format!("{submit}\n{cancel}"));
        assert_eq!(talk.done("run"), "stopped");
        assert_eq!(talk.finish(), Exit::Code(0));
        let lines = talk.lines();
        let accepted = |line: &Value| line["uiEvent"]["name"] == "ChatUserMessageAccepted";
        let answered = |line: &Value| line["requestId"] == "stop" && line["done"]["status"] == "ok";
        let accepted = lines.iter().position(accepted).unwrap();
        let answered = lines.iter().position(answered).unwrap();
        assert!(accepted < answered, "{lines:?}");
    }
}

#[test]
fn l5_in_the_middle_of_thinking() {
    let prompt = script(&json!([{"think": "hm"}, {"stall": 600_000}]));
    let talk = running(Home::offline(), &prompt);
    talk.event("run", "ChatReasoningPatch");
    stop(talk, "thinking");
}

#[test]
fn l5_in_the_middle_of_a_tool() {
    let call = json!({"tool": "bash", "args": {"command": "touch begun; sleep 600 & sleep 600"}});
    let talk = running(Home::offline(), &script(&call));
    let end = Instant::now() + HANG;
    while !talk.home.sandbox.work().join("begun").exists() {
        assert!(Instant::now() < end, "the tool does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let own = stop(talk, "tool");
    let told = names(&own);
    for name in ["ChatToolResultReady", "ChatToolCallFinished"] {
        assert_eq!(told.iter().filter(|it| **it == name).count(), 1, "{told:?}");
    }
}

#[test]
fn l5_before_the_first_byte() {
    for api_type in ["openai", "claude", "openai-responses", "gemini"] {
        let server = ModelServer::start(json!({"turns": [{"pre_gate": "never"}]}));
        let talk = running(Home::of(&server, api_type), "go");
        assert!(server.wait_for_requests(1, HANG), "{api_type}");
        stop(talk, api_type);
    }
}

#[test]
fn l5_while_a_read_waits_for_the_provider() {
    for api_type in ["openai", "claude", "openai-responses", "gemini"] {
        let turn = json!({"steps": [{"text": ["a", {"stall": true}]}]});
        let server = ModelServer::start(json!({"turns": [turn]}));
        let talk = running(Home::of(&server, api_type), "go");
        talk.event("run", "ChatTextPatch");
        stop(talk, api_type);
        assert!(
            server.wait_until_idle(HANG),
            "{api_type}: the request goes on"
        );
    }
}

#[test]
fn l5_between_two_tries() {
    let server = ModelServer::start(
        json!({"on_exhausted": "repeat_last", "turns": [{"http": {"status": 529}}]}),
    );
    let settings =
        json!({"retry": {"maxRetries": 5, "baseDelayMs": 600_000, "provider": {"maxRetries": 0}}});
    let talk = running(Home::asking(&server, "claude", &settings), "go");
    assert!(server.wait_for_requests(1, HANG));
    assert!(server.wait_until_idle(HANG));
    // Time to begin the wait; a cancel before that has the same result.
    std::thread::sleep(Duration::from_millis(200));
    stop(talk, "retry");
    assert_eq!(server.request_count(), 1);
}

#[test]
fn l5_at_any_moment() {
    let scripts = [
        json!({"turns": [[{"think": "hm"}, {"text": "a", "paceMs": 3}, {"tool": "bash", "args": {"command": "sleep 0.02"}}], {"deltas": 30, "size": 4, "paceMs": 2}]}),
        json!({"overload": 1}),
        json!({"deltas": 500, "size": 4}),
    ];
    for (number, moment) in (0..24_u64).zip((0..).step_by(7)) {
        let settings = json!({"retry": {"baseDelayMs": 30}});
        let mut talk =
            Home::with_settings(&settings).talk(&["--patch-mode", "append", "--tools", "bash"]);
        talk.submit("run", &script(&scripts[number as usize % scripts.len()]));
        std::thread::sleep(Duration::from_millis(moment));
        talk.ask("stop", "cancel");
        assert_eq!(talk.done("stop"), "ok");
        let status = talk.done("run");
        assert!(
            ["ok", "stopped"].contains(&status.as_str()),
            "after {moment} ms: {status}"
        );
        assert_eq!(talk.say("next", &script(&json!({"text": "fine"}))), "ok");
        assert_eq!(talk.finish(), Exit::Code(0));
        assert_eq!(proc::left_behind(talk.home.sandbox.marker(), HANG), []);
    }
}

#[test]
fn l5_stopped_twice_is_stopped_once() {
    let mut talk = running(Home::offline(), &script(&json!({"stall": 600_000})));
    talk.ask("again", "cancel");
    let own = {
        talk.done("again");
        stop_late(talk)
    };
    let told = names(&own);
    assert_eq!(
        told.iter()
            .filter(|name| **name == "ChatRunStopped")
            .count(),
        1
    );
}

/// Sends a cancel that may arrive before or after the end of the run.
fn stop_late(mut talk: Talk) -> Vec<Value> {
    talk.ask("stop", "cancel");
    assert_eq!(talk.done("stop"), "ok");
    assert_eq!(talk.done("run"), "stopped");
    assert_eq!(talk.finish(), Exit::Code(0));
    of_request(&talk.lines(), "run")
}
