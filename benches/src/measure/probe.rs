//! A client that requests the state repeatedly while a long answer streams.

use std::time::{Duration, Instant};

use super::{Bench, PROMPT, Received, thousands};
use crate::Fallible;
use crate::agent::Agent;
use crate::lines::Pumped;
use crate::samples::{Samples, time};
use crate::table::Row;

const DELTAS: usize = 20_000;
/// The reference agent does not finish the long answer.
const REFERENCE_DELTAS: usize = 4000;
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
const RUN_TIMEOUT: Duration = Duration::from_secs(90);

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let pinion = bench.agents.pinion.clone();
    let never = pinion.with("--no-coalesce");
    let [mut ours, mut apart, mut theirs] = [const { Samples::new() }; 3];
    for _ in 0..bench.rounds.reference {
        probe(bench, &pinion, DELTAS, &mut ours)?;
        probe(bench, &never, DELTAS, &mut apart)?;
    }
    if let Some(pi) = bench.agents.pi.clone() {
        probe(bench, &pi, REFERENCE_DELTAS, &mut theirs)?;
    }
    let deltas = thousands(DELTAS);
    bench.table.add(Row {
        what: format!("`get_state` while {deltas} deltas stream (median; slowest)"),
        pinion: both(&ours),
        pi: bench.agents.pi.as_ref().map_or(String::new(), |_| {
            let deltas = thousands(REFERENCE_DELTAS);
            format!("{} (at {deltas} deltas)", both(&theirs))
        }),
        ratio: format!("never merged {}", both(&apart)),
        target: "< 5 ms".into(),
        met: Some(ours.median() < 0.005 && apart.median() < 0.005),
    });
    Ok(())
}

fn both(samples: &Samples) -> String {
    format!("{}; {}", time(samples.median()), time(samples.largest()))
}

fn probe(bench: &Bench, agent: &Agent, deltas: usize, samples: &mut Samples) -> Fallible<()> {
    let expected = bench.play_deltas(deltas)?;
    let home = bench.home()?;
    let mut process = agent.start_ready(&home, &[])?;
    let mut heard = Received::default();
    let mut asked: Option<(String, Instant)> = None;
    let mut next = 0;
    let begin = Instant::now();
    process.send(PROMPT)?;
    while !heard.ended {
        if asked.is_none() && begin.elapsed() >= PROBE_INTERVAL * next {
            let id = format!("p{next}");
            process.send(&format!(r#"{{"id":"{id}","type":"get_state"}}"#))?;
            asked = Some((id, Instant::now()));
            next = (begin.elapsed().as_millis() / PROBE_INTERVAL.as_millis()) as u32 + 1;
        }
        let pumped = process.lines.pump(PROBE_INTERVAL, &mut |line| {
            if let Some((_, since)) = asked.take_if(|(id, _)| line.answers(id)) {
                samples.add_time(since.elapsed());
            }
            heard.record(line);
        })?;
        if pumped == Pumped::Closed || begin.elapsed() > RUN_TIMEOUT {
            return Err(format!("{}: the stream did not come to its end", agent.name).into());
        }
    }
    process.finish()?;
    if !heard.complete(&expected) {
        return Err(format!("{}: the text is not what was sent", agent.name).into());
    }
    Ok(())
}
