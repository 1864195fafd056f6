//! Clients and servers made with the official MCP packages from npm and PyPI, against pinion's gateway and mounts. The
//! drivers are in `tests/interop/mcp`. Needs the packages; `cargo xtask test --all` installs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_clip::logs::ClipLog;
use pinion_mcp::{Mount, MountConfig, Target};
use serde_json::{Value, json};

const PROBE: &str = env!("CARGO_BIN_EXE_mcp-probe");

fn driver(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/mcp");
    path.join(name)
}

fn installed(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    PathBuf::from(path.unwrap_or_else(|| panic!("{variable} says where the packages are")))
}

fn npm() -> PathBuf {
    installed("PINION_MCP_PACKAGES")
}

fn python() -> PathBuf {
    installed("PINION_MCP_PYTHON")
}

/// Runs a driver to its end.
fn drive(command: &mut Command, words: &[&str]) {
    let output = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.trim() == "done",
        "{command:?}\n{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The gateway over HTTP, until this is dropped.
struct Served(Child, String);

impl Served {
    fn new(exposes: &str) -> Self {
        Self::over("http", exposes)
    }

    fn over(way: &str, exposes: &str) -> Self {
        let mut served = Command::new(PROBE)
            .args(["gateway", way, exposes])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(served.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        Self(served, url.trim().to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn node_client(generation: &str) {
    let node = || {
        let mut node = Command::new("node");
        node.arg(driver("client.mjs")).arg(npm()).arg(generation);
        node
    };
    drive(&mut node(), &["stdio", PROBE, "gateway", "stdio", "hub"]);
    let served = Served::new("hub");
    drive(&mut node(), &["http", &served.1, "secret"]);
}

#[test]
#[ignore = "needs @modelcontextprotocol/sdk from npm"]
fn the_client_of_the_sdk_from_npm() {
    node_client("sdk");
}

#[test]
#[ignore = "needs @modelcontextprotocol/client from npm"]
fn the_newer_client_from_npm() {
    node_client("client");
}

#[test]
#[ignore = "needs mcp from PyPI"]
fn the_client_from_pypi_in_both_eras() {
    for mode in ["auto", "legacy"] {
        let client = || {
            let mut client = Command::new(python());
            client.arg(driver("client.py")).arg(mode);
            client
        };
        drive(&mut client(), &["stdio", PROBE, "gateway", "stdio", "todo"]);
        let served = Served::new("todo");
        drive(&mut client(), &["http", &served.1, "secret"]);
    }
}

async fn mount(words: Vec<std::ffi::OsString>) {
    let arguments = vec![pinion_process::GUARDIAN_ARGUMENT.into()];
    pinion_process::set_guardian(PROBE.into(), arguments);
    let target = Target::Command {
        words,
        directory: std::env::temp_dir(),
        variables: Vec::new(),
        pass: Vec::new(),
    };
    let mount = Mount::new(MountConfig::new("lab", target), ClipLog::in_memory().into());
    let seen = mount.inspect().await.unwrap();
    let manifest = &seen.manifest;
    let names: Vec<_> = manifest
        .commands
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["add", "fail", "greet", "picture"]);
    assert_eq!(
        (manifest.package.as_str(), manifest.version.as_str()),
        ("lab", "3.1")
    );
    assert_eq!(manifest.patterns, ["Add what you like."]);
    let add = manifest.command("add").unwrap();
    assert_eq!(add.description, "Adds two numbers.");
    let schema: Value = serde_json::from_str(&add.input).unwrap();
    assert_eq!(schema["required"], json!(["a", "b"]));

    let ask = async |command: &str, input: Value| {
        let answers = mount.invoke(command, Bytes::from(input.to_string()), None);
        let answers: Vec<_> = answers.collect().await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer = answers.into_iter().next().unwrap();
        answer.map(|answer| serde_json::from_slice::<Value>(&answer).unwrap())
    };
    assert_eq!(
        ask("add", json!({"a": 2, "b": 3})).await.unwrap(),
        json!({"result": 5})
    );
    assert_eq!(
        ask("greet", json!({"name": "Ada"})).await.unwrap(),
        json!("Hello Ada")
    );
    let picture = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    assert_eq!(ask("picture", json!({})).await.unwrap(), picture);
    let failed = ask("fail", json!({})).await.unwrap_err();
    assert!(failed.failure().message.contains("it rained"), "{failed}");
    let wrong = ask("add", json!({"a": "x"})).await.unwrap_err();
    assert!(!wrong.failure().message.is_empty());
    let log = mount.logs().tail(100);
    assert!(
        log.iter()
            .any(|line| line.message.contains("adding 2 and 3")),
        "{log:?}"
    );
    mount.stop().await;
}

#[tokio::test]
#[ignore = "needs mcp from PyPI"]
async fn a_server_from_pypi_is_mounted() {
    mount(vec![python().into(), driver("server.py").into()]).await;
}

#[tokio::test]
#[ignore = "needs @modelcontextprotocol/sdk from npm"]
async fn a_server_from_npm_is_mounted() {
    mount(vec![
        "node".into(),
        driver("server.mjs").into(),
        npm().into(),
    ])
    .await;
}

/// Runs a scenario of the official conformance suite. Fails if a check fails that is not in `untestable`, the checks
/// that need a feature that clips lack.
fn conformance(side: &[&str], scenario: &str, version: &str, untestable: &[&str]) {
    let results = tempfile::tempdir().unwrap();
    let suite = installed("PINION_MCP_CONFORMANCE")
        .join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(installed("PINION_NODE"))
        .arg(suite)
        .args(side)
        .args(["--scenario", scenario, "--spec-version", version, "-o"])
        .arg(results.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut checks = 0;
    for run in std::fs::read_dir(results.path()).unwrap() {
        let file = run.unwrap().path().join("checks.json");
        let found: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for check in found {
            let id = check["id"].as_str().unwrap_or_default();
            checks += 1;
            assert!(
                check["status"] != "FAILURE" || untestable.contains(&id),
                "{scenario} of {version}: {check}\n{printed}"
            );
        }
    }
    assert!(
        checks > 0,
        "{scenario} of {version} checked nothing\n{printed}"
    );
}

#[test]
#[ignore = "needs @modelcontextprotocol/conformance from npm"]
fn the_conformance_suite_for_servers() {
    let served = Served::over("open", "conformance");
    let side = [
        "server",
        "--url",
        &served.1.replace("127.0.0.1", "localhost"),
    ];
    for scenario in [
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "json-schema-2020-12",
        "server-sse-polling",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ] {
        conformance(&side, scenario, "2025-11-25", &[]);
    }
    for scenario in [
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "json-schema-2020-12",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "http-header-validation",
        "http-custom-header-server-validation",
    ] {
        conformance(&side, scenario, "2026-07-28", &[]);
    }
    // These checks need tools that log, ask the client or demand a capability of it.
    let untestable = [
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    ];
    conformance(&side, "server-stateless", "2026-07-28", &untestable);
    // These checks need prompts and resources.
    let untestable = [
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    ];
    conformance(&side, "caching", "2026-07-28", &untestable);
}

#[test]
#[ignore = "needs @modelcontextprotocol/conformance from npm"]
fn the_conformance_suite_for_clients() {
    let command = format!("{PROBE} client");
    let side = ["client", "--command", &command];
    for scenario in ["initialize", "tools_call", "sse-retry"] {
        conformance(&side, scenario, "2025-11-25", &[]);
    }
    for scenario in [
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ] {
        conformance(&side, scenario, "2026-07-28", &[]);
    }
}
