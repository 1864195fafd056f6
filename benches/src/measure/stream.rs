//! A long answer in many deltas, sent as fast as the agent takes them: time, processor time, bytes
//! and peak memory, against the reference agent and against a program that only writes the bytes.

use std::time::{Duration, Instant};

use super::{Bench, Heard, PROMPT, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::home::Home;
use crate::lines::Pumped;
use crate::plain;
use crate::process::Process;
use crate::samples::{Samples, at_least, size, time, times};
use crate::table::Row;

/// Deltas of the runs that are timed.
const TIMED: [usize; 2] = [2000, 8000];
/// Deltas of the run whose memory is watched.
const WATCHED: usize = 4000;
/// Deltas of the run the reference agent is known not to finish.
const LONG: usize = 20_000;

/// What one agent needed.
#[derive(Debug, Default)]
struct Cost {
    wall: Samples,
    processor: Samples,
    peak: Samples,
    /// Bytes written, per byte of the answer.
    swelling: Samples,
    updates: Samples,
}

/// One run that went through.
struct Streamed {
    wall: Duration,
    processor: Duration,
    peak: u64,
    bytes: u64,
    heard: Heard,
}

/// One run.
enum Outcome {
    Complete(Box<Streamed>),
    /// What happened instead.
    Not(String),
}

pub fn run(bench: &mut Bench) -> Fallible<()> {
    for count in TIMED {
        timed(bench, count)?;
    }
    long(bench)?;
    watched(bench)
}

/// Streams once; gives up after `limit`.
fn stream(agent: &Agent, home: &Home, expected: &str, limit: Duration) -> Fallible<Outcome> {
    let mut process = agent.start_ready(home, &[])?;
    let mut heard = Heard::default();
    let processor = process.processor_time();
    let bytes = process.lines.bytes;
    let begin = Instant::now();
    process.send(PROMPT)?;
    while !heard.ended {
        let left = limit.saturating_sub(begin.elapsed());
        let pumped = process.lines.pump(left, &mut |line| heard.hear(line))?;
        let what = match pumped {
            Pumped::Bytes if !left.is_zero() => continue,
            Pumped::Closed => "ended by itself".to_owned(),
            _ => format!("not finished after {}", time(limit.as_secs_f64())),
        };
        let done = format!("{} of the updates came", thousands(heard.updates));
        let memory = size(process.peak_memory() as f64);
        return Ok(Outcome::Not(format!("{what}; {done}, peak {memory}")));
    }
    let wall = begin.elapsed();
    let processor = process.processor_time().saturating_sub(processor);
    let peak = process.peak_memory();
    let bytes = process.lines.bytes - bytes;
    process.finish()?;
    if !heard.complete(expected) {
        return Ok(Outcome::Not(
            "the text that came is not the text that was sent".into(),
        ));
    }
    Ok(Outcome::Complete(Box::new(Streamed {
        wall,
        processor,
        peak,
        bytes,
        heard,
    })))
}

/// Streams and adds up; gives the lengths of the lines.
fn add(cost: &mut Cost, bench: &Bench, agent: &Agent, expected: &str) -> Fallible<Vec<u32>> {
    let limit = Duration::from_secs(120);
    match stream(agent, &bench.home()?, expected, limit)? {
        Outcome::Not(what) => Err(format!("{}: {what}", agent.name).into()),
        Outcome::Complete(run) => {
            cost.wall.add_time(run.wall);
            cost.processor.add_time(run.processor);
            cost.peak.add(run.peak as f64);
            cost.swelling.add(run.bytes as f64 / expected.len() as f64);
            cost.updates.add(run.heard.updates as f64);
            Ok(run.heard.lengths)
        }
    }
}

/// Writes lines of these lengths and does nothing else.
fn write_plainly(cost: &mut Cost, bench: &Bench, lengths: &[u32]) -> Fallible<()> {
    let home = bench.home()?;
    let file = home.root().join("lengths");
    plain::save_lengths(&file, lengths)?;
    let mut process = Process::start(&mut plain::command(plain::WRITE, &file.to_string_lossy())?)?;
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    let begin = Instant::now();
    process.send("go")?;
    while process.lines.bytes < total {
        if process.lines.pump(Duration::from_secs(30), &mut |_| {})? != Pumped::Bytes {
            return Err("the plain program stopped".into());
        }
    }
    cost.wall.add_time(begin.elapsed());
    cost.processor.add_time(process.processor_time());
    process.finish()
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
