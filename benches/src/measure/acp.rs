//! An editor's start: `initialize` and `session/new`, the first piece of an answer, and memory; beside other agents that
//! are installed from npm.
//!
//! `PINION_BENCH_ACP` names a directory in which some of the packages of [`OTHERS`] are installed. They get the same
//! model server through their own variables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Bench;
use crate::Fallible;
use crate::home::Home;
use crate::process::Process;
use crate::samples::{Samples, size, time};
use crate::table::Row;

/// The directory of the other agents.
const VARIABLE: &str = "PINION_BENCH_ACP";
/// Programs of packages on npm, with their arguments.
const OTHERS: [(&str, &[&str]); 4] = [
    ("claude-agent-acp", &[]),
    ("codex-acp", &[]),
    ("opencode", &["acp"]),
    ("pi-acp", &[]),
];
/// Time that an agent gets to settle before its memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

/// The samples of one agent.
struct Measured {
    name: String,
    start: Samples,
    chunk: Samples,
    memory: Samples,
}

pub fn run(bench: &mut Bench) -> Fallible<()> {
    bench
        .model
        .play(&json!({"turns": [{"steps": ["Hello."]}], "on_exhausted": "repeat_last"}))?;
    let pinion = bench.agents.pinion.program()?.clone();
    let mut ours = Measured::new("pinion");
    for _ in 0..bench.rounds.ours {
        ours.measure(&bench.home()?, &pinion, &["acp", "--model", "mock/mock-1"])?;
    }
    let mut others = Vec::new();
    if let Some(directory) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        for (name, arguments) in OTHERS {
            let program = directory.join("node_modules/.bin").join(name);
            if program.exists() {
                let mut measured = Measured::new(name);
                // An agent that cannot be used without its own service has no figures.
                if measured
                    .measure(&bench.home()?, &program, arguments)
                    .is_ok()
                {
                    others.push(measured);
                }
            }
        }
    }
    let beside = |figure: fn(&Measured) -> String| {
        let shown = others
            .iter()
            .map(|it| format!("{} {}", it.name, figure(it)));
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() {
            "–".to_owned()
        } else {
            shown.join(", ")
        }
    };
    let row = |what: &str, pinion: String, ratio: String, target: &str, met: Option<bool>| Row {
        what: what.into(),
        pinion,
        pi: "–".into(),
        ratio,
        target: target.into(),
        met,
    };
    bench.table.add(row(
        "acp: spawn → `initialize` and `session/new` answered",
        time(ours.start.median()),
        beside(|it| time(it.start.median())),
        "< 30 ms",
        Some(ours.start.median() < 0.030),
    ));
    bench.table.add(row(
        "acp: `session/prompt` → first piece of the answer",
        time(ours.chunk.median()),
        beside(|it| time(it.chunk.median())),
        "–",
        None,
    ));
    bench.table.add(row(
        "acp: memory with one session (PSS)",
        size(ours.memory.median()),
        beside(|it| size(it.memory.median())),
        "< 20 MB",
        Some(ours.memory.median() < 20e6),
    ));
    Ok(())
}

impl Measured {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start: Samples::new(),
            chunk: Samples::new(),
            memory: Samples::new(),
        }
    }

    fn measure(&mut self, home: &Home, program: &Path, arguments: &[&str]) -> Fallible<()> {
        let mut command = Command::new(program);
        command.args(arguments);
        home.apply_to(&mut command);
        let mut process = Process::start(&mut command)?;
        let cwd = home.work();
        process.send(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": 1, "clientCapabilities": {}}})
            .to_string(),
        )?;
        process.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "session/new",
            "params": {"cwd": cwd, "mcpServers": []}})
            .to_string(),
        )?;
        let mut session = None;
        process.read_until(|line| {
            let line: serde_json::Value = serde_json::from_slice(line.head).unwrap_or_default();
            let is_answer = line["id"] == 1;
            if is_answer {
                session = line["result"]["sessionId"].as_str().map(str::to_owned);
            }
            is_answer
        })?;
        let session = session.ok_or("the agent opened no session")?;
        self.start.add_time(process.started.elapsed());
        thread::sleep(SETTLE);
        self.memory.add(process.proportional_memory() as f64);
        let asked = Instant::now();
        process.send(
            &json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params":
            {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}})
            .to_string(),
        )?;
        process.read_until(|line| contains(line.head, b"agent_message_chunk"))?;
        self.chunk.add_time(asked.elapsed());
        process.finish()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
