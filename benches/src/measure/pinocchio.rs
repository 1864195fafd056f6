//! The Pinocchio front: a command from its start to `done`, and the events per second that it sends and stores.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{Bench, thousands};
use crate::Fallible;
use crate::home::Home;
use crate::process::Process;
use crate::samples::{Samples, time};
use crate::table::Row;

const COMMAND: &str = "name: say\nflags:\n  - name: what\n    type: string\n    default: hello\nprompt: \"{{ .what }}\"\n";
/// Deltas of one run, and their size in bytes.
const DELTAS: usize = 100_000;
const SIZE: usize = 12;

pub fn run(bench: &mut Bench) -> Fallible<()> {
    one_shot(bench)?;
    let memory = &["--timeline-backend", "memory"];
    events(bench, memory, "sent, timeline in memory", 100_000.0)?;
    let database = &["--timeline-db", "timeline.db"];
    events(bench, database, "sent and stored in SQLite", 20_000.0)
}

fn one_shot(bench: &mut Bench) -> Fallible<()> {
    let mut samples = Samples::new();
    for _ in 0..bench.rounds.ours * 4 {
        let home = home(bench)?;
        let mut process = start(bench, &home, &["--rpc"])?;
        process.read_until(|line| holds(line.head, b"\"done\":{"))?;
        samples.add_time(process.started.elapsed());
        process.finish()?;
    }
    bench.table.add(Row {
        what: "`run-command --rpc` with the built-in model: start → `done`".into(),
        pinion: time(samples.median()),
        target: "< 25 ms".into(),
        met: Some(samples.median() < 0.025),
        ..Row::default()
    });
    Ok(())
}

/// Measures events per second of processor time, from the engine to the pipe.
fn events(bench: &mut Bench, flags: &[&str], what: &str, wanted: f64) -> Fallible<()> {
    let [mut rates, mut walls] = [const { Samples::new() }; 2];
    let mut count = 0;
    for _ in 0..bench.rounds.ours {
        let home = home(bench)?;
        let asked = [
            &["--stdin-rpc", "--patch-mode", "append", "--no-coalesce"],
            flags,
        ]
        .concat();
        let mut process = start(bench, &home, &asked)?;
        process.read_until(|line| holds(line.head, b"\"hello\":{"))?;
        let before = process.processor_time();
        let script = json!([{"deltas": DELTAS, "size": SIZE}]);
        let prompt = format!("offline: {script}");
        let request = json!({"requestId": "go", "submit": {"prompt": prompt}});
        let began = std::time::Instant::now();
        process.send(&request.to_string())?;
        count = 0;
        process.read_until(|line| {
            count += usize::from(holds(line.head, b"\"uiEvent\":{"));
            holds(line.head, b"\"done\":{")
        })?;
        let wall = began.elapsed();
        let taken = process.processor_time().saturating_sub(before);
        rates.add(rate(count, taken));
        walls.add(rate(count, wall));
        process.finish()?;
    }
    bench.table.add(Row {
        what: format!(
            "{} deltas of {SIZE} bytes through the Pinocchio front, {what}: events a second",
            thousands(DELTAS)
        ),
        pinion: format!("{:.0} a second of processor time", rates.median()),
        ratio: format!(
            "{:.0} a second of wall time; {count} events",
            walls.median()
        ),
        target: format!("≥ {}", thousands(wanted as usize)),
        met: Some(rates.median() >= wanted),
        ..Row::default()
    });
    Ok(())
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

fn home(bench: &Bench) -> Fallible<Home> {
    let home = bench.home()?;
    fs::write(home.work().join("say.yaml"), COMMAND)?;
    Ok(home)
}

fn start(bench: &Bench, home: &Home, flags: &[&str]) -> Fallible<Process> {
    let mut command = Command::new(bench.agents.pinion.program()?);
    command.args(["run-command", "say.yaml", "--ai-engine", "offline/demo"]);
    command.args(flags);
    home.apply_to(&mut command);
    Process::start(&mut command)
}

/// Reports whether a line begins with a frame of this kind, after its envelope.
fn holds(line: &[u8], frame: &[u8]) -> bool {
    let envelope = &line[..line.len().min(200)];
    envelope.windows(frame.len()).any(|window| window == frame)
}
