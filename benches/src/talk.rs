//! The output of a fleet's children in the measurements, and the expected form of the stored output.

use std::env;
use std::io::{self, Write};

use crate::Fallible;

/// Pieces of a long answer, each with the usage so far, in the form of pinion's modern dialect.
const UPDATES: usize = 3000;
const CHUNK: usize = 64 * 1024;

/// Returns one turn of an agent: an answer in pieces, then in full.
fn turn() -> Vec<u8> {
    let mut turn = Vec::new();
    let mut answer = String::new();
    for number in 0..UPDATES {
        let delta = format!("token {number} ");
        turn.extend_from_slice(
            format!(
                r#"{{"type":"message_update","usage":{{"input":120,"output":{number},"cacheRead":0,"cacheWrite":0,"totalTokens":{},"cost":{{"input":0.00036,"output":0.000015,"cacheRead":0,"cacheWrite":0,"total":0.000375}}}},"assistantMessageEvent":{{"type":"text_delta","contentIndex":0,"delta":"{delta}"}}}}"#,
                number + 120
            )
            .as_bytes(),
        );
        turn.push(b'\n');
        answer.push_str(&delta);
    }
    turn.extend_from_slice(
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{answer}"}}],"usage":{{"input":120,"output":{UPDATES},"cacheRead":0,"cacheWrite":0,"cost":{{"total":0}}}},"stopReason":"toolUse"}}}}"#
        )
        .as_bytes(),
    );
    turn.push(b'\n');
    turn
}

/// Prints turns of at least `bytes` bytes, and the end of the run.
pub fn talk(bytes: usize) -> Fallible<()> {
    let turn = turn();
    let mut out = io::stdout().lock();
    for _ in 0..bytes.div_ceil(turn.len()) {
        for piece in turn.chunks(CHUNK) {
            out.write_all(piece)?;
        }
    }
    Ok(out.write_all(SETTLED)?)
}

const SETTLED: &[u8] = b"{\"type\":\"agent_settled\",\"aborted\":false}\n";

/// Returns the number of lines and bytes that [`talk`] prints.
pub fn talked(bytes: usize) -> (u64, u64) {
    let length = turn().len();
    let turns = bytes.div_ceil(length) as u64;
    let lines = turns * (UPDATES as u64 + 1) + 1;
    (lines, turns * length as u64 + SETTLED.len() as u64)
}

/// Prints `BYTES` bytes, or `BYTES:FRONT` with a text in front of them, and never ends the line.
pub fn flood(argument: &str) -> Fallible<()> {
    let (bytes, front) = argument.split_once(':').unwrap_or((argument, ""));
    let mut left: usize = bytes.parse()?;
    let piece = vec![b'x'; CHUNK];
    let mut out = io::stdout().lock();
    out.write_all(front.as_bytes())?;
    while left > 0 {
        let now = left.min(CHUNK);
        out.write_all(&piece[..now])?;
        left -= now;
    }
    Ok(())
}

/// Prints this many lines, as the child of a fleet whose name is in the environment.
pub fn count(lines: usize) -> Fallible<()> {
    let name = env::var("PINION_FLEET_CHILD").unwrap_or_default();
    let mut out = io::stdout().lock();
    // One write for each line, like an agent.
    for line in counted(&name, lines).split_inclusive(|byte| *byte == b'\n') {
        out.write_all(line)?;
    }
    Ok(())
}

/// Returns the output of a child of this name.
pub fn counted(name: &str, lines: usize) -> Vec<u8> {
    let mut text = String::new();
    for number in 1..lines {
        text.push_str(&format!(
            "{{\"type\":\"tick\",\"child\":\"{name}\",\"number\":{number},\"text\":\"a line that is as long as lines of agents often are, give or take\"}}\n"
        ));
    }
    text.push_str("{\"type\":\"done\"}\n");
    text.into_bytes()
}
