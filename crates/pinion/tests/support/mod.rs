//! Shared parts of the whole-program tests: a client that writes commands and reads lines, and the rules that every
//! stream of lines must follow. It starts the real binary and does not depend on its code.

#![allow(dead_code, reason = "every test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use pinion_testkit::{Exit, ModelServer, Process, Program, Sandbox};
use serde_json::{Value, json};

/// Longest duration of any step before it counts as hanging. Not a measure of speed.
pub const HANG: Duration = Duration::from_secs(30);

/// Returns the binary under test.
pub fn pinion() -> Program {
    Program::new(env!("CARGO_BIN_EXE_pinion"))
}

/// Returns arguments in the form that the runner takes.
pub fn args(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// Returns a prompt that scripts the answer of the built-in model.
pub fn script(script: &Value) -> String {
    format!("offline: {script}")
}

/// Returns a sandbox in which the built-in model is the only one.
pub fn offline_sandbox(settings: &Value) -> Sandbox {
    let mut all = json!({"defaultProvider": null, "defaultModel": null});
    for (name, value) in settings.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    let sandbox = Sandbox::with_settings(1, &all);
    sandbox.add_agent_files(&json!({"models.json": {"providers": {}}}));
    sandbox
}

/// A client of one process.
pub struct Client {
    pub process: Process,
    pub sandbox: Sandbox,
    asked: usize,
}

impl Client {
    /// Starts a client with the built-in model.
    pub fn offline() -> Self {
        Self::offline_with(&json!({}))
    }

    /// Starts a client with the built-in model and these settings.
    pub fn offline_with(settings: &Value) -> Self {
        let sandbox = offline_sandbox(settings);
        Self::start(sandbox, &["--mode", "rpc", "--model", "offline/demo"])
    }

    /// Starts a client with a scripted server and these settings.
    pub fn of(server: &ModelServer, settings: &Value) -> Self {
        Self::start(
            Sandbox::with_settings(server.port(), settings),
            &["--mode", "rpc"],
        )
    }

    /// Starts the binary in this sandbox.
    pub fn start(sandbox: Sandbox, arguments: &[&str]) -> Self {
        let process = pinion().start(&sandbox, &args(arguments));
        Self::around(process, sandbox)
    }

    /// Creates a client of a process that was started in some special way.
    pub fn around(process: Process, sandbox: Sandbox) -> Self {
        Self {
            process,
            sandbox,
            asked: 0,
        }
    }

    /// Ends this process and starts another in the same sandbox.
    pub fn restart(self, arguments: &[&str]) -> Self {
        let Self {
            process, sandbox, ..
        } = self;
        drop(process);
        Self::start(sandbox, arguments)
    }

    /// Sends a command under a new id and returns the id.
    pub fn send(&mut self, mut command: Value) -> String {
        self.asked += 1;
        let id = format!("c{}", self.asked);
        command["id"] = json!(id);
        self.process.send(&command);
        id
    }

    /// Sends a prompt, which must be accepted, and returns the position from which its lines come.
    pub fn prompt(&mut self, text: &str) -> usize {
        let from = self.process.line_count();
        let answer = self.process.ask(json!({"type": "prompt", "message": text}));
        assert_eq!(answer["success"], true, "{answer}");
        from
    }

    /// Sends a command and returns the data of its success.
    pub fn data(&mut self, command: &str) -> Value {
        let answer = self.process.ask(json!({"type": command}));
        assert_eq!(answer["success"], true, "{answer}");
        answer["data"].clone()
    }

    /// Waits for a line that fits and returns its position.
    pub fn wait_for(&self, from: usize, pattern: &Value) -> usize {
        let found = self.process.find(from, 1, HANG, |line| {
            pinion_testkit::transcript::fits(pattern, line)
        });
        found.unwrap_or_else(|| panic!("no line fits {pattern}; {}", self.report(from)))
    }

    /// Waits for the response to an id and returns its position.
    pub fn wait_answer(&self, id: &str) -> usize {
        self.wait_for(0, &json!({"type": "response", "id": id}))
    }

    /// Waits for the end of the run that begins after `from` and returns the messages it produced.
    pub fn wait_end(&self, from: usize) -> Vec<Value> {
        let at = self.wait_for(from, &json!({"type": "agent_end"}));
        let line = self.line(at);
        line["messages"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the line at a position.
    pub fn line(&self, at: usize) -> Value {
        self.process.line(at).expect("a line that was read").value
    }

    /// Returns all lines read so far.
    pub fn lines(&self) -> Vec<Value> {
        self.process
            .lines()
            .into_iter()
            .map(|line| line.value)
            .collect()
    }

    /// Returns the kinds of the lines from a position on: event types, `command:response` for responses.
    pub fn kinds(&self, from: usize) -> Vec<String> {
        self.lines().iter().skip(from).map(kind).collect()
    }

    /// Closes the input and waits for the exit and the last line.
    pub fn finish(&mut self) -> Exit {
        self.process.close_stdin();
        let exit = self.process.wait(HANG);
        self.process.drain(HANG);
        exit.unwrap_or_else(|| panic!("no exit after the input ended; {}", self.report(0)))
    }

    /// Returns the last lines from a position on, cut short, and standard error.
    pub fn report(&self, from: usize) -> String {
        let lines = self.lines();
        let tail = lines.iter().skip(from.max(lines.len().saturating_sub(40)));
        let tail: Vec<String> = tail.map(|line| shorten(&line.to_string())).collect();
        format!(
            "lines:\n{}\nstandard error:\n{}",
            tail.join("\n"),
            self.process.stderr()
        )
    }
}

/// Returns the kind of a line: its type, with the role for the start and end of a message, or `command:response`.
pub fn kind(line: &Value) -> String {
    let text = |name: &str| line[name].as_str().unwrap_or("?").to_owned();
    match line["type"].as_str() {
        Some("response") => format!("{}:response", text("command")),
        Some("message_start" | "message_end") => {
            format!(
                "{}:{}",
                text("type"),
                line["message"]["role"].as_str().unwrap_or("?")
            )
        }
        _ => text("type"),
    }
}

/// Shortens a text for a report.
pub fn shorten(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Returns the number of answers to each id, by the JSON of the id.
pub fn answers_by_id(lines: &[Value]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for line in lines.iter().filter(|line| line["type"] == "response") {
        let id = line
            .get("id")
            .map_or_else(|| "none".to_owned(), Value::to_string);
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// Checks that runs, turns, messages and tools begin and end in pairs and nest as they should, and that nothing of a
/// run happens outside one. Returns the number of runs.
pub fn check_runs(lines: &[Value]) -> Result<usize, String> {
    let mut runs = 0;
    let mut open: Vec<&str> = Vec::new();
    let mut tools: HashSet<String> = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        let fail = |what: &str| Err(format!("line {at}: {what}: {}", shorten(&line.to_string())));
        if line.get("__unparsed").is_some() {
            return fail("not JSON");
        }
        match line["type"].as_str().unwrap_or("") {
            "agent_start" if open.is_empty() => {
                runs += 1;
                open.push("agent");
            }
            "agent_start" => return fail("a run begins inside another"),
            "agent_end" if open == ["agent"] => open.clear(),
            "agent_end" => return fail("a run ends with something open"),
            "turn_start" if open == ["agent"] => open.push("turn"),
            "turn_end" if open == ["agent", "turn"] && tools.is_empty() => {
                open.pop();
            }
            "message_start" if open == ["agent", "turn"] => open.push("message"),
            "message_update" if open == ["agent", "turn", "message"] => {}
            "message_end" if open == ["agent", "turn", "message"] => {
                open.pop();
            }
            kind @ ("turn_start" | "turn_end" | "message_start" | "message_update"
            | "message_end") => return fail(&format!("{kind} where {open:?} is open")),
            "tool_execution_start" if open == ["agent", "turn"] => {
                tools.insert(line["toolCallId"].to_string());
            }
            "tool_execution_end" if tools.remove(&line["toolCallId"].to_string()) => {}
            "tool_execution_end" => return fail("a tool ends that did not begin"),
            "tool_execution_update" if tools.contains(&line["toolCallId"].to_string()) => {}
            "tool_execution_start" | "tool_execution_update" => return fail("tool outside a turn"),
            _ => {}
        }
    }
    if open.is_empty() {
        Ok(runs)
    } else {
        Err(format!("at the end, {open:?} is open"))
    }
}

/// Random numbers that a seed reproduces.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns a random element of the list.
    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }
}
