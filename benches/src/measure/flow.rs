//! Streams one long answer and measures time, work, bytes and memory. The callers compare the results with the targets.

use std::time::{Duration, Instant};

use super::{Bench, PROMPT, Received, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::home::Home;
use crate::lines::Pumped;
use crate::plain;
use crate::process::Process;
use crate::samples::{Samples, size, time};

/// Interval between two readings of the memory.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The measurements of one agent.
#[derive(Debug, Default)]
pub struct Cost {
    /// From the prompt to the last line.
    pub wall: Samples,
    /// The agent's processor time in between.
    pub processor: Samples,
    /// Its highest resident memory.
    pub peak: Samples,
    /// Bytes written, per byte of the answer.
    pub swelling: Samples,
    /// Lines that repeat the partial answer.
    pub updates: Samples,
}

impl Cost {
    /// Adds the measurements of one run.
    pub fn add(&mut self, run: &Streamed, expected: &str) {
        self.wall.add_time(run.wall);
        self.processor.add_time(run.processor);
        self.peak.add(run.peak as f64);
        self.swelling.add(run.bytes as f64 / expected.len() as f64);
        self.updates.add(run.heard.updates as f64);
    }
}

/// One successful run.
#[derive(Debug)]
pub struct Streamed {
    pub wall: Duration,
    pub processor: Duration,
    peak: u64,
    bytes: u64,
    heard: Received,
}

/// The result of one run.
#[derive(Debug)]
pub enum Outcome {
    /// The whole text arrived.
    Complete(Box<Streamed>),
    /// The run failed for this reason.
    Not(String),
}

/// Streams once; fails after `limit`.
pub fn stream(agent: &Agent, home: &Home, expected: &str, limit: Duration) -> Fallible<Outcome> {
    let mut process = agent.start_ready(home, &[])?;
    let mut heard = Received::default();
    let processor = process.processor_time();
    let bytes = process.lines.bytes;
    let begin = Instant::now();
    // Read from time to time, because a process that has exited has no memory to read.
    let mut peak = 0;
    process.send(PROMPT)?;
    while !heard.ended {
        let elapsed = begin.elapsed();
        let left = limit.saturating_sub(elapsed);
        let wait = left.min(POLL_INTERVAL);
        let pumped = process.lines.pump(wait, &mut |line| heard.record(line))?;
        if begin.elapsed().as_millis() / POLL_INTERVAL.as_millis()
            > elapsed.as_millis() / POLL_INTERVAL.as_millis()
        {
            peak = process.peak_memory().max(peak);
        }
        let what = match pumped {
            Pumped::Bytes | Pumped::Nothing if !left.is_zero() => continue,
            Pumped::Closed => process.ending(),
            _ => format!("not finished after {}", time(limit.as_secs_f64())),
        };
        let done = format!("{} updates came", thousands(heard.updates));
        return Ok(Outcome::Not(format!(
            "{what}; {done}, peak {}",
            size(peak as f64)
        )));
    }
    let wall = begin.elapsed();
    let processor = process.processor_time().saturating_sub(processor);
    let peak = process.peak_memory().max(peak);
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

/// Streams, adds the measurements, and returns the lengths of the lines.
pub fn add(cost: &mut Cost, bench: &Bench, agent: &Agent, expected: &str) -> Fallible<Vec<u32>> {
    let limit = Duration::from_secs(120);
    match stream(agent, &bench.home()?, expected, limit)? {
        Outcome::Not(what) => Err(format!("{}: {what}", agent.name).into()),
        Outcome::Complete(run) => {
            cost.add(&run, expected);
            Ok(run.heard.lengths)
        }
    }
}

/// Writes lines of these lengths and does nothing else.
pub fn write_plainly(cost: &mut Cost, bench: &Bench, lengths: &[u32]) -> Fallible<()> {
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
