//! Real clients of the Agent Client Protocol, and the published schema. Needs packages from npm and PyPI;
//! `cargo xtask interop` and `cargo xtask test --all` install them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jsonschema::Validator;
use pinion_testkit::transcript::{run, text};
use pinion_testkit::{ModelServer, Program, Sandbox};
use serde_json::{Value, json};

const PINION: &str = env!("CARGO_BIN_EXE_pinion");

fn directory(variable: &str) -> PathBuf {
    let directory = std::env::var_os(variable);
    directory
        .unwrap_or_else(|| panic!("{variable} is not set"))
        .into()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Runs a client in a sandbox. `words` are its program and arguments.
fn client(words: &[&str]) -> (Sandbox, Output) {
    let model = ModelServer::start(json!({}));
    let sandbox = Sandbox::new(model.port());
    let output = Command::new(words[0])
        .args(&words[1..])
        .env_clear()
        .envs(sandbox.environment())
        .env("PINION_ACP_PACKAGES", directory("PINION_ACP_PACKAGES"))
        .current_dir(sandbox.work())
        .output()
        .unwrap();
    (sandbox, output)
}

/// Returns the results that a client printed, by name.
fn results(output: &Output) -> HashMap<String, Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| {
        let line: (String, Value) = serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"));
        line
    });
    lines.collect()
}

fn expect(output: &Output, expected: &[(&str, Value)]) {
    let found = results(output);
    for (name, value) in expected {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(found.get(*name), Some(value), "{name}: {found:?}\n{errors}");
    }
}

#[test]
#[ignore = "needs the SDK from npm"]
fn the_typescript_client_works() {
    let script = root().join("interop/acp/client.mjs");
    let script = script.to_str().unwrap();
    let words = ["node", script, PINION, "acp", "--model", "offline/demo"];
    let (_sandbox, output) = client(&words);
    expect(
        &output,
        &[
            ("agent", json!("pinion")),
            ("options", json!(["mode", "model", "thinking"])),
            ("allowed", json!(["end_turn", "completed"])),
            ("refused", json!(["end_turn", "failed"])),
            ("cancelled", json!("cancelled")),
            ("set", json!("auto")),
            ("image", json!("end_turn")),
            ("both", json!(["end_turn", "end_turn"])),
            ("list", json!(2)),
            (
                "load",
                json!(["user_message_chunk", "tool_call", "tool_call_update"]),
            ),
            ("close", json!({})),
        ],
    );
}

#[test]
#[ignore = "needs the SDK from PyPI"]
fn the_python_client_works() {
    let python = directory("PINION_ACP_PYTHON");
    let script = root().join("interop/acp/client.py");
    let words = [
        python.to_str().unwrap(),
        script.to_str().unwrap(),
        PINION,
        "acp",
        "--model",
        "offline/demo",
    ];
    let (_sandbox, output) = client(&words);
    expect(
        &output,
        &[
            ("allowed", json!(["end_turn", "completed"])),
            ("refused", json!(["end_turn", "failed"])),
        ],
    );
}

#[test]
#[ignore = "needs acpx from npm"]
fn acpx_works() {
    let acpx = directory("PINION_ACP_PACKAGES").join("node_modules/acpx/dist/cli.js");
    let acpx = acpx.to_str().unwrap();
    let agent = format!("{PINION} acp --model offline/demo");
    for (policy, status) in [("--approve-all", "completed"), ("--deny-all", "failed")] {
        let words = [
            "node",
            acpx,
            "--agent",
            &agent,
            policy,
            "--format",
            "json",
            "exec",
            "list the files",
        ];
        let (_sandbox, output) = client(&words);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        // acpx reports a refused call by its exit code.
        let is_success = output.status.success();
        assert_eq!(
            is_success,
            status == "completed",
            "{policy}: {text}\n{errors}"
        );
        let status = format!("\"status\":\"{status}\"");
        assert!(text.contains(&status), "{policy}: {text}");
        assert!(
            text.contains("\"stopReason\":\"end_turn\""),
            "{policy}: {text}"
        );
    }
}

/// The definitions of the published schema.
struct Published {
    schema: Value,
    ready: HashMap<&'static str, Validator>,
}

impl Published {
    fn read() -> Self {
        let file = directory("PINION_ACP_PACKAGES")
            .join("node_modules/@agentclientprotocol/sdk/schema/v1/schema.json");
        let text = std::fs::read_to_string(file).unwrap();
        Self {
            schema: serde_json::from_str(&text).unwrap(),
            ready: HashMap::new(),
        }
    }

    fn complaint(&mut self, definition: &'static str, value: &Value) -> Option<String> {
        let schema = &self.schema;
        let validator = self.ready.entry(definition).or_insert_with(|| {
            let part = json!({"$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"]});
            jsonschema::validator_for(&part).unwrap()
        });
        let error = validator.iter_errors(value).next()?;
        Some(format!("{definition}: {error}: {value}"))
    }
}

/// Returns the definition of the result of a method; `None` for methods that the schema does not have.
fn result_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResponse",
        "authenticate" => "AuthenticateResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/list" => "ListSessionsResponse",
        "session/close" => "CloseSessionResponse",
        "session/delete" => "DeleteSessionResponse",
        "session/prompt" => "PromptResponse",
        "session/set_mode" => "SetSessionModeResponse",
        "session/set_config_option" => "SetSessionConfigOptionResponse",
        _ => return None,
    })
}

#[test]
#[ignore = "needs the schema from npm"]
fn every_line_of_the_transcripts_fits_the_published_schema() {
    let mut published = Published::read();
    let mut checked = 0;
    for entry in std::fs::read_dir(root().join("transcripts/acp")).unwrap() {
        let path = entry.unwrap().path();
        let case = text::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let recording = run(&case, &Program::new(PINION));
        // A program that was started again uses the same ids.
        let mut requests: HashMap<String, Vec<String>> = HashMap::new();
        for sent in &recording.input {
            let line: Value = serde_json::from_str(&sent.text).unwrap_or_default();
            if let Some(method) = line["method"].as_str() {
                let methods = requests.entry(line["id"].to_string()).or_default();
                methods.push(method.to_owned());
            }
        }
        for line in recording
            .output
            .iter()
            .filter(|line| line["__harness"].is_null())
        {
            let (definitions, value) = match line["method"].as_str() {
                Some("session/update") => (vec!["SessionNotification"], &line["params"]),
                Some("session/request_permission") => {
                    (vec!["RequestPermissionRequest"], &line["params"])
                }
                Some("elicitation/create") => (vec!["CreateElicitationRequest"], &line["params"]),
                Some("$/cancel_request") => (vec!["CancelRequestNotification"], &line["params"]),
                Some(method) => panic!("{method} is not a method of clients"),
                None if line.get("error").is_some() => (vec!["Error"], &line["error"]),
                None => {
                    let methods = requests.get(&line["id"].to_string());
                    let methods = methods.into_iter().flatten();
                    let known = methods.map(|method| result_of(method));
                    let Some(definitions) = known.collect::<Option<Vec<_>>>() else {
                        continue;
                    };
                    (definitions, &line["result"])
                }
            };
            let complaints = definitions
                .iter()
                .map(|definition| published.complaint(definition, value));
            let complaints: Option<Vec<String>> = complaints.collect();
            assert_eq!(complaints, None, "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} lines were checked");
}
