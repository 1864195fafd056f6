//! A session with an MCP server, and a model that makes given calls.

use std::time::Duration;

use pinion_testkit::{Exit, Process, Stage, mcp};
use serde_json::{Value, json};

/// Longer than anything here takes.
pub const HANG: Duration = Duration::from_secs(30);

/// A client of a session in the modern dialect.
pub struct Client {
    pub stage: Stage,
    pub process: Process,
}

/// A call of the model.
pub fn call(tool: &str, arguments: Value) -> Value {
    json!({"steps": [{"tool": tool, "args": arguments, "id": "c"}]})
}

/// A call of `codemode`.
pub fn script(code: &str) -> Value {
    call("codemode", json!({"code": code}))
}

/// Returns a stage whose model makes these calls, one per turn, with the servers of `servers`; `"lab"` as an entry stands
/// for the test server.
pub fn stage(turns: &[Value], servers: Value) -> Stage {
    stage_with(turns, servers, json!({}))
}

pub fn stage_with(turns: &[Value], servers: Value, settings: Value) -> Stage {
    let mut turns = turns.to_vec();
    turns.push(json!({"steps": ["done"]}));
    let scenario = json!({ "turns": turns });
    let stage = Stage::with_settings(env!("CARGO_BIN_EXE_pinion"), scenario, settings);
    let mut entries = servers;
    for entry in entries.as_object_mut().unwrap().values_mut() {
        let mode = entry["mode"].take();
        let is_program = entry.get("url").is_none();
        let mut full = match mode.as_str() {
            Some(mode) => mcp::entry(&stage.sandbox.agent(), mode),
            None if is_program => mcp::entry(&stage.sandbox.agent(), ""),
            None => json!({}),
        };
        let members = entry.as_object().unwrap().clone();
        for (name, value) in members.into_iter().filter(|(name, _)| name != "mode") {
            full[name] = value;
        }
        *entry = full;
    }
    let files = json!({"server.py": mcp::SERVER, "mcp.json": {"mcpServers": entries}});
    stage.sandbox.add_agent_files(&files);
    stage
}

impl Client {
    pub fn start(stage: Stage, flags: &[&str]) -> Self {
        let flags: Vec<&str> = ["--rpc-dialect", "modern"]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        let process = stage.start(&flags);
        Self { stage, process }
    }

    /// Sends a prompt and returns the lines up to the end of the run.
    pub fn run(&mut self) -> Vec<Value> {
        let from = self.prompt();
        self.settled(from)
    }

    pub fn prompt(&mut self) -> usize {
        let from = self.process.line_count();
        let answer = self.process.ask(json!({"type": "prompt", "message": "go"}));
        assert_eq!(answer["success"], true, "{answer}");
        from
    }

    pub fn settled(&mut self, from: usize) -> Vec<Value> {
        let settled = |line: &Value| line["type"] == "agent_settled";
        let end = self.process.find(from, 1, HANG, settled);
        let lines = self.process.lines();
        let lines: Vec<Value> = lines
            .into_iter()
            .skip(from)
            .map(|line| line.value)
            .collect();
        assert!(end.is_some(), "{lines:#?}\n{}", self.process.stderr());
        lines
    }

    /// Waits for a line that fits.
    pub fn wait(&self, from: usize, fits: impl FnMut(&Value) -> bool) -> Value {
        let found = self.process.find(from, 1, HANG, fits);
        let line = found.and_then(|at| self.process.line(at));
        line.unwrap_or_else(|| {
            let lines = self.process.lines();
            let lines: Vec<_> = lines.iter().map(|line| line.value.to_string()).collect();
            panic!("{}\n{}", lines.join("\n"), self.process.stderr())
        })
        .value
    }

    pub fn finish(mut self) {
        self.process.close_stdin();
        assert_eq!(self.process.wait(HANG), Some(Exit::Code(0)));
    }
}

/// Returns the results of the calls of the model.
pub fn results(lines: &[Value]) -> Vec<Value> {
    let ends = lines.iter().filter(|line| line["type"] == "message_end");
    ends.map(|line| line["message"].clone())
        .filter(|message| message["role"] == "toolResult")
        .collect()
}

/// Returns the text of a result.
pub fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Returns the names of the tools in a request to the model.
pub fn declared(request: &Value) -> Vec<String> {
    let tools = request["body"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}
