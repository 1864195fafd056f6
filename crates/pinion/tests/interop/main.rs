//! Sessions shared with the reference agent: each program reads the files of the other, and they take turns in one
//! file. Needs the reference in `PINION_INTEROP_DIR`; `cargo xtask interop` puts it there.

#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

mod turns;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_testkit::transcript::compare::{difference, leaves};
use pinion_testkit::{Exit, ModelServer, Process, Program, Sandbox};
use serde_json::{Value, json};

const NEEDS: &str = "PINION_INTEROP_DIR names the directory with the reference agent";

/// A program that can read and write sessions.
struct Party {
    name: String,
    program: Program,
}

fn ours() -> Party {
    // Any implementation can be put to the same test.
    let program = match std::env::var("PINION_INTEROP_OURS") {
        Ok(command) => Program::from_command(command.split(' ')),
        Err(_) => Program::new(env!("CARGO_BIN_EXE_pinion")),
    };
    Party {
        name: "pinion".into(),
        program,
    }
}

fn reference(release: &str) -> Party {
    let directory = PathBuf::from(std::env::var_os("PINION_INTEROP_DIR").expect(NEEDS));
    let script = directory
        .join(format!("pi-{release}"))
        .join("node_modules/@mariozechner/pi-coding-agent/dist/cli.js");
    assert!(script.exists(), "{} is not there", script.display());
    let program = Program::from_command([Path::new("node"), script.as_path()]);
    Party {
        name: format!("pi {release}"),
        program,
    }
}

/// One visit of a program to a session: started, used, and ended by closing its input.
struct Visit {
    name: String,
    process: Process,
}

impl Visit {
    fn start(party: &Party, sandbox: &Sandbox, args: &[&str]) -> Self {
        let args: Vec<String> = ["--mode", "rpc"]
            .iter()
            .chain(args)
            .map(|a| (*a).into())
            .collect();
        Self {
            name: party.name.clone(),
            process: party.program.start(sandbox, &args),
        }
    }

    fn data(&mut self, command: Value) -> Value {
        let response = self.process.ask(command.clone());
        let name = &self.name;
        assert_eq!(
            response["success"], true,
            "{name} refused {command}: {response}"
        );
        response["data"].clone()
    }

    fn prompt(&mut self, text: &str) {
        let from = self.process.line_count();
        self.data(json!({"type": "prompt", "message": text}));
        self.process.expect(from, &json!({"type": "agent_end"}));
    }

    /// Returns the state of the session that a client can see, without members that only one release reports.
    fn view(&mut self) -> Value {
        let state = self.data(json!({"type": "get_state"}));
        let stats = self.data(json!({"type": "get_session_stats"}));
        let pick = |from: &Value, names: &[&str]| -> Value {
            names
                .iter()
                .map(|name| (*name, from[*name].clone()))
                .collect()
        };
        let counts = [
            "userMessages",
            "assistantMessages",
            "toolCalls",
            "toolResults",
            "tokens",
            "cost",
        ];
        json!({
            "messages": self.data(json!({"type": "get_messages"}))["messages"],
            "forks": self.data(json!({"type": "get_fork_messages"}))["messages"],
            "stats": pick(&stats, &counts),
            "state": pick(&state, &["sessionId", "sessionFile", "sessionName", "thinkingLevel", "messageCount"]),
            "model": state["model"]["id"],
        })
    }

    /// Returns the path of the session file.
    fn file(&mut self) -> String {
        let state = self.data(json!({"type": "get_state"}));
        state["sessionFile"]
            .as_str()
            .unwrap_or_else(|| panic!("no file in {state}"))
            .to_owned()
    }

    fn end(mut self) {
        self.process.close_stdin();
        let exit = self.process.wait(Duration::from_secs(10));
        assert_eq!(
            exit,
            Some(Exit::Code(0)),
            "{}: {}",
            self.name,
            self.process.stderr()
        );
    }
}

/// Fails with the lines that differ.
fn same(found: &Value, expected: &Value, about: &str) {
    if let Some(text) = difference(&leaves(expected), &leaves(found)) {
        panic!("{about}:\n{text}");
    }
}

/// Returns a model that thinks, calls a tool and answers; requests for summaries are recognised by the missing tools.
fn scenario() -> Value {
    json!({"turns": [
        {"match": {"no_tools": true, "sticky": true}, "steps": ["Summary: they greeted each other. Grüße 🦀"]},
        {"repeat_turn": 20, "turn": {"steps": [
            {"text": "Answer {i}: ünïcödé, \"quotes\", \u{2028} and 🦀.", "chunk": 7}
        ], "usage": {"input": 111, "output": 22, "cache_read": 33, "cache_write": 44}}},
    ]})
}

fn place(server: &ModelServer) -> Sandbox {
    let settings = json!({"compaction": {"keepRecentTokens": 1, "reserveTokens": 100}});
    Sandbox::with_settings(server.port(), &settings)
}

/// Lets `second` open what `first` wrote, and the other way round, and checks that both see the same.
fn take_turns(first: &Party, second: &Party) {
    let server = ModelServer::start(scenario());
    let sandbox = place(&server);
    let mut visit = Visit::start(first, &sandbox, &[]);
    visit.prompt("Hello from the first.");
    visit.data(json!({"type": "set_session_name", "name": "shared session"}));
    let file = visit.file();
    let mut seen = visit.view();
    visit.end();
    for round in 0..4 {
        let (writer, reader) = if round % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let mut visit = Visit::start(reader, &sandbox, &["--session", &file]);
        let (wrote, read) = (&writer.name, &reader.name);
        same(
            &visit.view(),
            &seen,
            &format!("round {round}: what {wrote} wrote and {read} read"),
        );
        visit.prompt(&format!("Round {round}, with Grüße and 🦀."));
        if round == 1 {
            visit.data(json!({"type": "set_thinking_level", "level": "low"}));
            visit.data(json!({"type": "set_model", "provider": "mock", "modelId": "mock-small"}));
        }
        if round == 2 {
            visit.data(json!({"type": "compact"}));
        }
        seen = visit.view();
        visit.end();
    }
}

/// A session that `first` forked is opened by `second`, also by its place in the list of sessions.
fn fork_and_continue(first: &Party, second: &Party) {
    let server = ModelServer::start(scenario());
    let sandbox = place(&server);
    let mut visit = Visit::start(first, &sandbox, &[]);
    visit.prompt("First question.");
    visit.prompt("Second question.");
    let forks = visit.data(json!({"type": "get_fork_messages"}));
    let entry = forks["messages"][1]["entryId"].clone();
    visit.data(json!({"type": "fork", "entryId": entry}));
    visit.prompt("Another second question.");
    let seen = visit.view();
    visit.end();
    let mut visit = Visit::start(second, &sandbox, &["--continue"]);
    same(
        &visit.view(),
        &seen,
        &format!("{} continues what {} forked", second.name, first.name),
    );
    visit.end();
}

/// Tool calls with their results, and a command run by the client.
fn tools(first: &Party, second: &Party) {
    let server = ModelServer::start(json!({"turns": [
        {"steps": [{"thinking": "Let me see.", "signature": "c2lnbmVk"}, "Looking.",
                   {"tool": "bash", "args": {"command": "printf 'a\\tb\\n'; exit 3"}},
                   {"tool": "write", "args": {"path": "x.txt", "content": "1\n2\n"}}]},
        {"steps": ["Done."]},
    ]}));
    let sandbox = place(&server);
    let mut visit = Visit::start(first, &sandbox, &["--thinking", "low"]);
    visit.prompt("Use the tools.");
    visit.data(json!({"type": "bash", "command": "echo from the client"}));
    visit.prompt("And what did I run?");
    let file = visit.file();
    let seen = visit.view();
    visit.end();
    let mut visit = Visit::start(second, &sandbox, &["--session", &file]);
    same(
        &visit.view(),
        &seen,
        &format!("{} reads the tool calls of {}", second.name, first.name),
    );
    visit.end();
}

fn both_ways(release: &str, test: fn(&Party, &Party)) {
    test(&ours(), &reference(release));
    test(&reference(release), &ours());
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn one_session_is_written_in_turns_with_0_52_12() {
    both_ways("0.52.12", take_turns);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn one_session_is_written_in_turns_with_0_73_1() {
    both_ways("0.73.1", take_turns);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn forked_sessions_are_shared_with_0_52_12() {
    both_ways("0.52.12", fork_and_continue);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn forked_sessions_are_shared_with_0_73_1() {
    both_ways("0.73.1", fork_and_continue);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn tool_calls_are_shared_with_0_52_12() {
    both_ways("0.52.12", tools);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn tool_calls_are_shared_with_0_73_1() {
    both_ways("0.73.1", tools);
}
