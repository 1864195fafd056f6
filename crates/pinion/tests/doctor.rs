//! `pinion doctor` and `pinion --version` of the real binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::fs;
use std::process::{Output, Stdio};

use pinion_testkit::{ModelServer, Program, Sandbox};
use serde_json::{Value, json};
use support::{args, offline_sandbox, pinion};

fn run(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = pinion().command(sandbox, &args(arguments));
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_good_set_up_is_fine_as_text_and_as_json() {
    let sandbox = offline_sandbox(&json!({}));
    let ran = run(&sandbox, &["doctor"], &[]);
    let report = text(&ran);
    assert_eq!(ran.status.code(), Some(0), "{report}");
    assert!(
        report.ends_with("ok       nothing wrong was found\n"),
        "{report}"
    );
    for topic in ["version ", "files ", "models ", "shell ", "hub ", "kernel "] {
        assert!(
            report.lines().any(|line| line.starts_with(topic)),
            "{topic}: {report}"
        );
    }
    let ran = run(&sandbox, &["doctor", "--json"], &[]);
    let report = json_of(&ran);
    assert_eq!(
        (ran.status.code(), &report["problems"]),
        (Some(0), &json!(0))
    );
    assert!(report["checks"].as_array().unwrap().len() > 6);
    // Nothing was created on the way.
    assert!(!sandbox.home().join(".pinion").exists());
}

#[test]
fn what_is_wrong_is_found_and_ends_with_one() {
    let sandbox = offline_sandbox(&json!({"shellPath": "/nowhere/bash"}));
    sandbox.add_agent_files(&json!({"models.json": {"providers": {"local": {
        "baseUrl": "localhost:11434/v1", "api": "openai-completion", "apiKey": "none",
        "models": [{"id": "a"}, {"id": "b"}],
    }}}}));
    let file = sandbox.root().join("file");
    fs::write(&file, "").unwrap();
    let hub = sandbox.root().join("hub");
    let clip = sandbox.root().join("clip");
    fs::create_dir_all(&hub).unwrap();
    fs::create_dir_all(&clip).unwrap();
    fs::write(clip.join("run"), "").unwrap();
    let manifest = json!({"name": "broken", "version": "1.0.0", "runtime": "exec", "main": "run"});
    fs::write(clip.join("clip.json"), manifest.to_string()).unwrap();
    let records = json!({"clips": {"broken": {"path": clip}}});
    fs::write(hub.join("config.json"), records.to_string()).unwrap();
    let ran = run(
        &sandbox,
        &["doctor", "--json"],
        &[
            ("PINION_HUB_DIR", hub.to_str().unwrap()),
            ("TMPDIR", file.to_str().unwrap()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ],
    );
    assert_eq!(ran.status.code(), Some(1));
    let report = json_of(&ran);
    let checks = report["checks"].as_array().unwrap();
    for (topic, part) in [
        ("models", "the api \"openai-completion\""),
        ("models", "the baseUrl \"localhost:11434/v1\""),
        ("shell", "\"/nowhere/bash\""),
        ("files", "is not a directory"),
        ("clips", "is not executable"),
        ("traces", "\"grpc\""),
    ] {
        let found = checks.iter().any(|check| {
            check["topic"] == topic
                && check["finding"] == "problem"
                && check["text"].as_str().unwrap().contains(part)
        });
        assert!(found, "{topic} {part}: {report:#}");
    }
    assert_eq!(report["problems"], 6, "{report:#}");
}

#[test]
fn online_asks_each_provider_once_and_reports_those_that_fail() {
    let server = ModelServer::start(json!({"directives": true}));
    let sandbox = Sandbox::new(server.port());
    let ran = run(&sandbox, &["doctor"], &[]);
    assert_eq!(
        server.request_count(),
        0,
        "nothing is sent without --online"
    );
    let silent = text(&ran);
    let ran = run(&sandbox, &["doctor", "--online"], &[]);
    let report = text(&ran);
    assert_eq!(ran.status.code(), Some(0), "{report}\n{silent}");
    assert_eq!(server.request_count(), 4);
    assert!(
        report.contains("online   mock answers (mock-1)"),
        "{report}"
    );
    // No server listens there.
    let ran = run(&Sandbox::new(9), &["doctor", "--online"], &[]);
    let report = text(&ran);
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        report.contains("problem  mock did not answer a request to mock-1: "),
        "{report}"
    );
    assert!(
        report.contains("Check the key and the address."),
        "{report}"
    );
}

#[test]
fn the_version_is_one_number_with_its_build_behind_it() {
    let sandbox = offline_sandbox(&json!({}));
    let number = format!("{}\n", env!("CARGO_PKG_VERSION"));
    let version = text(&run(&sandbox, &["--version"], &[]));
    assert!(version.starts_with(&number), "{version}");
    for word in [
        "\ncommit ",
        "\ntarget ",
        "\nfeatures ",
        "\nprotocols  pi early, classic, modern; ",
    ] {
        assert!(version.contains(word), "{word}: {version}");
    }
    for arguments in [["--version", "--json"], ["--json", "-v"]] {
        let version = json_of(&run(&sandbox, &arguments, &[]));
        assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
        assert!(version["target"].as_str().unwrap().contains("linux"));
        assert_eq!(
            version["protocols"]["pi"],
            json!(["early", "classic", "modern"])
        );
        assert!(version["protocols"]["mcp"].as_array().unwrap().len() > 2);
    }
    // Clients of other programs parse the number alone.
    for name in ["pi", "pinocchio"] {
        let linked = Program::linked(env!("CARGO_BIN_EXE_pinion"), name);
        let mut command = linked.command(&sandbox, &args(&["--version"]));
        let ran = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(text(&ran), number, "{name}");
    }
}
