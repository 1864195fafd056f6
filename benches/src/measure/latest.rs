//! pinion's modern dialect beside the newest recorded release of the reference agent: start, private memory, and a long
//! answer.

use std::thread;
use std::time::Duration;

use super::flow::{Cost, Outcome, add, stream};
use super::{Bench, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::samples::{Samples, at_least, size, time, times};
use crate::table::Row;

/// Time that an agent gets to settle before its memory is read.
const SETTLE: Duration = Duration::from_millis(1500);
/// Deltas of the long answer.
const LONG: usize = 20_000;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let Some((version, latest)) = bench.agents.latest.clone() else {
        eprintln!("  skipped: the newest release of the reference agent could not be installed");
        return Ok(());
    };
    let pinion = bench.agents.pinion.with("--rpc-dialect").with("modern");
    start(bench, &version, &pinion, &latest)?;
    private_memory(bench, &version, &pinion, &latest)?;
    long(bench, &version, &pinion, &latest)
}

fn start(bench: &mut Bench, version: &str, pinion: &Agent, latest: &Agent) -> Fallible<()> {
    let [mut ours, mut theirs] = [const { Samples::new() }; 2];
    for round in 0..bench.rounds.ours * 4 {
        for (agent, samples, rounds) in [
            (pinion, &mut ours, usize::MAX),
            (latest, &mut theirs, bench.rounds.reference + 2),
        ] {
            if round >= rounds {
                continue;
            }
            let home = bench.home()?;
            let mut process = agent.start(&home, &[])?;
            process.ask("s", "get_state")?;
            samples.add_time(process.started.elapsed());
            process.finish()?;
        }
    }
    let ratio = theirs.median() / ours.median();
    bench.table.add(Row {
        what: format!("beside pi {version}: spawn → first `get_state` answer"),
        pinion: time(ours.median()),
        pi: time(theirs.median()),
        ratio: format!("{} faster", times(ratio)),
        target: "≥ 100×".into(),
        met: at_least(ratio, 100.0),
    });
    Ok(())
}

fn private_memory(bench: &mut Bench, version: &str, ours: &Agent, latest: &Agent) -> Fallible<()> {
    let [mut mine, mut theirs] = [const { Samples::new() }; 2];
    for _ in 0..bench.rounds.reference {
        for (agent, samples) in [(ours, &mut mine), (latest, &mut theirs)] {
            let home = bench.home()?;
            let process = agent.start_ready(&home, &[])?;
            thread::sleep(SETTLE);
            samples.add(process.private_memory() as f64);
            process.finish()?;
        }
    }
    let ratio = theirs.median() / mine.median();
    bench.table.add(Row {
        what: format!("beside pi {version}: idle private memory"),
        pinion: size(mine.median()),
        pi: size(theirs.median()),
        ratio: format!("{} less", times(ratio)),
        target: "≤ 1/20".into(),
        met: at_least(ratio, 20.0),
    });
    Ok(())
}

fn long(bench: &mut Bench, version: &str, pinion: &Agent, latest: &Agent) -> Fallible<()> {
    let expected = bench.play_deltas(LONG)?;
    let mut ours = Cost::default();
    let mut theirs = Cost::default();
    let mut failure = None;
    for _ in 0..bench.rounds.reference {
        add(&mut ours, bench, pinion, &expected)?;
        match stream(latest, &bench.home()?, &expected, bench.rounds.give_up)? {
            Outcome::Complete(run) => theirs.add(&run, &expected),
            Outcome::Not(what) => failure = Some(what),
        }
    }
    let ratio = theirs.wall.median() / ours.wall.median();
    let cost = |cost: &Cost| {
        format!(
            "{}; processor {}, peak {}",
            time(cost.wall.median()),
            time(cost.processor.median()),
            size(cost.peak.median())
        )
    };
    bench.table.add(Row {
        what: format!("beside pi {version}: {} deltas, wall time", thousands(LONG)),
        pinion: cost(&ours),
        pi: failure.unwrap_or_else(|| cost(&theirs)),
        ratio: format!("{} less", times(ratio)),
        target: "completed".into(),
        met: Some(true),
    });
    Ok(())
}
