//! The memory of one more idle session in a process that has many, after it has answered a prompt.

use serde_json::{Value, json};

use super::{Bench, one_turn};
use crate::Fallible;
use crate::process::Process;
use crate::samples::{Samples, size};
use crate::table::Row;

/// Sessions that are not counted, because they include the cost of starting.
const FIRST: usize = 20;
const MORE: usize = 200;
/// The promised memory of an idle session, in bytes.
const PROMISED: f64 = 200_000.0;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    bench.model.play(&one_turn(&json!({"text": "Hello."})))?;
    let mut each = Samples::new();
    for _ in 0..bench.rounds.ours {
        let home = bench.home()?;
        let mut process = bench.agents.pinion.start(&home, &["--multi-session"])?;
        open(&mut process, FIRST)?;
        let before = process.proportional_memory();
        open(&mut process, MORE)?;
        let grown = process.proportional_memory().saturating_sub(before);
        each.add(grown as f64 / MORE as f64);
        process.finish()?;
    }
    bench.table.add(Row {
        what: format!("one more idle session in one process (PSS, mean of {MORE})"),
        pinion: size(each.median()),
        target: "< 200 KB".into(),
        met: Some(each.median() < PROMISED),
        ..Row::default()
    });
    Ok(())
}

/// Opens this many sessions, one after another, and sends a prompt to each.
fn open(process: &mut Process, count: usize) -> Fallible<()> {
    for _ in 0..count {
        let opened = process.ask("open", "open_session")?;
        let opened: Value = serde_json::from_slice(&opened)?;
        let id = opened["sessionId"].as_str().ok_or("no session")?;
        let prompt = json!({"type": "prompt", "sessionId": id, "message": "Go"});
        process.send(&prompt.to_string())?;
        let end = format!(r#"{{"sessionId":"{id}","type":"agent_end""#);
        process.read_until(|line| line.head.starts_with(end.as_bytes()))?;
    }
    Ok(())
}
