//! Reads the lines of a child into short descriptions of its events.

use std::time::Duration;

use pinion_fleet::{
    AgentKind, BatchLog, ChildEvent, Consumer, Counts, JsonlRules, Text, ToolPhase,
};

/// Returns a short description of each event of a stream.
pub fn read(agent: AgentKind, bytes: &[u8]) -> (Vec<String>, Counts) {
    read_by(agent, &JsonlRules::default(), bytes)
}

/// Does the same with other rules for `agent: jsonl`.
pub fn read_by(agent: AgentKind, rules: &JsonlRules, bytes: &[u8]) -> (Vec<String>, Counts) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = BatchLog::create(&path).unwrap();
    let mut consumer = Consumer::new(agent.adapter(rules), log);
    let mut events = Vec::new();
    // The result does not depend on the chunks; small ones cut most lines.
    for piece in bytes.chunks(7) {
        consumer.feed(piece, Duration::ZERO, &mut events);
    }
    consumer.finish(&mut events);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let mut short: Vec<String> = events.iter().map(shorten).collect();
    short.dedup_by(|a, b| a == b && (a == "…" || a == "started"));
    (short, consumer.counts())
}

fn shorten(event: &ChildEvent) -> String {
    match event {
        ChildEvent::Started { .. } => "started".into(),
        ChildEvent::Alive => "alive".into(),
        ChildEvent::Text(Text::Partial) => "…".into(),
        ChildEvent::Text(Text::Complete(text)) => format!("text {text}"),
        ChildEvent::Tool { name, phase, .. } => match phase {
            ToolPhase::Started => format!("begins {name}"),
            ToolPhase::Ended => format!("ended {name}"),
            ToolPhase::Done => format!("did {name}"),
        },
        ChildEvent::StepFinished(step) => {
            let t = step.tokens;
            let cost = step.cost.map_or("?".into(), |cost| cost.to_string());
            format!(
                "step {} {}+{}r+{}w→{} {cost}",
                step.reason.as_str(),
                t.input,
                t.cache_read,
                t.cache_write,
                t.output
            )
        }
        ChildEvent::Failed(failure) => format!("failed {}", failure.kind),
        ChildEvent::Idle => "idle".into(),
        ChildEvent::Exited(ending) => format!("exited {ending:?}"),
    }
}
