//! Lines with invalid parts: only the invalid part is lost.

use crate::short_events::{read, read_by};
use pinion_fleet::{AgentKind, JsonlRules};

fn last(agent: AgentKind, line: &str) -> Vec<String> {
    let (events, counts) = read(agent, format!("{line}\n").as_bytes());
    assert_eq!(counts.noise, 0, "{line}");
    events
}

#[test]
fn an_invalid_character_is_replaced() {
    let message = |text: &str| {
        let head = r#"{"type":"message_end","message":{"role":"assistant","stopReason":"stop","usage":{"cost":{"total":0.5}},"content":[{"type":"text","text":""#;
        format!("{head}{text}\"}}]}}}}")
    };
    for (text, read) in [
        (r"so \ud83d", "text so \u{fffd}"),
        (r"\ude00 so", "text \u{fffd} so"),
        (
            r"\ud83d\ud83d\ude00\u00e9\\ud83d\n",
            "text \u{fffd}😀é\\ud83d\n",
        ),
        (r"\ud83dx", "text \u{fffd}x"),
    ] {
        let events = last(AgentKind::Pi, &message(text));
        assert_eq!(events, [read, "step stop 0+0r+0w→0 $0.50"], "{text}");
    }
    let mut bytes = message("so X").into_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'X').unwrap();
    bytes[at] = 0xff;
    bytes.push(b'\n');
    let (events, counts) = read(AgentKind::Pi, &bytes);
    assert_eq!(events, ["text so \u{fffd}", "step stop 0+0r+0w→0 $0.50"]);
    assert_eq!((counts.noise, counts.events), (0, 1));
}

#[test]
fn invalid_characters_are_replaced_for_every_agent() {
    for (agent, line, read) in [
        (
            AgentKind::Opencode,
            r#"{"type":"text","sessionID":"s","part":{"text":"a\ud83d"}}"#,
            "text a\u{fffd}",
        ),
        (
            AgentKind::Codex,
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"a\ud83d"}}"#,
            "text a\u{fffd}",
        ),
        (
            AgentKind::Claude,
            r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"a\ud83d"}]}}"#,
            "text a\u{fffd}",
        ),
        (
            AgentKind::Jsonl,
            r#"{"type":"text","text":"a\ud83d"}"#,
            "text a\u{fffd}",
        ),
    ] {
        assert_eq!(last(agent, line), [read], "{line}");
    }
}

#[test]
fn invalid_numbers_count_as_zero() {
    let opencode = |part: &str| format!(r#"{{"type":"step_finish","part":{{{part}}}}}"#);
    for (part, step) in [
        (
            r#""reason":"stop","cost":0.5,"tokens":{"input":-5,"output":1.5,"reasoning":null,"cache":{"read":1e2,"write":"x"}}"#,
            "step stop 0+100r+0w→2 $0.50",
        ),
        (
            r#""reason":"stop","cost":null,"tokens":null"#,
            "step stop 0+0r+0w→0 $0.00",
        ),
        (
            r#""reason":"stop","tokens":{"input":1,"cache":null}"#,
            "step stop 1+0r+0w→0 $0.00",
        ),
    ] {
        let events = last(AgentKind::Opencode, &opencode(part));
        assert_eq!(events, [step, "idle"], "{part}");
    }
    for usage in ["null", r#"{"input_tokens":null}"#, "7"] {
        let line = format!(r#"{{"type":"turn.completed","usage":{usage}}}"#);
        let events = last(AgentKind::Codex, &line);
        assert_eq!(events, ["step stop 0+0r+0w→0 ?", "idle"], "{usage}");
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":null,"result":"A","total_cost_usd":null,"usage":{usage}}}"#
        );
        let events = last(AgentKind::Claude, &line);
        assert_eq!(events, ["text A", "step stop 0+0r+0w→0 $0.00", "idle"]);
    }
    let (events, _) = read_by(
        AgentKind::Jsonl,
        &JsonlRules::default(),
        b"{\"type\":\"step\",\"cost\":0.5,\"usage\":{\"input\":2.6,\"output\":-1}}\n",
    );
    assert_eq!(events, ["step unknown 3+0r+0w→0 $0.50"]);
}

#[test]
fn huge_numbers_saturate() {
    let line = r#"{"type":"step_finish","part":{"reason":"stop","tokens":{"input":1e300,"output":18446744073709551615,"reasoning":9}}}"#;
    let events = last(AgentKind::Opencode, line);
    let most = u64::MAX;
    assert_eq!(
        events,
        [
            format!("step stop {most}+0r+0w→{most} $0.00"),
            "idle".into()
        ]
    );
}

#[test]
fn content_of_pi_may_be_a_string_or_blocks() {
    let message = |content: &str| {
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","stopReason":"stop","content":{content},"usage":{{"input":1e2,"cost":{{"total":0.7}}}}}}}}"#
        )
    };
    for content in [
        r#""plain""#,
        r#"[{"type":"text","text":"plain"}]"#,
        r#"["odd",{"type":"text","text":"plain"},{"type":7},{"type":"text","text":null}]"#,
    ] {
        let events = last(AgentKind::Pi, &message(content));
        assert_eq!(
            events,
            ["text plain", "step stop 100+0r+0w→0 $0.70"],
            "{content}"
        );
    }
    for content in ["null", "7"] {
        let events = last(AgentKind::Pi, &message(content));
        assert_eq!(events, ["step stop 100+0r+0w→0 $0.70"], "{content}");
    }
}

#[test]
fn an_invalid_last_event_still_ends_the_work() {
    for (agent, line, read) in [
        (
            AgentKind::Codex,
            r#"{"type":"turn.failed","error":[]}"#,
            &["failed protocol", "idle"][..],
        ),
        (
            AgentKind::Claude,
            r#"{"type":"result","api_error_status":"x","subtype":7}"#,
            &["step stop 0+0r+0w→0 $0.00", "idle"],
        ),
        (
            AgentKind::Opencode,
            r#"{"type":"error","error":"what"}"#,
            &["failed protocol"],
        ),
    ] {
        assert_eq!(last(agent, line), read, "{line}");
    }
}

#[test]
fn only_lines_that_are_not_json_are_noise() {
    let lines = concat!(
        "{\"type\":\"message_end\"}\n",
        "{\"type\":\"message_end\",\"message\":7}\n",
        "{\"type\":\"tool_execution_start\",\"toolName\":null}\n",
        "{\"type\":\"message_end\",oops}\n",
        "words\n",
    );
    let (_, counts) = read(AgentKind::Pi, lines.as_bytes());
    assert_eq!((counts.lines, counts.noise), (5, 2));
}
