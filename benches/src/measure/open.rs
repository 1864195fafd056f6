//! Opening a long session: from the start of the process to its answers about the conversation.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::samples::{Samples, at_least, size, time, times};
use crate::table::Row;

pub(super) const ENTRIES: usize = 10_000;

/// The times from the start of the process to each of the two answers.
#[derive(Debug, Default)]
struct Opened {
    state: Samples,
    messages: Samples,
}

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let [mut ours, mut theirs]: [Opened; 2] = Default::default();
    let mut length = 0;
    for round in 0..bench.rounds.ours {
        length = open(bench, &bench.agents.pinion, &mut ours)?;
        if let Some(pi) = bench
            .agents
            .pi
            .as_ref()
            .filter(|_| round < bench.rounds.reference)
        {
            open(bench, pi, &mut theirs)?;
        }
    }
    let session = format!(
        "session of {} entries ({})",
        thousands(ENTRIES),
        size(length as f64)
    );
    let ratio = theirs.state.median() / ours.state.median();
    bench.table.add(Row {
        what: format!("{session}: spawn → `get_state` answer"),
        pinion: time(ours.state.median()),
        pi: time(theirs.state.median()),
        ratio: format!("{} faster", times(ratio)),
        target: "≥ 10×".into(),
        met: at_least(ratio, 10.0),
    });
    let ratio = theirs.messages.median() / ours.messages.median();
    bench.table.add(Row {
        what: "the same: spawn → all of `get_messages`".into(),
        pinion: time(ours.messages.median()),
        pi: time(theirs.messages.median()),
        ratio: format!("{} faster", times(ratio)),
        ..Row::default()
    });
    Ok(())
}

fn open(bench: &Bench, agent: &Agent, opened: &mut Opened) -> Fallible<usize> {
    let home = bench.home()?;
    let text = session(&home.work());
    let file = home.root().join("long.jsonl");
    fs::write(&file, &text)?;
    let mut process = agent.start(&home, &["--session", &file.to_string_lossy()])?;
    process.ask("s", "get_state")?;
    opened.state.add_time(process.started.elapsed());
    let messages = process.ask("m", "get_messages")?;
    opened.messages.add_time(process.started.elapsed());
    process.finish()?;
    let messages: Value = serde_json::from_slice(&messages)?;
    let count = messages["data"]["messages"].as_array().map_or(0, Vec::len);
    if count != ENTRIES {
        return Err(format!("{}: {count} messages instead of {ENTRIES}", agent.name).into());
    }
    Ok(text.len())
}

/// Returns a typical session: questions, answers with a call, results of about a kilobyte.
pub(super) fn session(work: &Path) -> String {
    let stamp = "2026-01-01T10:00:00.000Z";
    let mut text = json!({"type": "session", "version": 3, "timestamp": stamp,
        "id": "01890a5d-ac96-774b-bcce-b302099a8057", "cwd": work.to_string_lossy()})
    .to_string();
    text.push('\n');
    let mut parent = Value::Null;
    for number in 0..ENTRIES {
        let id = format!("{number:08x}");
        let message = message(number);
        let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": stamp,
            "message": message});
        let _ = writeln!(text, "{entry}");
        parent = json!(id);
    }
    text
}

fn message(number: usize) -> Value {
    let time = 1_767_261_600_000_u64 + number as u64 * 1000;
    let answer = |content: Value, stop: &str| {
        json!({"role": "assistant", "content": content, "api": "anthropic-messages",
            "provider": "mock", "model": "mock-1", "usage": {"input": 1200, "output": 80,
                "cacheRead": 900, "cacheWrite": 0, "totalTokens": 2180,
                "cost": {"input": 0.0036, "output": 0.0012, "cacheRead": 0.00027,
                         "cacheWrite": 0, "total": 0.00507}},
            "stopReason": stop, "timestamp": time})
    };
    let words = |text: &str| json!({"type": "text", "text": format!("{text} ({number})")});
    match number % 4 {
        0 => json!({"role": "user", "timestamp": time,
            "content": [words("Please look at the next file and say what could be simpler.")]}),
        1 => answer(
            json!([words("I will read it first."), {"type": "toolCall", "name": "read",
                "id": format!("toolu_{number}"),
                "arguments": {"path": format!("src/part_{number}.rs"), "offset": 1, "limit": 40}}]),
            "toolUse",
        ),
        2 => {
            let line = "    let total = items.iter().map(|item| item.weight()).sum();\n";
            json!({"role": "toolResult", "toolCallId": format!("toolu_{}", number - 1),
                "toolName": "read", "content": [words(&line.repeat(16))], "isError": false,
                "timestamp": time})
        }
        _ => answer(
            json!([words(
                "The sum could be a method of the list; the rest is as simple as it can be."
            )]),
            "stop",
        ),
    }
}
