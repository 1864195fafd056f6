//! Keys are only in the headers of requests, and nowhere else.

use std::fs;
use std::path::Path;

use pinion_testkit::{Exit, ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, args, pinion};

/// Three keys, each passed in another way.
const FROM_ENVIRONMENT: &str = "sk-planted-AAAA-0123456789abcdef0123456789";
const FROM_AUTH_FILE: &str = "sk-planted-BBBB-0123456789abcdef0123456789";
const FROM_MODELS_FILE: &str = "sk-planted-CCCC-0123456789abcdef0123456789";
const FROM_HEADERS: &str = "sk-planted-DDDD-0123456789abcdef0123456789";
const ALL: [&str; 4] = [
    FROM_ENVIRONMENT,
    FROM_AUTH_FILE,
    FROM_MODELS_FILE,
    FROM_HEADERS,
];

fn sandbox(server: &ModelServer) -> Sandbox {
    let sandbox = Sandbox::with_settings(
        server.port(),
        &json!({"retry": {"enabled": false, "provider": {"maxRetries": 0}},
                "defaultProvider": "one", "defaultModel": "m"}),
    );
    let provider = |key: Value| {
        let mut provider = json!({"baseUrl": server.base_url(), "api": "anthropic-messages",
            "models": [{"id": "m", "name": "M", "contextWindow": 200_000, "maxTokens": 1000}]});
        for (name, value) in key.as_object().unwrap() {
            provider[name] = value.clone();
        }
        provider
    };
    sandbox.add_agent_files(&json!({
        "models.json": {"providers": {
            "one": provider(json!({"apiKey": "PLANTED_KEY"})),
            "two": provider(json!({"apiKey": "unused"})),
            "three": provider(json!({"apiKey": FROM_MODELS_FILE, "headers": {"x-extra-key": FROM_HEADERS}})),
        }},
        "auth.json": {"two": {"type": "api_key", "key": FROM_AUTH_FILE}},
    }));
    sandbox
}

/// Collects the files below a directory that contain a key, except those in which the user stores it.
fn holding(directory: &Path, key: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            holding(&path, key, found);
        } else if !["models.json", "auth.json"].contains(&name.as_str()) {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes
                .windows(key.len())
                .any(|window| window == key.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
}

fn nothing_leaked(client: &Client, server: &ModelServer, when: &str) {
    for key in ALL {
        for line in client.lines() {
            assert!(
                !line.to_string().contains(key),
                "{when}: on standard output: {line}"
            );
        }
        assert!(
            !client.process.stderr().contains(key),
            "{when}: on standard error"
        );
        for request in server.requests() {
            assert!(
                !request["body"].to_string().contains(key),
                "{when}: sent to the model: {}",
                request["body"]
            );
        }
        let mut files = Vec::new();
        holding(client.sandbox.root(), key, &mut files);
        assert!(files.is_empty(), "{when}: written to {files:?}");
    }
}

fn start(server: &ModelServer, model: &str) -> Client {
    let sandbox = sandbox(server);
    let mut program = pinion();
    program
        .environment
        .push(("PLANTED_KEY".into(), FROM_ENVIRONMENT.into()));
    let process = program.start(&sandbox, &args(&["--mode", "rpc", "--model", model]));
    Client::around(process, sandbox)
}

fn echoed(key: &str) -> Value {
    json!({"http": {"status": 401, "body": {"error": {
        "message": format!("the key {key} is not welcome (Authorization: Bearer {key})")}}}})
}

#[test]
fn d6_a_key_that_a_tool_prints_is_masked_everywhere() {
    for (model, key) in [
        ("one/m", FROM_ENVIRONMENT),
        ("two/m", FROM_AUTH_FILE),
        ("three/m", FROM_MODELS_FILE),
    ] {
        let print = format!(
            "printf '%s\\n' {}; seq 1 20000",
            key.replace("planted", "plan''ted")
        );
        let server = ModelServer::start(json!({"turns": [
            {"steps": [{"tool": "bash", "args": {"command": print}}]},
            {"steps": [{"tool": "bash", "args": {"command": "printenv PLANTED_KEY; exit 3"}}]},
            {"steps": [{"tool": "read", "args": {"path": "notes.txt"}}]},
            {"steps": ["fine"]},
        ]}));
        let mut client = start(&server, model);
        // A file of the user's that the agent may read; its content belongs to the user.
        let notes = client.sandbox.work().join("notes.txt");
        fs::write(&notes, format!("remember {key}\n")).unwrap();
        let from = client.prompt("go");
        let messages = client.wait_end(from);
        assert_eq!(
            messages.last().unwrap()["stopReason"],
            "stop",
            "{messages:?}"
        );
        fs::remove_file(&notes).unwrap();
        client
            .process
            .ask(json!({"type": "bash", "command": print}));
        client.data("get_messages");
        client.data("get_entries");
        client
            .process
            .ask(json!({"type": "export_html", "outputPath": "page.html"}));
        assert_eq!(client.finish(), Exit::Code(0));
        nothing_leaked(&client, &server, model);
        // The key was used nevertheless.
        assert!(
            server.requests()[0]["headers"].to_string().contains(key),
            "{model}"
        );
    }
}

#[test]
fn d6_a_key_that_a_provider_repeats_is_masked_everywhere() {
    for (model, key) in [
        ("one/m", FROM_ENVIRONMENT),
        ("two/m", FROM_AUTH_FILE),
        ("three/m", FROM_MODELS_FILE),
    ] {
        let server = ModelServer::start(json!({"turns": [
            echoed(key),
            {"steps": ["a", {"error": {"type": "api_error", "message": format!("bad key {key}")}}]},
            {"steps": ["fine"]},
        ]}));
        let mut client = start(&server, model);
        for _ in 0..3 {
            let from = client.prompt("go");
            client.wait_end(from);
        }
        client.data("get_messages");
        assert_eq!(client.finish(), Exit::Code(0));
        nothing_leaked(&client, &server, model);
    }
}

#[test]
fn d6_a_key_in_a_prompt_is_masked_everywhere() {
    let server = ModelServer::start(json!({"turns": [{"steps": ["fine"]}]}));
    let mut client = start(&server, "one/m");
    let from = client.prompt(&format!("use {FROM_ENVIRONMENT} please"));
    client.wait_end(from);
    client
        .process
        .ask(json!({"type": "set_session_name", "name": format!("with {FROM_ENVIRONMENT}")}));
    client.data("get_state");
    assert_eq!(client.finish(), Exit::Code(0));
    nothing_leaked(&client, &server, "prompt");
}

#[test]
fn d6_what_models_are_configured_with_is_not_shown_to_clients() {
    let server = ModelServer::start(json!({}));
    let mut client = start(&server, "three/m");
    client.data("get_state");
    client.data("get_available_models");
    client.data("cycle_model");
    client
        .process
        .ask(json!({"type": "set_model", "provider": "three", "modelId": "m"}));
    assert_eq!(client.finish(), Exit::Code(0));
    nothing_leaked(&client, &server, "models");
}

#[test]
fn d6_words_for_people_hold_no_key_either() {
    let server = ModelServer::start(
        json!({"on_exhausted": "repeat_last", "turns": [echoed(FROM_ENVIRONMENT)]}),
    );
    let sandbox = sandbox(&server);
    let mut program = pinion();
    program
        .environment
        .push(("PLANTED_KEY".into(), FROM_ENVIRONMENT.into()));
    for arguments in [
        &["-p", "--verbose", "go"][..],
        &["--mode", "json", "go"][..],
        &["--list-models"][..],
        &["models"][..],
        &["doctor"][..],
        &["sessions", "list"][..],
    ] {
        let output = program
            .command(&sandbox, &args(arguments))
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        for key in ALL {
            assert!(!text.contains(key), "{arguments:?}: {text}");
        }
    }
}
