//! Many turns in a row, each with one shell command that does nothing: the overhead of an agent.

use std::time::Instant;

use serde_json::json;

use super::{Bench, PROMPT};
use crate::Fallible;
use crate::agent::Agent;
use crate::plain;
use crate::process::Process;
use crate::samples::{Samples, at_least, time, times};
use crate::table::Row;

const TURNS: usize = 200;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let [mut ours, mut theirs, mut plain] = [const { Samples::new() }; 3];
    for round in 0..bench.rounds.ours {
        converse(bench, &bench.agents.pinion, &mut ours)?;
        let mut process = Process::start(&mut plain::command(plain::SHELL, &TURNS.to_string())?)?;
        let begin = Instant::now();
        process.send("go")?;
        process.read_until(|line| line.answers("s"))?;
        plain.add_time(begin.elapsed());
        process.finish()?;
        if let Some(pi) = bench
            .agents
            .pi
            .as_ref()
            .filter(|_| round < bench.rounds.reference)
        {
            converse(bench, pi, &mut theirs)?;
        }
    }
    let overhead = |samples: &Samples| samples.median() - plain.median();
    let ratio = overhead(&theirs) / overhead(&ours);
    bench.table.add(Row {
        what: format!("{TURNS} tool turns in a row: wall time"),
        pinion: time(ours.median()),
        pi: time(theirs.median()),
        ratio: format!(
            "{} less; the commands alone {}, beyond them {} less",
            times(theirs.median() / ours.median()),
            time(plain.median()),
            times(ratio)
        ),
        target: "≥ 5× less overhead".into(),
        met: at_least(ratio, 5.0),
    });
    Ok(())
}

fn converse(bench: &Bench, agent: &Agent, samples: &mut Samples) -> Fallible<()> {
    let call = json!({"steps": [{"tool": "bash", "args": {"command": "true"}}]});
    let last = json!({"steps": [{"text": "Done."}]});
    let scenario = json!({"blind": true, "turns": [{"repeat_turn": TURNS, "turn": call}, last]});
    bench.model.play(&scenario)?;
    let home = bench.home()?;
    let mut process = agent.start_ready(&home, &[])?;
    let (mut called, mut failed) = (0, 0);
    let begin = Instant::now();
    process.send(PROMPT)?;
    process.read_until(|line| {
        if line.is("tool_execution_end") {
            called += 1;
            failed += usize::from(line.head.ends_with(br#""isError":true}"#));
        }
        line.is("agent_end")
    })?;
    samples.add_time(begin.elapsed());
    process.finish()?;
    if called != TURNS || failed > 0 {
        return Err(format!("{}: {called} calls, {failed} of them failed", agent.name).into());
    }
    Ok(())
}
