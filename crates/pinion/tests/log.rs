//! The diagnostic log of the real binary: its flags, its records, and the secrets that must not be in it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use pinion_testkit::{Exit, ModelServer, Sandbox};
use serde_json::{Value, json};
use support::{args, offline_sandbox, pinion, script};

const KEY: &str = "sk-planted-log-0123456789abcdef0123456789";
const PROMPT: &str = "a prompt about walruses";
const PRINTED: &str = "tool-output-about-penguins";

fn run_with(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = pinion().command(sandbox, &args(arguments));
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).output().unwrap()
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    run_with(sandbox, arguments, &[])
}

fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the records with this message.
fn with_message<'r>(records: &'r [Value], message: &str) -> Vec<&'r Value> {
    let wanted = |record: &&Value| record["message"] == message;
    records.iter().filter(wanted).collect()
}

const DEMO: [&str; 3] = ["--model", "offline/demo", "-p"];

fn one_call() -> String {
    script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": format!("echo {PRINTED}")}}],
        [{"text": "done"}],
    ]}))
}

#[test]
fn a_run_is_recorded_with_its_spans() {
    let sandbox = offline_sandbox(&json!({}));
    let file = sandbox.root().join("log.jsonl");
    let path = file.display().to_string();
    let flags = ["--log", "info", "--log-format", "json", "--log-file", &path];
    let ran = run(&sandbox, &[&flags[..], &DEMO, &[&one_call()]].concat());
    assert_eq!(Exit::of(ran.status), Exit::Code(0), "{ran:?}");
    assert_eq!(ran.stdout, b"done\n");
    assert_eq!(ran.stderr, b"");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let records = records(&file);
    let messages: Vec<&str> = records
        .iter()
        .map(|record| record["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "pinion started",
            "session opened",
            "run started",
            "request ended",
            "tool call ended",
            "request ended",
            "run ended",
            "session closed",
        ]
    );
    let names = |record: &Value| -> Vec<String> {
        let spans = record["spans"].as_array().unwrap().iter();
        spans
            .map(|span| span["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let call = with_message(&records, "tool call ended")[0];
    assert_eq!(call["fields"]["tool"], "bash");
    assert_eq!(call["fields"]["outcome"], "done");
    assert!(call["fields"]["duration_ms"].is_u64());
    assert_eq!(names(call), ["session", "run", "tool"]);
    let request = with_message(&records, "request ended")[0];
    assert_eq!(names(request), ["session", "run", "request"]);
    assert_eq!(request["spans"][2]["model"], "demo");
    assert_eq!(request["fields"]["outcome"], "toolUse");
    assert_eq!(
        with_message(&records, "run ended")[0]["fields"]["outcome"],
        "done"
    );
}

#[test]
fn without_a_filter_nothing_is_logged() {
    let sandbox = offline_sandbox(&json!({}));
    let file = sandbox.root().join("log");
    let path = file.display().to_string();
    let call = one_call();
    let line = [&DEMO[..], &[&call]].concat();
    for variables in [
        &[][..],
        &[("PINION_LOG", "")],
        &[("PINION_LOG_FILE", &path)],
    ] {
        let ran = run_with(&sandbox, &line, variables);
        assert_eq!(
            (&ran.stdout[..], &ran.stderr[..]),
            (&b"done\n"[..], &b""[..])
        );
    }
    assert!(!file.exists());
}

#[test]
fn flags_stand_before_or_after_a_command_and_override_the_environment() {
    let sandbox = offline_sandbox(&json!({}));
    let file = sandbox.root().join("log");
    let path = file.display().to_string();
    for (line, filter, expected) in [
        (
            &["--log=info", "--log-file", &path, "doctor"][..],
            "off",
            true,
        ),
        (
            &["doctor", "--log-file", &path, "--log", "info"],
            "off",
            true,
        ),
        (&["doctor", "--log-file", &path], "off", false),
        (&["doctor", "--log-file", &path], "", true),
        (&["commands", "list", "--log-file", &path], "info", true),
        (&["--log-file", &path, "commands", "list"], "info", true),
    ] {
        let ran = run_with(&sandbox, line, &[("PINION_LOG", filter)]);
        let logged = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            logged.contains("pinion started"),
            expected,
            "{line:?} {filter:?} {ran:?}"
        );
        let _ = fs::remove_file(&file);
    }
    let call = one_call();
    let line = [&DEMO[..], &[&call]].concat();
    let ran = run_with(
        &sandbox,
        &line,
        &[("PINION_LOG", "pinion_agent::calls=info")],
    );
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(
        stderr.contains("pinion_agent::calls: tool call ended tool=bash"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(ran.stdout, b"done\n");
}

#[test]
fn wrong_values_are_refused_before_anything_runs() {
    let sandbox = offline_sandbox(&json!({}));
    for (line, said) in [
        (
            &["--log", "debgu", "doctor"][..],
            "Error: unknown level \"debgu\" in --log. Did you mean debug?",
        ),
        (
            &["doctor", "--log", "pinion_agnet=debug"],
            "Did you mean pinion_agent?",
        ),
        (&["-p", "hello", "--log", "debgu"], "Did you mean debug?"),
        (
            &["--log", "info", "doctor", "--log", "info"],
            "Give them once.",
        ),
        (&["--log-format", "jsno", "doctor"], "Did you mean json?"),
        (&["--list-models", "--log", "debgu"], "Did you mean debug?"),
        (&["--log"], "--log needs a value after it."),
    ] {
        let ran = run(&sandbox, line);
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(Exit::of(ran.status), Exit::Code(2), "{line:?}: {stderr}");
        assert!(stderr.contains(said), "{line:?}: {stderr}");
        assert_eq!(ran.stdout, b"", "{line:?}");
    }
    let ran = run_with(&sandbox, &["doctor"], &[("PINION_LOG", "infp")]);
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(
        stderr,
        "Error: unknown level \"infp\" in PINION_LOG. Did you mean info?\n"
    );
    let fifo = sandbox.root().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let ran = run(
        &sandbox,
        &["--log-file", &fifo.display().to_string(), "doctor"],
    );
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(Exit::of(ran.status), Exit::Code(1), "{stderr}");
    assert!(stderr.contains("is a FIFO, not a regular file"), "{stderr}");
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn d6_no_secret_prompt_or_output_reaches_the_log() {
    let scenario = json!({"turns": [
        {"http": {"status": 500, "body": {"error": {"message": format!("no: Authorization: Bearer {KEY}")}}}},
        {"steps": [{"tool": "bash", "args": {"command": format!("printf '{PRINTED} %s' $PLANTED_KEY")}}]},
        {"steps": [{"tool": KEY, "args": {}}]},
        {"steps": ["fine"]},
    ]});
    let server = ModelServer::start(scenario.clone());
    let sandbox = Sandbox::with_settings(
        server.port(),
        &json!({"retry": {"enabled": true, "maxRetries": 2, "baseDelayMs": 1},
                "defaultProvider": "one", "defaultModel": "m"}),
    );
    sandbox.add_agent_files(&json!({
        "models.json": {"providers": {"one": {
            "baseUrl": server.base_url(), "api": "anthropic-messages", "apiKey": "PLANTED_KEY",
            "headers": {"x-extra-key": KEY},
            "models": [{"id": "m", "name": "M", "contextWindow": 200_000, "maxTokens": 1000}],
        }}},
    }));
    for format in ["text", "json"] {
        server.set_scenario(scenario.clone());
        let file = sandbox.root().join(format);
        let path = file.display().to_string();
        let prompt = format!("{PROMPT} {KEY}");
        let flags = [
            "--log",
            "trace",
            "--log-format",
            format,
            "--log-file",
            &path,
        ];
        let line = [&flags[..], &["-p", &prompt]].concat();
        let ran = run_with(&sandbox, &line, &[("PLANTED_KEY", KEY)]);
        assert_eq!(Exit::of(ran.status), Exit::Code(0), "{ran:?}");
        let log = fs::read_to_string(&file).unwrap();
        for secret in [KEY, PROMPT, PRINTED] {
            assert!(!log.contains(secret), "{secret} is in {log}");
        }
        assert!(log.contains("the request failed"), "{log}");
        // The model called a tool named like the key.
        let masked = match format {
            "text" => "tool=***",
            _ => r#""tool":"***""#,
        };
        assert!(log.contains(masked), "{log}");
        if format == "json" {
            let records = records(&file);
            let spans = &with_message(&records, "request ended")[0]["spans"];
            assert_eq!(spans[2]["status"], 200, "{spans}");
        }
    }
    // They were used: key and prompt in the first request, the output of the tool in the next one.
    let requests = server.requests();
    assert!(requests[0]["headers"].to_string().contains(KEY));
    assert!(requests[0]["body"].to_string().contains(PROMPT));
    assert!(requests[2]["body"].to_string().contains(PRINTED));
}

#[test]
fn attempts_of_a_fleet_are_recorded() {
    let sandbox = offline_sandbox(&json!({}));
    let plan = "children:\n  - { name: one, agent: jsonl, prompt: go, command: [sh, -c, 'echo \"{\\\"type\\\":\\\"done\\\"}\"'] }\n";
    fs::write(sandbox.work().join("plan.yaml"), plan).unwrap();
    let file = sandbox.root().join("log.jsonl");
    let path = file.display().to_string();
    let line = [
        "fleet",
        "run",
        "plan.yaml",
        "--log-format",
        "json",
        "--log-file",
        &path,
    ];
    let ran = run(&sandbox, &line);
    assert_eq!(Exit::of(ran.status), Exit::Code(0), "{ran:?}");
    let records = records(&file);
    let ended = with_message(&records, "attempt ended");
    assert_eq!(ended.len(), 1, "{records:?}");
    assert_eq!(ended[0]["fields"]["outcome"], "finished");
    assert_eq!(ended[0]["spans"][0]["name"], "fleet");
    assert_eq!(ended[0]["spans"][1]["name"], "attempt");
    assert_eq!(ended[0]["spans"][1]["child"], "one");
}

#[test]
fn a_task_of_a_fleet_has_no_log_of_its_own() {
    let sandbox = offline_sandbox(&json!({}));
    let plan = "children:\n  - { name: one, agent: pinion, prompt: go, model: offline/demo, isolation: task, args: [--log, info] }\n";
    fs::write(sandbox.work().join("plan.yaml"), plan).unwrap();
    let ran = run(&sandbox, &["fleet", "run", "plan.yaml"]);
    assert_eq!(Exit::of(ran.status), Exit::Code(1), "{ran:?}");
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("flags of the log"), "{said}");
}
