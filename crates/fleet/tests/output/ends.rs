//! Detects from its output that a child is done.

use crate::short_events::read;
use pinion_fleet::AgentKind;

fn opencode(lines: &[&str]) -> Vec<String> {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| match line.split_once(' ').unwrap_or((line, "")) {
            ("start", _) => r#"{"type":"step_start","sessionID":"s","part":{}}"#.to_owned(),
            ("tool", name) => {
                format!(r#"{{"type":"tool_use","sessionID":"s","part":{{"tool":"{name}"}}}}"#)
            }
            ("finish", reason) => {
                format!(
                    r#"{{"type":"step_finish","sessionID":"s","part":{{"reason":"{reason}"}}}}"#
                )
            }
            (kind, properties) => format!(r#"{{"type":"{kind}","properties":{properties}}}"#),
        })
        .collect();
    let (events, _) = read(AgentKind::Opencode, (lines.join("\n") + "\n").as_bytes());
    events
}

#[test]
fn a_step_of_opencode_that_used_a_tool_is_never_the_last() {
    for reason in ["stop", "length", "tool-calls", "unknown", "other"] {
        let events = opencode(&["start", "tool read", &format!("finish {reason}")]);
        assert!(!events.contains(&"idle".into()), "{reason}: {events:?}");
    }
    let events = opencode(&["start", "tool read", "finish stop", "start", "finish stop"]);
    assert_eq!(events.iter().filter(|event| *event == "idle").count(), 1);
    assert_eq!(events.last().unwrap(), "idle");
}

#[test]
fn opencode_continues_after_a_step_with_an_unknown_reason() {
    for (reason, idle) in [
        ("stop", true),
        ("length", true),
        ("content-filter", true),
        ("unknown", false),
        ("other", false),
        ("tool-calls", false),
    ] {
        let events = opencode(&["start", &format!("finish {reason}")]);
        assert_eq!(events.contains(&"idle".into()), idle, "{reason}");
    }
}

#[test]
fn sessions_of_subagents_of_opencode_are_ignored() {
    let events = opencode(&[
        "start",
        r#"session.idle {"sessionID":"below"}"#,
        r#"session.error {"sessionID":"below","error":{"name":"ProviderAuthError"}}"#,
        r#"session.status {"sessionID":"below","status":{"type":"idle"}}"#,
        r#"session.status {"sessionID":"s","status":{"type":"busy"}}"#,
    ]);
    assert_eq!(events, ["started"]);
    for last in [
        r#"session.idle {"sessionID":"s"}"#,
        r#"session.status {"sessionID":"s","status":{"type":"idle"}}"#,
    ] {
        assert_eq!(opencode(&["start", last]), ["started", "idle"]);
    }
}

fn pi(lines: &[&str]) -> Vec<String> {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| match line.split_once(' ').unwrap_or((line, "")) {
            ("answer", reason) => format!(
                r#"{{"type":"message_end","message":{{"role":"assistant","content":[],"stopReason":"{reason}"}}}}"#
            ),
            (kind, "") => format!(r#"{{"type":"{kind}"}}"#),
            (kind, members) => format!(r#"{{"type":"{kind}",{members}}}"#),
        })
        .collect();
    let (events, _) = read(AgentKind::Pi, (lines.join("\n") + "\n").as_bytes());
    events
}

#[test]
fn pi_is_as_idle_after_a_compaction_as_it_was_before() {
    for [begin, end] in [
        ["compaction_start", "compaction_end"],
        ["auto_compaction_start", "auto_compaction_end"],
    ] {
        for (members, last) in [
            ("", "idle"),
            (r#""willRetry":false"#, "idle"),
            (r#""aborted":true,"result":null"#, "idle"),
            (r#""willRetry":true"#, "started"),
        ] {
            let ended = format!("{end} {members}");
            let events = pi(&["agent_start", "agent_end", begin, ended.trim()]);
            assert_eq!(events.last().unwrap(), last, "{end} {members}");
        }
        let events = pi(&["agent_start", begin, end]);
        assert_eq!(events, ["started"], "it was in the middle of its work");
    }
}

#[test]
fn a_compaction_is_a_step_but_not_an_answer() {
    let usage = r#"compaction_end "result":{"usage":{"input":5,"output":6,"cost":{"total":0.5}}}"#;
    let events = pi(&[
        "agent_start",
        "answer length",
        "agent_end",
        "compaction_start",
        usage,
    ]);
    assert_eq!(
        events,
        [
            "started",
            "step length 0+0r+0w→0 $0.00",
            "idle",
            "started",
            "step compaction 5+0r+0w→6 $0.50",
            "idle",
        ]
    );
}
