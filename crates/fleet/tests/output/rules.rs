//! Reads lines of any program by the rules of a plan.

use crate::short_events::read_by;
use pinion_fleet::{AgentKind, JsonlRules};

fn read(rules: &JsonlRules, lines: &[&str]) -> Vec<String> {
    let (events, counts) = read_by(
        AgentKind::Jsonl,
        rules,
        (lines.join("\n") + "\n").as_bytes(),
    );
    assert_eq!(counts.noise, 0);
    events
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn only_named_events_are_progress() {
    let lines = [r#"{"type":"heartbeat"}"#, r#"{"type":"delta"}"#];
    let mut rules = JsonlRules::default();
    assert_eq!(read(&rules, &lines), ["alive", "alive"]);
    rules.progress = words(&["delta"]);
    assert_eq!(read(&rules, &lines), ["alive", "…"]);
    rules.progress = words(&["*"]);
    assert_eq!(read(&rules, &lines), ["…"]);
}

#[test]
fn the_name_of_an_event_may_lie_deep_and_be_any_scalar() {
    let rules = JsonlRules {
        event: "event.name".into(),
        ..JsonlRules::default()
    };
    let lines = [
        r#"{"event":{"name":"text"},"text":"half \ud83d"}"#,
        r#"{"event":{"name":"other"}}"#,
        r#"{"event":{}}"#,
        r#"{"event":{"name":"done"}}"#,
    ];
    assert_eq!(
        read(&rules, &lines),
        ["text half \u{fffd}", "alive", "idle"]
    );
    let rules = JsonlRules {
        event: "finished".into(),
        done: words(&["true"]),
        failed: words(&["7"]),
        text: words(&["false"]),
        ..JsonlRules::default()
    };
    let lines = [
        r#"{"finished":false,"text":"hi"}"#,
        r#"{"finished":null}"#,
        r#"{"finished":7,"message":"503"}"#,
        r#"{"finished":true}"#,
    ];
    assert_eq!(
        read(&rules, &lines),
        ["text hi", "failed api 503", "idle", "idle"]
    );
}

#[test]
fn usage_in_the_last_line_is_a_complete_step() {
    let lines = [
        r#"{"type":"step","cost":1}"#,
        r#"{"type":"done","cost":2.0}"#,
    ];
    assert_eq!(
        read(&JsonlRules::default(), &lines),
        [
            "step unknown 0+0r+0w→0 $1.00",
            "step stop 0+0r+0w→0 $2.00",
            "idle"
        ]
    );
}
