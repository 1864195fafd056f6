//! Servers that hang, flood, die or report progress: the session goes on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Client, call, results, stage, text};

fn fault(line: &Value) -> bool {
    line["type"] == "extension_error" && line["event"] == "mcp"
}

#[test]
fn a_server_that_does_not_start_is_reported_and_delays_nothing() {
    for (mode, words) in [
        ("die", "code 4"),
        ("junk", "lines in a row that are not messages"),
        ("endless", "a line of more than"),
    ] {
        let begun = Instant::now();
        let stage = stage(&[], json!({"lab": {"mode": mode, "exposure": "direct"}}));
        let mut client = Client::start(stage, &[]);
        client.process.ask(json!({"type": "get_state"}));
        let error = client.wait(0, fault);
        assert!(
            error["error"].as_str().unwrap().contains(words),
            "{mode}: {error}"
        );
        let lines = client.run();
        assert!(lines.iter().any(|line| line["type"] == "agent_end"));
        assert!(begun.elapsed() < Duration::from_secs(20), "{mode}");
        client.finish();
    }
}

#[test]
fn a_server_that_hangs_delays_the_first_prompt_for_ten_seconds() {
    let servers =
        json!({"lab": {"mode": "hang-list", "exposure": "direct"}, "other": {"mode": "hang"}});
    let mut client = Client::start(stage(&[], servers), &[]);
    let begun = Instant::now();
    client.process.ask(json!({"type": "get_state"}));
    assert!(begun.elapsed() < Duration::from_secs(10));
    client.run();
    let first = begun.elapsed();
    assert!(
        first > Duration::from_secs(8) && first < Duration::from_secs(20),
        "{first:?}"
    );
    // Only the first prompt waits.
    let begun = Instant::now();
    client.run();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let ending = Instant::now();
    client.finish();
    assert!(ending.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_call_that_takes_too_long_fails_and_progress_extends_the_time() {
    let stage = stage(
        &[
            call("mcp__lab__wait", json!({})),
            call("mcp__lab__work", json!({})),
        ],
        json!({"lab": {"exposure": "direct", "timeout": 1}}),
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    let results = results(&lines);
    assert!(
        text(&results[0]).contains("did not answer wait in time"),
        "{}",
        results[0]
    );
    assert_eq!(text(&results[1]), "worked");
    client.finish();
}

#[test]
fn a_server_that_dies_is_reported_and_started_again() {
    let stage = stage(
        &[
            call("mcp__lab__exit", json!({})),
            call("mcp__lab__echo", json!({"text": "again"})),
        ],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    let results = results(&lines);
    assert_eq!(results[0]["isError"], true);
    assert!(text(&results[0]).contains("code 3"), "{}", results[0]);
    assert_eq!(text(&results[1]), "again");
    client.wait(0, fault);
    client.finish();
}

#[test]
fn a_server_that_floods_is_stopped() {
    let stage = stage(
        &[
            call("mcp__lab__flood", json!({})),
            call("mcp__lab__echo", json!({"text": "again"})),
        ],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    let results = results(&lines);
    assert!(text(&results[0]).contains("not messages"), "{}", results[0]);
    assert_eq!(text(&results[1]), "again");
    client.finish();
}

#[test]
fn an_abort_ends_a_call() {
    let stage = stage(
        &[call("mcp__lab__wait", json!({}))],
        json!({"lab": {"exposure": "direct"}}),
    );
    let mut client = Client::start(stage, &[]);
    let from = client.prompt();
    client.wait(from, |line| line["type"] == "tool_execution_start");
    let begun = Instant::now();
    client.process.ask(json!({"type": "abort"}));
    let lines = client.settled(from);
    assert_eq!(text(&results(&lines)[0]), "Operation aborted");
    assert!(begun.elapsed() < Duration::from_secs(10));
    client.finish();
}

#[test]
fn invalid_entries_are_reported_and_the_others_work() {
    let stage = stage(
        &[call("mcp__lab__echo", json!({"text": "works"}))],
        json!({"lab": {"exposure": "direct"}, "bad": {"comand": "x"}}),
    );
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    assert_eq!(text(&results(&lines)[0]), "works");
    let errors = client.process.stderr();
    assert!(errors.contains("did you mean \"command\"?"), "{errors}");
    client.finish();
}
