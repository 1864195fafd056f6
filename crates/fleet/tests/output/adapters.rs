//! Recorded streams of real programs, read into events.

use std::path::Path;

use crate::short_events::{read, read_by};
use pinion_fleet::{AgentKind, Counts, FailureKind, JsonlRules, Micros};

fn recorded(name: &str) -> (Vec<String>, Counts) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/streams")
        .join(format!("{name}.jsonl"));
    let (agent, _) = name.split_once('-').unwrap();
    let agent = AgentKind::ALL
        .iter()
        .find(|(name, _)| *name == agent)
        .unwrap()
        .1;
    read(agent, &std::fs::read(path).unwrap())
}

#[test]
fn pinion_reports_every_step() {
    let (events, counts) = recorded("pinion-ok");
    assert_eq!(
        events,
        [
            "started",
            "…",
            "text Let me look.",
            "step tool use 120+0r+0w→20 $0.00066",
            "begins bash",
            "…",
            "ended bash",
            "started",
            "…",
            "text All is well.",
            "step stop 150+100r+0w→9 $0.000615",
            "idle",
            "idle",
        ]
    );
    assert_eq!((counts.lines, counts.noise, counts.truncated), (29, 0, 0));
}

#[test]
fn pi_reports_every_step() {
    let (events, _) = recorded("pi-ok");
    assert_eq!(
        events,
        [
            "started",
            "…",
            "text Let me look.",
            "step tool use 120+0r+0w→20 $0.00066",
            "begins bash",
            "…",
            "ended bash",
            "started",
            "…",
            "text All is well.",
            "step stop 150+100r+0w→9 $0.000615",
            "idle",
        ]
    );
}

#[test]
fn overload_is_reported_before_the_child_retries() {
    let (events, _) = recorded("pi-529");
    let tail: Vec<&str> = events
        .iter()
        .skip_while(|event| *event != "ended bash")
        .map(String::as_str)
        .collect();
    assert_eq!(
        tail,
        [
            "ended bash",
            "started",
            "step error 0+0r+0w→0 $0.00",
            "failed api 529",
            "idle",
            "started",
            "…",
            "text All is well.",
            "step stop 150+100r+0w→9 $0.000615",
            "idle",
        ]
    );
    let (events, _) = recorded("pinion-529");
    assert_eq!(
        events
            .iter()
            .filter(|event| *event == "failed api 529")
            .count(),
        4
    );
    assert_eq!(events.last().unwrap(), "idle");
}

#[test]
fn a_wrong_key_is_recognized_for_every_agent() {
    for name in ["pinion-401", "opencode-401", "codex-401", "claude-401"] {
        let (events, _) = recorded(name);
        assert!(
            events.contains(&"failed provider auth".to_owned()),
            "{name}: {events:?}"
        );
        let failures = events.iter().filter(|event| event.starts_with("failed"));
        assert!(
            failures
                .clone()
                .all(|event| event == "failed provider auth"),
            "{name}: {events:?}"
        );
    }
}

#[test]
fn a_cut_answer_has_the_reason_length() {
    for name in ["pinion-length", "opencode-length"] {
        let (events, _) = recorded(name);
        let step = events
            .iter()
            .find(|event| event.starts_with("step"))
            .unwrap();
        assert!(step.starts_with("step length 10+0r+0w→5"), "{name}: {step}");
        assert_eq!(events.last().unwrap(), "idle");
    }
}

#[test]
fn opencode_reports_tools_when_they_are_done() {
    let (events, _) = recorded("opencode-ok");
    assert_eq!(
        events,
        [
            "started",
            "text Let me look.",
            "did bash",
            "step tool use 120+0r+0w→20 $0.00066",
            "started",
            "text All is well.",
            "step stop 150+100r+0w→9 $0.000585",
            "idle",
        ]
    );
}

#[test]
fn codex_reports_tokens_of_a_turn_and_no_cost() {
    let (events, _) = recorded("codex-ok");
    assert_eq!(
        events,
        [
            "started",
            "text Let me look.",
            "begins command_execution",
            "ended command_execution",
            "text All is well.",
            "step stop 270+100r+0w→29 ?",
            "idle",
        ]
    );
    let (events, _) = recorded("codex-503");
    assert_eq!(
        events,
        ["started", "failed api 503", "failed api 503", "idle"]
    );
}

#[test]
fn claude_reports_cost_once_at_the_end() {
    let (events, _) = recorded("claude-ok");
    assert_eq!(
        events,
        [
            "started",
            "text Let me look.",
            "begins Bash",
            "ended Bash",
            "text All is well.",
            "text All is well.",
            "step stop 270+100r+0w→29 $0.002125",
            "idle",
        ]
    );
    let (events, _) = recorded("claude-529");
    assert_eq!(
        events[events.len() - 3..],
        ["step error 120+0r+0w→20 $0.0011", "failed api 529", "idle"]
    );
    assert!(
        !events
            .iter()
            .any(|event| event.starts_with("text API Error")),
        "{events:?}"
    );
}

#[test]
fn any_program_can_be_read_by_rules() {
    let rules = JsonlRules {
        event: "kind".into(),
        done: vec!["finish".into()],
        text: vec!["say".into()],
        text_field: "body.words".into(),
        cost_field: "usd".into(),
        ..JsonlRules::default()
    };
    let lines = concat!(
        r#"{"kind":"think"}"#,
        "\n",
        r#"{"kind":"say","body":{"words":"hello"}}"#,
        "\n",
        r#"{"kind":"step","usd":0.5,"usage":{"input":3}}"#,
        "\n",
        r#"{"kind":"error","message":"503 Service Unavailable"}"#,
        "\n",
        r#"{"kind":"finish"}"#,
        "\n",
    );
    let (events, _) = read_by(AgentKind::Jsonl, &rules, lines.as_bytes());
    assert_eq!(
        events,
        [
            "alive",
            "text hello",
            "step unknown 3+0r+0w→0 $0.50",
            "failed api 503",
            "idle",
            "idle"
        ]
    );
}

/// Covers errors of opencode that were not recorded, under the names that its server uses.
#[test]
fn every_error_of_opencode_has_a_kind() {
    for (name, kind) in [
        ("ProviderAuthError", FailureKind::ProviderAuth),
        ("MessageOutputLengthError", FailureKind::OutputLength),
        ("MessageAbortedError", FailureKind::Aborted),
        ("StructuredOutputError", FailureKind::StructuredOutput),
        ("ContextOverflowError", FailureKind::ContextOverflow),
    ] {
        for shape in ["error", "properties"] {
            let error = format!(r#"{{"name":"{name}","data":{{"message":"x"}}}}"#);
            let line = match shape {
                "error" => {
                    format!(r#"{{"type":"error","timestamp":1,"sessionID":"s","error":{error}}}"#)
                }
                _ => format!(
                    r#"{{"type":"session.error","properties":{{"sessionID":"s","error":{error}}}}}"#
                ),
            };
            let (events, _) = read(AgentKind::Opencode, line.as_bytes());
            assert_eq!(events, [format!("failed {kind}")], "{line}");
        }
    }
}

/// Requests are counted one by one, and their sum equals the total that the agent reports.
#[test]
fn m1_steps_add_up_to_the_total_of_the_agent() {
    let (events, _) = recorded("claude-ok");
    let steps = events.iter().filter(|event| event.starts_with("step"));
    assert_eq!(
        steps.count(),
        1,
        "the repeated usage of blocks is not counted"
    );
    assert_eq!(
        Micros::from_dollars(0.00066) + Micros::from_dollars(0.000615),
        Micros(1275)
    );
}
