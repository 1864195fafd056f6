//! The time from the start of the process to its first answer, and its memory when it then waits.

use std::thread;
use std::time::Duration;

use super::Bench;
use crate::Fallible;
use crate::plain;
use crate::process::Process;
use crate::samples::{Samples, at_least, size, time, times};
use crate::table::Row;

/// Time that an agent gets to settle before its memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let [mut ours, mut theirs, mut plain] = [const { Samples::new() }; 3];
    // A start is short, and the noise of the machine is largest here.
    let rounds = bench.rounds.ours * 4;
    for round in 0..rounds {
        for agent in bench.agents.both() {
            let reference = agent.name != bench.agents.pinion.name;
            if reference && round >= bench.rounds.reference + 2 {
                continue;
            }
            let home = bench.home()?;
            let mut process = agent.start(&home, &[])?;
            process.ask("s", "get_state")?;
            let samples = if reference { &mut theirs } else { &mut ours };
            samples.add_time(process.started.elapsed());
            process.finish()?;
        }
        let mut process = Process::start(&mut plain::command(plain::ANSWER, "")?)?;
        process.ask("s", "get_state")?;
        plain.add_time(process.started.elapsed());
        process.finish()?;
    }
    let ratio = theirs.median() / ours.median();
    bench.table.add(Row {
        what: "spawn → first `get_state` answer".into(),
        pinion: time(ours.median()),
        pi: time(theirs.median()),
        ratio: format!(
            "{} faster; an empty program {}",
            times(ratio),
            time(plain.median())
        ),
        target: "≥ 40×, < 10 ms".into(),
        met: at_least(ratio, 40.0).map(|enough| enough && ours.median() < 0.010),
    });
    idle_memory(bench)
}

fn idle_memory(bench: &mut Bench) -> Fallible<()> {
    let [mut ours, mut theirs] = [const { Samples::new() }; 2];
    for _ in 0..bench.rounds.reference {
        for agent in bench.agents.both() {
            let home = bench.home()?;
            let process = agent.start_ready(&home, &[])?;
            thread::sleep(SETTLE);
            let reference = agent.name != bench.agents.pinion.name;
            let samples = if reference { &mut theirs } else { &mut ours };
            samples.add(process.proportional_memory() as f64);
            process.finish()?;
        }
    }
    let ratio = theirs.median() / ours.median();
    bench.table.add(Row {
        what: "idle memory (PSS)".into(),
        pinion: size(ours.median()),
        pi: size(theirs.median()),
        ratio: format!("{} less", times(ratio)),
        target: "≤ 1/10, < 12 MB".into(),
        met: at_least(ratio, 10.0).map(|enough| enough && ours.median() < 12e6),
    });
    Ok(())
}
