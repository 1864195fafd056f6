//! Third-party clients against a hub: connect-node and connect-web from npm, gRPC from PyPI, curl.
//!
//! `cargo xtask test --all` installs them in the directories that `PINION_HUB_CLIENTS_DIR` and `PINION_GRPC_PYTHON`
//! name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{CLIP, Running, python_clip};
use pinion_access::Mode;
use serde_json::{Value, json};

fn hub() -> Running {
    let hub = Running::start(Mode::Secured);
    hub.install("todo", python_clip(CLIP).path());
    hub
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/interop/hub")
        .join(name)
}

fn schema(hub: &Running) -> PathBuf {
    let file = hub.root.path().join("hub.binpb");
    std::fs::write(&file, pinion_proto::HUB_DESCRIPTORS).unwrap();
    file
}

/// Runs a client to its end and returns its output.
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{errors}");
    said
}

#[test]
#[ignore = "needs node and packages from npm: cargo xtask test --all"]
fn every_transport_of_connect_node_and_connect_web_works() {
    let hub = hub();
    let url = format!("http://{}", hub.address);
    let packages = std::env::var_os("PINION_HUB_CLIENTS_DIR").expect("PINION_HUB_CLIENTS_DIR");
    let said = run(Command::new("node")
        .arg(script("connect.mjs").canonicalize().unwrap())
        .arg(schema(&hub))
        .args([url.as_str(), &hub.token, "provider"])
        .current_dir(packages));
    assert_eq!(said.lines().count(), 12, "{said}");
}

#[test]
#[ignore = "needs python3 and grpcio from PyPI: cargo xtask test --all"]
fn grpc_for_python_works() {
    let hub = hub();
    let address = hub.address.to_string();
    let python = std::env::var_os("PINION_GRPC_PYTHON").expect("PINION_GRPC_PYTHON");
    let said = run(Command::new(python)
        .arg(script("grpc_client.py"))
        .arg(schema(&hub))
        .args([address.as_str(), &hub.token, "provider"]));
    let kinds = [
        "unary",
        "server stream",
        "bidirectional stream",
        "provider stream",
    ];
    assert_eq!(said, kinds.map(|kind| format!("ok {kind}\n")).concat());
}

#[test]
#[ignore = "needs curl: cargo xtask test --all"]
fn curl_works() {
    let hub = hub();
    let call = |version: &str, method: &str, body: Value| -> Value {
        let said = run(Command::new("curl")
            .args(["--silent", "--show-error", version, "--data"])
            .arg(body.to_string())
            .args(["--header", "content-type: application/json", "--header"])
            .arg(format!("authorization: Bearer {}", hub.token))
            .arg(format!(
                "http://{}/pinix.v2.HubService/{method}",
                hub.address
            )));
        serde_json::from_str(&said).unwrap()
    };
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let clips = call(version, "ListClips", json!({}));
        assert_eq!(clips["clips"][0]["name"], "todo");
        let asked = json!({"clip": "todo", "command": "add", "input": {"title": "milk"}});
        let added = call(version, "Invoke", asked);
        assert_eq!(added["output"], "eyJpZCI6InQxIiwidGl0bGUiOiJtaWxrIn0=");
        let missing = call(
            version,
            "Invoke",
            json!({"clip": "ghost", "command": "add"}),
        );
        assert_eq!(missing["code"], "not_found");
    }
}
