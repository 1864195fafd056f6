//! The cost of an answer on the wire in each dialect: bytes written, per byte of the final message.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Bench, PROMPT, thousands};
use crate::Fallible;
use crate::table::Row;

const COUNTS: [usize; 2] = [2000, 20_000];
/// Bytes of one delta.
const SIZE: usize = 12;
/// The limit for a dialect that sends only new text.
const LINEAR: f64 = 40.0;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    for count in COUNTS {
        for dialect in ["early", "classic", "modern"] {
            let ratio = |mode, merging| swelling(bench, count, dialect, mode, merging);
            let [rpc, json] = [ratio("rpc", true)?, ratio("json", true)?];
            let [rpc_apart, json_apart] = [ratio("rpc", false)?, ratio("json", false)?];
            let worst = [rpc, json, rpc_apart, json_apart]
                .into_iter()
                .fold(0.0, f64::max);
            let is_linear = dialect == "modern";
            bench.table.add(Row {
                what: format!(
                    "{} deltas of {SIZE} bytes, {dialect}: bytes on the wire ÷ final message",
                    thousands(count)
                ),
                pinion: format!("rpc {rpc:.1}; json {json:.1}"),
                ratio: format!("never merged: rpc {rpc_apart:.1}; json {json_apart:.1}"),
                target: if is_linear {
                    "< 40".into()
                } else {
                    String::new()
                },
                met: is_linear.then_some(worst < LINEAR),
                ..Row::default()
            });
        }
    }
    Ok(())
}

/// Returns the bytes written for one answer, per byte of the final message.
fn swelling(
    bench: &Bench,
    count: usize,
    dialect: &str,
    mode: &str,
    merging: bool,
) -> Fallible<f64> {
    let home = bench.home()?;
    let script = json!([{"deltas": count, "size": SIZE}]);
    fs::write(home.work().join("deltas.json"), script.to_string())?;
    let mut command = Command::new(bench.agents.pinion.program()?);
    command.args(["--mode", mode, "--rpc-dialect", dialect, "--no-session"]);
    command.args(["--model", "offline/scenario:deltas.json"]);
    if !merging {
        command.arg("--no-coalesce");
    }
    if mode == "json" {
        command.arg("Go");
    }
    home.apply_to(&mut command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    if mode == "rpc" {
        writeln!(input, "{PROMPT}")?;
    }
    // The end of input lets the run finish and the program exit.
    drop(input);
    let mut output = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no output")?);
    let (mut bytes, mut last) = (0, None);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        bytes += line.len();
        if line.starts_with(br#"{"type":"message_end""#) {
            last = Some(std::mem::take(&mut line));
        }
        line.clear();
    }
    if !child.wait()?.success() {
        return Err(format!("{dialect} in {mode} mode did not end well").into());
    }
    let last: Value = serde_json::from_slice(&last.ok_or("there was no answer")?)?;
    let message = &last["message"];
    if message["content"][0]["text"].as_str().map(str::len) != Some(count * SIZE) {
        return Err(format!("{dialect} in {mode} mode: the answer is not complete").into());
    }
    Ok(bytes as f64 / message.to_string().len() as f64)
}
