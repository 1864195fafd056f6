//! Clips as tools of an agent: the real binary, a hub on a loopback port, a clip in Python.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../../../hub/tests/common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

use common::{Running, python_clip};
use pinion_access::Mode;
use pinion_testkit::{Exit, ModelServer, Process, Sandbox};
use serde_json::{Value, json};
use support::{Client, HANG, args, offline_sandbox, pinion, script};

const PROBE: &str = include_str!("probe.py");
/// A clip in the dialect in which the hub reports cancelled calls.
const DIRECT: &str = r#"
import json, os, sys
for line in sys.stdin:
    with open(os.path.join(os.environ["PINIX_DATA_DIR"], "heard"), "a") as log: log.write(line)
    message = json.loads(line)
    if message["type"] == "invoke":
        print(json.dumps({"type": "stream", "id": message["id"], "chunk": "begun"}), flush=True)
"#;

fn hub() -> Running {
    let hub = Running::start(Mode::Secured);
    hub.install("todo", python_clip(PROBE).path());
    hub
}

fn start(hub: &Running, sandbox: &Sandbox, arguments: &[&str]) -> Process {
    let mut program = pinion();
    program.environment = vec![("PINIX_TOKEN".into(), hub.token.clone())];
    let url = format!("http://{}", hub.address);
    let mut all = vec!["--hub", &url];
    all.extend(arguments);
    program.start(sandbox, &args(&all))
}

/// Runs one conversation with the built-in model to its end and returns every event.
fn events(hub: &Running, arguments: &[&str], said: &Value) -> Vec<Value> {
    let sandbox = offline_sandbox(&json!({}));
    let said = script(said);
    let mut all = vec!["--mode", "json", "--model", "offline/demo"];
    all.extend(arguments);
    all.push(&said);
    let mut process = start(hub, &sandbox, &all);
    process.close_stdin();
    let exit = process.wait(HANG);
    assert_eq!(exit, Some(Exit::Code(0)), "{}", process.stderr());
    process.lines().into_iter().map(|line| line.value).collect()
}

/// Returns the results of all calls, as the model receives them.
fn results(events: &[Value]) -> Vec<(String, bool, String)> {
    let ended = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end");
    let shown = ended.map(|event| {
        let text = event["result"]["content"][0]["text"].as_str().unwrap();
        let name = event["toolName"].as_str().unwrap();
        (name.to_owned(), event["isError"] == true, text.to_owned())
    });
    shown.collect()
}

fn calls(list: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = list
        .iter()
        .map(|(tool, args)| json!({"tool": tool, "args": args}))
        .collect();
    json!({"turns": [calls, {"text": "All done."}]})
}

#[test]
fn a_model_calls_commands_of_a_clip_and_gets_their_results() {
    let hub = hub();
    let said = calls(&[
        // The input lacks a member that the schema requires: the clip decides about that.
        ("todo_add", json!({"title": "Milk"})),
        ("todo_note_find", json!({"query": "x", "limit": 2})),
        ("todo_shout", json!({"input": "hello"})),
        ("todo_opaque", json!({"text": "x"})),
    ]);
    let events = events(&hub, &["--clips", "todo"], &said);
    assert_eq!(
        results(&events),
        [
            (
                "todo_add".into(),
                false,
                r#"{"command":"add","got":{"title":"Milk"}}"#.into()
            ),
            (
                "todo_note_find".into(),
                false,
                r#"{"command":"note find","got":{"query":"x","limit":2}}"#.into()
            ),
            ("todo_shout".into(), false, "HELLO".into()),
            (
                "todo_opaque".into(),
                false,
                r#"{"command":"opaque","got":{"text":"x"}}"#.into()
            ),
        ]
    );
    let last = events
        .iter()
        .rfind(|event| event["type"] == "message_end")
        .unwrap();
    assert_eq!(last["message"]["content"][0]["text"], "All done.");
}

#[test]
fn the_hub_refuses_inputs_that_break_the_schema_and_names_the_member() {
    let hub = hub();
    let said = calls(&[
        ("todo_add", json!({"title": ["Milk"]})),
        ("todo_add", json!({"title": "Milk", "colour": "red"})),
        ("todo_add", json!({"title": "Milk"})),
    ]);
    let events = events(&hub, &["--clips", "todo"], &said);
    let results = results(&events);
    let refused = "todo add failed (invalid_argument): the input of \"todo add\" is wrong: ";
    for (result, problem) in results.iter().zip([
        "\"title\" must be a string, not [\"Milk\"]",
        "\"colour\" is not known",
    ]) {
        let expected = ("todo_add".to_owned(), true, format!("{refused}{problem}"));
        assert_eq!(*result, expected);
    }
    assert!(!results[2].1, "{results:?}");
    let heard = std::fs::read_to_string(hub.root.path().join("data/todo/heard")).unwrap();
    let invoked = heard.lines().filter(|line| line.contains("invoke"));
    assert_eq!(invoked.count(), 1, "{heard}");
}

#[test]
fn parts_are_shown_as_they_come() {
    let hub = hub();
    let events = events(&hub, &[], &calls(&[("todo_ticks", json!({}))]));
    let updates = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_update");
    let texts: Vec<&str> = updates
        .map(|event| {
            event["partialResult"]["content"][0]["text"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert!(texts.len() > 1, "{texts:?}");
    assert_eq!(texts[0], "tick 0\n");
    assert!(
        texts.windows(2).all(|pair| pair[1].starts_with(pair[0])),
        "{texts:?}"
    );
    assert_eq!(results(&events)[0].2, "tick 0\ntick 1\ntick 2\n");
}

#[test]
fn failures_are_told_to_the_model_and_the_run_goes_on() {
    let hub = hub();
    let said = json!({"turns": [
        {"tool": "todo_fail", "args": {}},
        {"tool": "todo_die", "args": {}},
        {"tool": "todo_long", "args": {}},
        {"text": "All done."},
    ]});
    let events = events(&hub, &[], &said);
    let results = results(&events);
    assert_eq!(
        results[0],
        (
            "todo_fail".into(),
            true,
            "todo fail failed (internal): the shelf is full".into()
        )
    );
    assert!(
        results[1].1 && results[1].2.starts_with("todo die failed (unavailable)"),
        "{:?}",
        results[1]
    );
    let (_, is_error, long) = &results[2];
    assert!(!is_error && long.len() < 52_000, "{}", long.len());
    assert!(long.ends_with(
        "[Output cut: the first 51200 of 200000 bytes are shown. Ask for less at a time.]"
    ));
    let last = events
        .iter()
        .rfind(|event| event["type"] == "message_end")
        .unwrap();
    assert_eq!(last["message"]["content"][0]["text"], "All done.");
}

#[test]
fn a_clip_that_is_removed_in_the_middle_fails_its_calls() {
    let hub = hub();
    let sandbox = offline_sandbox(&json!({}));
    let process = start(
        &hub,
        &sandbox,
        &["--mode", "rpc", "--model", "offline/demo"],
    );
    let mut client = Client::around(process, sandbox);
    let from = client.prompt(&script(&calls(&[("todo_add", json!({"title": "a"}))])));
    client.wait_end(from);
    let (status, _) = hub.call("RemoveClip", r#"{"clipName":"todo"}"#);
    assert_eq!(status, 200);
    let from = client.prompt(&script(&calls(&[("todo_add", json!({"title": "b"}))])));
    client.wait_for(
        from,
        &json!({"type": "tool_execution_end", "isError": true}),
    );
    let messages = client.wait_end(from);
    let result = messages
        .iter()
        .find(|message| message["role"] == "toolResult")
        .unwrap();
    assert_eq!(
        result["content"][0]["text"],
        "todo add failed (not_found): Clip 'todo' not found"
    );
}

#[test]
fn an_abort_cancels_the_call() {
    let hub = hub();
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("clip.py"), DIRECT).unwrap();
    let description = json!({
        "name": "@acme/slow", "version": "1.0.0", "runtime": "python", "main": "clip.py", "ipc": "direct",
        "commands": [{"name": "wait"}],
    });
    std::fs::write(place.path().join("clip.json"), description.to_string()).unwrap();
    hub.install("slow", place.path());
    let sandbox = offline_sandbox(&json!({}));
    let arguments = [
        "--mode",
        "rpc",
        "--model",
        "offline/demo",
        "--clips",
        "slow",
    ];
    let mut client = Client::around(start(&hub, &sandbox, &arguments), sandbox);
    let from = client.prompt(&script(&calls(&[("slow_wait", json!({}))])));
    client.wait_for(from, &json!({"type": "tool_execution_update"}));
    client.data("abort");
    client.wait_for(
        from,
        &json!({"type": "tool_execution_end", "isError": true}),
    );
    client.wait_end(from);
    // The clip receives the cancellation.
    let heard = hub.root.path().join("data/slow/heard");
    let until = std::time::Instant::now() + HANG;
    while !std::fs::read_to_string(&heard)
        .unwrap()
        .contains(r#""type":"cancel""#)
    {
        assert!(std::time::Instant::now() < until, "the clip was never told");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn rules_hold_for_commands_of_clips() {
    let hub = hub();
    let said = calls(&[
        ("todo_add", json!({"title": "a"})),
        ("todo_shout", json!({"input": "b"})),
    ]);
    let told = results(&events(
        &hub,
        &["--clips", "todo", "--deny", "todo_add"],
        &said,
    ));
    assert!(told[0].1, "{told:?}");
    assert_eq!(told[1], ("todo_shout".into(), false, "B".into()));
    let told = results(&events(
        &hub,
        &["--approve", "deny", "--allow", "todo_add"],
        &said,
    ));
    assert!(!told[0].1 && told[1].1, "{told:?}");
}

#[test]
fn models_are_told_names_words_and_schemas() {
    let hub = hub();
    hub.install("3d-printer", python_clip(PROBE).path());
    let server = ModelServer::start(json!({"turns": [{"steps": ["Hello."]}]}));
    let sandbox = Sandbox::new(server.port());
    let mut process = start(&hub, &sandbox, &["--no-builtin-tools", "-p", "hi"]);
    process.close_stdin();
    assert_eq!(
        process.wait(HANG),
        Some(Exit::Code(0)),
        "{}",
        process.stderr()
    );
    let requests = server.requests();
    let body = requests[0].get("body").unwrap_or(&requests[0]);
    let tools = body["tools"].as_array().unwrap_or_else(|| panic!("{body}"));
    let named = |name: &str| {
        let found = tools.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {tools:?}"))
    };
    assert_eq!(tools.len(), 18);
    assert_eq!(
        named("clip_3d-printer_add")["description"],
        "Adds an entry. Titles are short."
    );
    let add = &named("todo_add")["input_schema"];
    assert_eq!(add["properties"]["title"], json!({"type": "string"}));
    assert_eq!(add["required"], json!(["title", "urgent"]));
    assert_eq!(add.get("$schema"), None);
    let find = &named("todo_note_find")["input_schema"];
    assert_eq!(find["required"], json!(["query"]));
    assert_eq!(
        named("todo_shout")["input_schema"]["properties"],
        json!({"input": {"type": "string"}})
    );
    let opaque = named("todo_opaque");
    assert_eq!(
        opaque["description"],
        "Takes what it takes\nInput: { text: string; times?: number }"
    );
}

#[test]
fn what_is_wrong_at_the_start_is_said_with_what_to_do() {
    let hub = hub();
    let url = format!("http://{}", hub.address);
    let nobody = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", socket.local_addr().unwrap())
    };
    let sandbox = offline_sandbox(&json!({}));
    let failure = |token: Option<&str>, arguments: &[&str]| {
        let mut program = pinion();
        program.environment = token
            .map(|token| ("PINIX_TOKEN".into(), token.to_owned()))
            .into_iter()
            .collect();
        let mut all = vec!["--model", "offline/demo", "-p", "hi"];
        all.extend(arguments);
        let mut process = program.start(&sandbox, &args(&all));
        process.close_stdin();
        assert_eq!(
            process.wait(HANG),
            Some(Exit::Code(1)),
            "{}",
            process.stderr()
        );
        process.drain(HANG);
        process.stderr()
    };
    let token = Some(hub.token.as_str());
    let said = failure(token, &["--hub", &nobody]);
    assert!(
        said.contains(&nobody) && said.contains("pinion hub serve"),
        "{said}"
    );
    let said = failure(token, &["--hub", &url, "--clips", "todo,nothing"]);
    assert!(
        said.contains("there is no clip \"nothing\". It has todo."),
        "{said}"
    );
    let said = failure(None, &["--hub", &url, "--clips", "todo"]);
    assert!(
        said.contains("wants a token") && said.contains("PINIX_TOKEN"),
        "{said}"
    );
    let said = failure(Some("pnx_wrong"), &["--hub", &url]);
    assert!(
        said.contains("does not take the token from PINIX_TOKEN"),
        "{said}"
    );
    let said = failure(None, &["--clips", "todo"]);
    assert!(said.contains("http://127.0.0.1:9000"), "{said}");
}
