//! The output of `ps` for other users of the machine: no keys and no prompts, if they were passed as documented.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, ModelServer, Sandbox};
use serde_json::json;

use crate::support::{Client, HANG, args, pinion};

const KEY: &str = "sk-visible-0123456789abcdef0123456789";
const PROMPT: &str = "the quick brown secret";

/// Returns the command lines of all processes of the sandbox.
fn command_lines(marker: &str) -> Vec<String> {
    proc::marked(marker)
        .into_iter()
        .map(|process| {
            fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default()
        })
        .collect()
}

fn nothing_to_see(marker: &str, expected: usize) {
    let lines = command_lines(marker);
    assert!(
        lines.len() >= expected,
        "only {} processes: {lines:?}",
        lines.len()
    );
    for line in lines {
        assert!(
            !line.contains(KEY) && !line.contains(PROMPT),
            "anyone can read {line:?}"
        );
    }
}

fn wait_for_file(sandbox: &Sandbox, name: &str) {
    let end = Instant::now() + HANG;
    while !sandbox.work().join(name).exists() {
        assert!(Instant::now() < end, "{name} never came");
        thread::sleep(Duration::from_millis(5));
    }
}

fn server() -> ModelServer {
    ModelServer::start(json!({"turns": [
        {"steps": [{"text": "I see."},
                   {"tool": "bash", "args": {"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"}}]},
        {"steps": ["fine"]}]}))
}

fn sandbox(server: &ModelServer) -> Sandbox {
    let sandbox = Sandbox::with_settings(
        server.port(),
        &json!({"defaultProvider": "one", "defaultModel": "m"}),
    );
    sandbox.add_agent_files(&json!({"models.json": {"providers": {"one": {
        "baseUrl": server.base_url(), "api": "anthropic-messages", "apiKey": "VISIBLE_KEY",
        "models": [{"id": "m", "name": "M", "contextWindow": 200_000, "maxTokens": 1000}]}}}}));
    sandbox
}

#[test]
fn h8_keys_by_environment_and_prompts_by_line_are_on_no_command_line() {
    let server = server();
    let sandbox = sandbox(&server);
    let mut program = pinion();
    program.environment.push(("VISIBLE_KEY".into(), KEY.into()));
    let process = program.start(&sandbox, &args(&["--mode", "rpc"]));
    let mut client = Client::around(process, sandbox);
    let from = client.prompt(PROMPT);
    wait_for_file(&client.sandbox, "begun");
    // The program, its guardian, the shell and its child.
    nothing_to_see(client.sandbox.marker(), 3);
    client.sandbox.add_files(&json!({"go": ""}));
    client.wait_end(from);
    assert!(server.requests()[0]["headers"].to_string().contains(KEY));
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn h8_a_prompt_on_standard_input_or_in_a_file_is_on_no_command_line() {
    for by_file in [false, true] {
        let server = server();
        let sandbox = sandbox(&server);
        sandbox.add_files(&json!({"prompt.txt": PROMPT}));
        let mut program = pinion();
        program.environment.push(("VISIBLE_KEY".into(), KEY.into()));
        let arguments: &[&str] = if by_file {
            &["-p", "@prompt.txt"]
        } else {
            &["-p"]
        };
        let mut process = program.start(&sandbox, &args(arguments));
        if !by_file {
            process.send_text(PROMPT);
        }
        process.close_stdin();
        wait_for_file(&sandbox, "begun");
        nothing_to_see(sandbox.marker(), 3);
        sandbox.add_files(&json!({"go": ""}));
        assert_eq!(
            process.wait(HANG),
            Some(Exit::Code(0)),
            "{}",
            process.stderr()
        );
        assert!(server.requests()[0]["body"].to_string().contains(PROMPT));
    }
}

#[test]
fn h8_a_command_that_fetches_a_key_does_not_show_it() {
    let server = server();
    let sandbox = sandbox(&server);
    fs::write(sandbox.root().join("key"), KEY).unwrap();
    let fetch = format!("!cat {}/key", sandbox.root().display());
    sandbox.add_agent_files(&json!({"models.json": {"providers": {"one": {
        "baseUrl": server.base_url(), "api": "anthropic-messages", "apiKey": fetch,
        "models": [{"id": "m", "name": "M", "contextWindow": 200_000, "maxTokens": 1000}]}}}}));
    let mut client = Client::start(sandbox, &["--mode", "rpc"]);
    let from = client.prompt(PROMPT);
    wait_for_file(&client.sandbox, "begun");
    nothing_to_see(client.sandbox.marker(), 3);
    client.sandbox.add_files(&json!({"go": ""}));
    client.wait_end(from);
    assert!(server.requests()[0]["headers"].to_string().contains(KEY));
}
