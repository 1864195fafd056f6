//! Ends of the connection, and input that is not as it should be.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sandbox: Sandbox,
    _model: ModelServer,
}

impl Agent {
    fn start(scenario: Value) -> Self {
        let model = ModelServer::start(scenario);
        let sandbox = Sandbox::new(model.port());
        let mut child = Command::new(env!("CARGO_BIN_EXE_pinion"))
            .args(["acp", "--model", "mock/mock-1"])
            .env_clear()
            .envs(sandbox.environment())
            .current_dir(sandbox.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self {
            input: child.stdin.take(),
            child,
            output,
            sandbox,
            _model: model,
        };
        agent.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1,
            "clientCapabilities": {"_meta": {"terminal_output": true}}}}));
        agent.answer(&json!(0));
        agent
    }

    fn raw(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.raw(message.to_string().as_bytes());
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Returns the response with this id.
    fn answer(&mut self, id: &Value) -> Value {
        loop {
            let line = self.next();
            if line.get("method").is_none() && line["id"] == *id {
                return line;
            }
        }
    }

    fn session(&mut self, id: u64) -> String {
        let cwd = self.sandbox.work();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/new",
            "params": {"cwd": cwd, "mcpServers": []}}));
        let answer = self.answer(&json!(id));
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, id: u64, session: &str, text: &str) {
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": text}]}}),
        );
    }

    /// Closes the input and returns the exit code with what standard error holds.
    fn end(mut self) -> (Option<i32>, String, Duration) {
        drop(self.input.take());
        let begun = Instant::now();
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        let mut errors = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        (status.code(), errors, begun.elapsed())
    }
}

fn ensure(holds: bool, words: impl Into<String>) -> Result<(), Failed> {
    if holds {
        Ok(())
    } else {
        Err(words.into().into())
    }
}

/// The client leaves while the model writes: the work stops, the session is saved, and the exit is orderly.
fn l12_the_end_of_input_stops_the_work() -> Result<(), Failed> {
    let turn = json!({"steps": [{"text": ["slow ", {"gate": "never"}, "done"]}]});
    let mut agent = Agent::start(json!({"turns": [turn]}));
    let session = agent.session(1);
    agent.prompt(2, &session, "write");
    while agent.next()["params"]["update"]["content"]["text"] != "slow " {}
    let sessions = agent.sandbox.agent().join("sessions");
    let (code, errors, _) = agent.end_keeping(&sessions, &session)?;
    ensure(code == Some(0), format!("exit code {code:?}"))?;
    ensure(errors.is_empty(), format!("standard error: {errors}"))
}

impl Agent {
    fn end_keeping(
        self,
        sessions: &std::path::Path,
        id: &str,
    ) -> Result<(Option<i32>, String, Duration), Failed> {
        let marker = self.sandbox.marker().to_owned();
        let files = |sessions: &std::path::Path| {
            let projects = std::fs::read_dir(sessions).unwrap().flatten();
            let files =
                projects.flat_map(|project| std::fs::read_dir(project.path()).unwrap().flatten());
            files
                .map(|file| file.path().display().to_string())
                .collect::<Vec<_>>()
        };
        let saved = files(sessions);
        ensure(
            saved.iter().any(|file| file.contains(id)),
            format!("{marker}: {saved:?}"),
        )?;
        Ok(self.end())
    }
}

/// Lines of any kind get one answer each, and the connection works afterwards.
fn hostile_lines() -> Result<(), Failed> {
    let mut agent = Agent::start(json!({"turns": [{"steps": ["Alive."]}]}));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let lines: [&[u8]; 6] = [
        b"",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}",
        b"null",
        b"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"x\"}",
        deep.as_bytes(),
    ];
    for line in lines {
        agent.raw(line);
        let answer = agent.next();
        ensure(
            answer["error"]["code"].is_i64() && answer["id"].is_null(),
            answer.to_string(),
        )?;
    }
    let session = agent.session(1);
    agent.prompt(2, &session, "hello?");
    let answer = agent.answer(&json!(2));
    ensure(
        answer["result"]["stopReason"] == "end_turn",
        answer.to_string(),
    )
}

/// A session that another process has open is reported as such.
fn session_in_use() -> Result<(), Failed> {
    let mut agent = Agent::start(json!({"turns": [{"steps": ["Hello."]}]}));
    let session = agent.session(1);
    agent.prompt(2, &session, "hello");
    agent.answer(&json!(2));
    let mut other = Command::new(env!("CARGO_BIN_EXE_pinion"))
        .args(["acp", "--model", "mock/mock-1"])
        .env_clear()
        .envs(agent.sandbox.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let cwd = agent.sandbox.work();
    let mut input = other.stdin.take().unwrap();
    for line in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "session/load",
            "params": {"sessionId": session, "cwd": cwd, "mcpServers": []}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/delete", "params": {"sessionId": session}}),
    ] {
        writeln!(input, "{line}").unwrap();
    }
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let answers: Vec<Value> = lines
        .take(3)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    drop(input);
    other.wait().unwrap();
    for id in [1, 2] {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        ensure(
            answer["error"]["data"]["code"] == "session_in_use",
            answer.to_string(),
        )?;
    }
    Ok(())
}

/// The output of a long command is cut at one mebibyte, with a line that says so.
fn long_output() -> Result<(), Failed> {
    let call = json!({"tool": "bash", "id": "c1", "args": {"command": "yes 0123456789 | head -c 3000000"}});
    let mut agent = Agent::start(json!({"turns": [{"steps": [call]}, {"steps": ["Done."]}]}));
    let session = agent.session(1);
    agent.send(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "session/set_mode",
        "params": {"sessionId": session, "modeId": "auto"}}),
    );
    agent.answer(&json!(2));
    agent.prompt(3, &session, "print");
    let mut printed = String::new();
    loop {
        let line = agent.next();
        if line["id"] == 3 {
            break;
        }
        let output = &line["params"]["update"]["_meta"]["terminal_output"]["data"];
        printed.push_str(output.as_str().unwrap_or_default());
    }
    ensure(
        printed.len() < (1 << 20) + 1000,
        format!("{} bytes", printed.len()),
    )?;
    ensure(
        printed.contains("The rest of the output is not shown here"),
        "no note",
    )?;
    ensure(printed.contains("Full output: "), "no file is named")
}

/// A command that a session left in the background ends when the session is closed, and the process serves on.
fn closing_ends_commands() -> Result<(), Failed> {
    let call = json!({"tool": "bash", "id": "c1", "args": {"command": "sleep 300 & echo \"pid $!\" > pid"}});
    let mut agent = Agent::start(json!({"turns": [{"steps": [call]}, {"steps": ["Done."]}]}));
    let session = agent.session(1);
    agent.send(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "session/set_mode",
        "params": {"sessionId": session, "modeId": "auto"}}),
    );
    agent.answer(&json!(2));
    agent.prompt(3, &session, "start it");
    agent.answer(&json!(3));
    let pid = std::fs::read_to_string(agent.sandbox.work().join("pid")).unwrap();
    let process = format!("/proc/{}", pid.trim().trim_start_matches("pid "));
    let process = std::path::Path::new(&process);
    ensure(process.exists(), "the command does not run")?;
    agent.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "session/close", "params": {"sessionId": session}}));
    agent.answer(&json!(4));
    let deadline = Instant::now() + Duration::from_secs(30);
    while process.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    ensure(!process.exists(), "the command still runs")?;
    agent.session(5);
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "faults::closing_a_session_ends_its_commands",
            closing_ends_commands,
        ),
        Trial::test(
            "faults::the_end_of_input_stops_the_work",
            l12_the_end_of_input_stops_the_work,
        ),
        Trial::test("faults::hostile_lines_get_one_answer_each", hostile_lines),
        Trial::test(
            "faults::a_session_of_another_process_is_in_use",
            session_in_use,
        ),
        Trial::test("faults::long_output_is_cut", long_output),
    ]
}
