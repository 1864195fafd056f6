//! Providers and runtimes against a real hub over a real socket, in both dialects and all wires.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/provider.rs"]
mod provider;

mod calls;
mod hostile;
mod logs;
mod runtimes;
mod takeover;
mod times;
mod vectors;

use std::time::Duration;

use common::Running;
use pinion_access::Mode;
use pinion_hub::{Limits, Settings};
use provider::{Stream, Wire};
use serde_json::{Value, json};

fn hub() -> Running {
    Running::start(Mode::OpenLocal)
}

/// Starts a hub with limits that are short enough for a test.
fn hub_with(change: impl FnOnce(&mut Limits)) -> Running {
    let mut settings = Settings::default();
    change(&mut settings.limits);
    Running::with(Mode::OpenLocal, settings)
}

/// Starts a hub without clips of its own.
fn hub_only() -> Running {
    let settings = Settings {
        mode: pinion_hub::Mode::HubOnly,
        ..Settings::default()
    };
    Running::with(Mode::OpenLocal, settings)
}

/// Opens a call that reads outputs as they arrive.
fn follow(hub: &Running, clip: &str, command: &str) -> Stream {
    let stream = Stream::open(hub, "InvokeStream", Wire::ConnectJson);
    stream.send(json!({"clip": clip, "command": command, "input": {}}));
    stream
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn unbase64(value: &Value) -> String {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Calls a clip on a new thread. Returns status and body.
fn invoke(hub: &Running, clip: &str, command: &str) -> std::thread::JoinHandle<(u16, Value)> {
    let (address, token) = (hub.address, hub.token.clone());
    let body = json!({"clipName": clip, "command": command, "input": {}}).to_string();
    std::thread::spawn(move || common::post(address, &token, "Invoke", &[], &body))
}

fn output(answer: &Value) -> Value {
    serde_json::from_str(&unbase64(&answer["output"])).unwrap()
}

fn aliases(hub: &Running) -> Vec<String> {
    let (_, answer) = hub.call("ListClips", "{}");
    let clips = answer["clips"].as_array().cloned().unwrap_or_default();
    clips
        .iter()
        .map(|clip| clip["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until `is_so` returns true; `what` names the condition.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
