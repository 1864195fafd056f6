//! The latency of a delta from the model server to the client.
//!
//! The server writes the time into each delta; the clock is the same for all processes. The transport alone is measured
//! too, with a program that copies the bytes; the difference is pinion's part.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, PROMPT, one_turn};
use crate::Fallible;
use crate::lines::{Line, delta_of};
use crate::os;
use crate::plain;
use crate::process::Process;
use crate::samples::{Samples, time, times};
use crate::table::Row;

const DELTAS: usize = 500;
const PACE_MS: u64 = 2;
/// The first deltas meet cold caches and a growing heap and are not counted.
const COLD: usize = 20;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let stamped = json!(["{now_ns} ", {"delay_ms": PACE_MS}]);
    let pieces: Vec<&Value> = (0..DELTAS)
        .flat_map(|_| stamped.as_array().into_iter().flatten())
        .collect();
    bench.model.play(&one_turn(&json!({"text": pieces})))?;
    let [mut ours, mut theirs, mut bare] = [const { Samples::new() }; 3];
    for round in 0..bench.rounds.ours {
        for agent in bench.agents.both() {
            let reference = agent.name != bench.agents.pinion.name;
            if reference && round >= bench.rounds.reference {
                continue;
            }
            let home = bench.home()?;
            let mut process = agent.start_ready(&home, &[])?;
            process.send(PROMPT)?;
            let samples = if reference { &mut theirs } else { &mut ours };
            listen(&mut process, samples, delta_of, |line| line.is("agent_end"))?;
            process.finish()?;
        }
        let port = bench.model.port.to_string();
        let mut process = Process::start(&mut plain::command(plain::RELAY, &port)?)?;
        process.send("go")?;
        listen(&mut process, &mut bare, text_delta, |line| {
            line.head == b"event: message_stop"
        })?;
        process.finish()?;
    }
    let added = (ours.median() - bare.median()).max(0.0);
    bench.table.add(Row {
        what: format!("a delta's way from the model to the client, one each {PACE_MS} ms (median)"),
        pinion: time(ours.median()),
        pi: time(theirs.median()),
        ratio: format!(
            "{} faster; bare bytes {}, so {} added; 99 of 100 below {}",
            times(theirs.median() / ours.median()),
            time(bare.median()),
            time(added),
            time(ours.at(0.99))
        ),
        target: "< 200 µs added".into(),
        met: Some(added < 200e-6),
    });
    Ok(())
}

/// Returns the text in a server-sent event.
fn text_delta(event: &[u8]) -> Option<&[u8]> {
    let mark = br#""text":""#;
    let start = event.windows(mark.len()).position(|part| part == mark)? + mark.len();
    let end = os::find(&event[start..], b'"')?;
    Some(&event[start..start + end])
}

fn listen(
    process: &mut Process,
    samples: &mut Samples,
    text: impl Fn(&[u8]) -> Option<&[u8]>,
    ended: impl Fn(&Line<'_>) -> bool,
) -> Fallible<()> {
    let mut seen = 0;
    process.read_until(|line| {
        let now = os::monotonic();
        // For merged deltas the oldest counts.
        let stamp = text(line.head).and_then(|text| text.split(|byte| *byte == b' ').next());
        let stamp = stamp.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        if let Some(stamp) = stamp {
            seen += 1;
            if seen > COLD {
                samples.add_time(Duration::from_nanos(now.saturating_sub(stamp)));
            }
        }
        ended(line)
    })?;
    if seen < DELTAS / 2 {
        return Err(format!("only {seen} of {DELTAS} deltas carried a time").into());
    }
    Ok(())
}
