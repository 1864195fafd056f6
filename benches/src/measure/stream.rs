//! A long answer in many deltas, sent as fast as the agent reads them: time, processor time, bytes and peak memory,
//! against the reference agent and against a program that only writes the bytes.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::flow::{Cost, Outcome, add, stream, write_plainly};
use super::{Bench, thousands};
use crate::Fallible;
use crate::samples::{Samples, at_least, size, time, times};
use crate::table::Row;

/// Deltas of the timed runs.
const TIMED: [usize; 2] = [2000, 8000];
/// Deltas of the run whose memory is measured.
const WATCHED: usize = 4000;
/// Deltas of the run that the reference agent is known not to finish.
const LONG: usize = 20_000;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    for count in TIMED {
        timed(bench, count)?;
    }
    long(bench)?;
    built_in(bench)?;
    watched(bench)
}

fn timed(bench: &mut Bench, count: usize) -> Fallible<()> {
    let expected = bench.play_deltas(count)?;
    let [mut ours, mut apart, mut theirs, mut plain]: [Cost; 4] = Default::default();
    let pinion = bench.agents.pinion.clone();
    let never = pinion.with("--no-coalesce");
    for round in 0..bench.rounds.ours {
        add(&mut ours, bench, &pinion, &expected)?;
        let lengths = add(&mut apart, bench, &never, &expected)?;
        write_plainly(&mut plain, bench, &lengths)?;
        if let Some(pi) = bench
            .agents
            .pi
            .clone()
            .filter(|_| round < bench.rounds.reference)
        {
            add(&mut theirs, bench, &pi, &expected)?;
        }
    }
    let deltas = format!("{} deltas", thousands(count));
    let mut compare = |what: &str, pick: fn(&Cost) -> &Samples, cost: &Cost, met: bool| {
        let ratio = pick(&theirs).median() / pick(cost).median();
        bench.table.add(Row {
            what: format!("{deltas}{what}"),
            pinion: time(pick(cost).median()),
            pi: time(pick(&theirs).median()),
            ratio: format!("{} less", times(ratio)),
            target: if met {
                "≥ 10×".into()
            } else {
                String::new()
            },
            met: at_least(ratio, 10.0).filter(|_| met),
        });
    };
    compare(": wall time", |cost| &cost.wall, &ours, true);
    compare(": processor time", |cost| &cost.processor, &ours, true);
    compare(" never merged: wall time", |cost| &cost.wall, &apart, false);
    compare(
        " never merged: processor time",
        |cost| &cost.processor,
        &apart,
        false,
    );
    against_plain(bench, &deltas, &apart, &plain);
    bench.table.add(Row {
        what: format!("{deltas}: bytes on the wire ÷ answer"),
        pinion: format!(
            "{:.0}; never merged {:.0}",
            ours.swelling.median(),
            apart.swelling.median()
        ),
        pi: if theirs.swelling.median().is_nan() {
            String::new()
        } else {
            format!("{:.0}", theirs.swelling.median())
        },
        ratio: format!("{} updates", thousands(ours.updates.median() as usize)),
        ..Row::default()
    });
    Ok(())
}

fn against_plain(bench: &mut Bench, deltas: &str, apart: &Cost, plain: &Cost) {
    let ratio = apart.wall.median() / plain.wall.median();
    bench.table.add(Row {
        what: format!("{deltas} never merged, against a program that only writes the bytes"),
        pinion: time(apart.wall.median()),
        pi: String::new(),
        ratio: format!(
            "{} of {}; processor {} of {}",
            times(ratio),
            time(plain.wall.median()),
            time(apart.processor.median()),
            time(plain.processor.median())
        ),
        target: "≤ 2×".into(),
        met: Some(ratio <= 2.0),
    });
}

fn long(bench: &mut Bench) -> Fallible<()> {
    let expected = bench.play_deltas(LONG)?;
    let [mut ours, mut apart, mut plain]: [Cost; 3] = Default::default();
    let pinion = bench.agents.pinion.clone();
    let never = pinion.with("--no-coalesce");
    for _ in 0..bench.rounds.reference {
        add(&mut ours, bench, &pinion, &expected)?;
        let lengths = add(&mut apart, bench, &never, &expected)?;
        write_plainly(&mut plain, bench, &lengths)?;
    }
    let theirs = match &bench.agents.pi {
        None => String::new(),
        Some(pi) => match stream(pi, &bench.home()?, &expected, bench.rounds.give_up)? {
            Outcome::Complete(run) => time(run.wall.as_secs_f64()),
            Outcome::Not(what) => what,
        },
    };
    let deltas = format!("{} deltas", thousands(LONG));
    bench.table.add(Row {
        what: format!("{deltas}: completed, wall time"),
        pinion: time(ours.wall.median()),
        pi: theirs,
        ratio: format!(
            "{} updates; processor {}, peak {}",
            thousands(ours.updates.median() as usize),
            time(ours.processor.median()),
            size(ours.peak.median())
        ),
        target: "completed".into(),
        met: Some(true),
    });
    against_plain(bench, &deltas, &apart, &plain);
    Ok(())
}

/// The same with the built-in model, without a network and another process.
fn built_in(bench: &mut Bench) -> Fallible<()> {
    const SIZE: usize = 11;
    let pinion = bench.agents.pinion.with("--model");
    let pinion = pinion.with("offline/scenario:deltas.json");
    let expected: String = (1..=LONG)
        .map(|number| format!("{number:.<width$} ", width = SIZE - 1))
        .collect();
    let [mut wall, mut processor] = [const { Samples::new() }; 2];
    for _ in 0..bench.rounds.ours {
        let home = bench.home()?;
        let script = json!([{"deltas": LONG, "size": SIZE}]);
        fs::write(home.work().join("deltas.json"), script.to_string())?;
        match stream(&pinion, &home, &expected, Duration::from_secs(60))? {
            Outcome::Not(what) => return Err(what.into()),
            Outcome::Complete(run) => {
                wall.add_time(run.wall);
                processor.add_time(run.processor);
            }
        }
    }
    bench.table.add(Row {
        what: format!(
            "{} deltas of the built-in model: wall time",
            thousands(LONG)
        ),
        pinion: time(wall.median()),
        ratio: format!("processor {}", time(processor.median())),
        ..Row::default()
    });
    Ok(())
}

fn watched(bench: &mut Bench) -> Fallible<()> {
    let expected = bench.play_deltas(WATCHED)?;
    let [mut ours, mut apart, mut theirs]: [Cost; 3] = Default::default();
    let pinion = bench.agents.pinion.clone();
    let never = pinion.with("--no-coalesce");
    for _ in 0..bench.rounds.reference {
        add(&mut ours, bench, &pinion, &expected)?;
        add(&mut apart, bench, &never, &expected)?;
        if let Some(pi) = bench.agents.pi.clone() {
            add(&mut theirs, bench, &pi, &expected)?;
        }
    }
    let peak = ours.peak.largest().max(apart.peak.largest());
    bench.table.add(Row {
        what: format!("{} deltas: peak memory (RSS)", thousands(WATCHED)),
        pinion: format!(
            "{}; never merged {}",
            size(ours.peak.largest()),
            size(apart.peak.largest())
        ),
        pi: size(theirs.peak.median()),
        ratio: format!("{} less", times(theirs.peak.median() / peak)),
        target: "< 40 MB".into(),
        met: Some(peak < 40e6),
    });
    Ok(())
}
