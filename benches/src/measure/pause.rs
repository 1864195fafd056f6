//! A client that stops reading in the middle of an answer, and resumes.

use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, PROMPT, Received, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::lines::Pumped;
use crate::samples::size;
use crate::table::Row;

const DELTAS: usize = 8000;
/// The client stops reading after one part in this many of the answer.
const BEFORE: usize = 8;
const PAUSE: Duration = Duration::from_secs(12);
/// Bytes of growth during the pause that still count as none.
const FLAT: f64 = 4e6;
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// Resident memory: when the client stopped, during the pause, and at its peak.
struct Memory {
    stopped: f64,
    paused: f64,
    peak: f64,
}

impl Memory {
    fn words(&self) -> String {
        let Self {
            stopped,
            paused,
            peak,
        } = self;
        format!(
            "{} → {}, peak {}",
            size(*stopped),
            size(*paused),
            size(*peak)
        )
    }
}

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let pinion = bench.agents.pinion.clone();
    let ours = pause(bench, &pinion)?;
    let apart = pause(bench, &pinion.with("--no-coalesce"))?;
    let theirs = match bench.agents.pi.clone() {
        Some(pi) => pause(bench, &pi).map_or_else(|error| error.to_string(), |m| m.words()),
        None => String::new(),
    };
    bench.table.add(Row {
        what: format!(
            "client that stops reading for {} s within {} deltas: stream complete, memory (RSS)",
            PAUSE.as_secs(),
            thousands(DELTAS)
        ),
        pinion: ours.words(),
        pi: theirs,
        ratio: format!("never merged {}", apart.words()),
        target: "complete, flat".into(),
        met: Some(
            [&ours, &apart]
                .iter()
                .all(|memory| memory.paused - memory.stopped < FLAT),
        ),
    });
    Ok(())
}

/// Streams with a pause; fails if the stream is not complete.
fn pause(bench: &Bench, agent: &Agent) -> Fallible<Memory> {
    let expected = bench.play_deltas(DELTAS)?;
    let home = bench.home()?;
    let mut process = agent.start_ready(&home, &[])?;
    let mut heard = Received::default();
    process.send(PROMPT)?;
    let begin = Instant::now();
    let mut memory = None;
    while !heard.ended {
        if memory.is_none() && heard.text.len() >= expected.len() / BEFORE {
            let stopped = process.memory() as f64;
            thread::sleep(PAUSE);
            memory = Some(Memory {
                stopped,
                paused: process.memory() as f64,
                peak: 0.0,
            });
        }
        let pumped = process
            .lines
            .pump(Duration::from_secs(30), &mut |line| heard.record(line))?;
        if pumped != Pumped::Bytes || begin.elapsed() > RUN_TIMEOUT {
            return Err(format!("{}: the stream did not come to its end", agent.name).into());
        }
    }
    let mut memory = memory.ok_or("the stream was over before the client could pause")?;
    memory.peak = process.peak_memory() as f64;
    process.finish()?;
    if !heard.complete(&expected) {
        return Err(format!("{}: the text is not what was sent", agent.name).into());
    }
    Ok(memory)
}
