//! Time limits: which party set them, which messages count as activity, and peers that do not read.

use std::time::Duration;

use pinion_access::Mode;
use pinion_hub::Settings;
use serde_json::json;

use super::common::{self, Running};
use super::provider::{Stream, Wire};
use super::{aliases, base64, eventually, hub_with, output};

fn hub_with_idle_timeout(timeout: Duration) -> Running {
    let settings = Settings {
        idle_timeout: Some(timeout),
        ..Settings::default()
    };
    Running::with(Mode::OpenLocal, settings)
}

/// Makes a call with a time limit in milliseconds.
fn call(hub: &Running, limit: &'static str) -> std::thread::JoinHandle<(u16, serde_json::Value)> {
    let (address, token) = (hub.address, hub.token.clone());
    let body = json!({"clipName": "todo", "command": "go"}).to_string();
    std::thread::spawn(move || {
        let limit = [("connect-timeout-ms", limit)];
        common::post(address, &token, "Invoke", &limit, &body)
    })
}

#[test]
fn a_caller_sees_only_its_own_limit_reported_as_its_own() {
    let hub = hub_with_idle_timeout(Duration::from_secs(1));
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "todo"}]));
    // The clip's own limit.
    for code in ["timeout", "deadline_exceeded"] {
        let asked = call(&hub, "60000");
        let id = stream.message_with("invokeCommand")["invokeCommand"]["requestId"].clone();
        let error = json!({"code": code, "message": "the page took too long"});
        stream.send(json!({"invokeResult": {"requestId": id, "error": error}}));
        let (status, body) = asked.join().unwrap();
        assert_eq!(status, 504);
        assert_eq!(body["message"], "the page took too long");
    }
    // The hub's limit.
    let (_, body) = call(&hub, "60000").join().unwrap();
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("no output or input for"), "{message}");
    // The caller's limit.
    let (_, body) = call(&hub, "200").join().unwrap();
    assert_eq!(body["message"], "invocation timed out after 200 ms");
}

#[test]
fn a_caller_that_sends_is_not_idle() {
    let hub = hub_with_idle_timeout(Duration::from_secs(1));
    for wire in [Wire::ConnectJson, Wire::Grpc] {
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "todo"}]));
        let caller = Stream::open(&hub, "InvokeStream", wire);
        caller.send(json!({"start": {"clipName": "todo", "command": "upload"}}));
        let command = stream.message_with("invokeCommand")["invokeCommand"].clone();
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(200));
            caller.send(json!({"chunk": {"data": base64("1")}}));
            stream.message_with("invokeInput");
        }
        let id = &command["requestId"];
        let result = json!({"requestId": id, "output": base64("7"), "done": true});
        stream.send(json!({ "invokeResult": result }));
        assert_eq!(output(&caller.message()), 7);
        // A caller that stops sending is idle.
        let caller = Stream::open(&hub, "InvokeStream", wire);
        caller.send(json!({"start": {"clipName": "todo", "command": "upload"}}));
        caller.send(json!({"chunk": {"data": base64("1")}}));
        assert_eq!(caller.end().unwrap_err().0, "deadline_exceeded");
    }
}

#[test]
fn a_peer_that_sends_pings_but_does_not_read_times_out() {
    let hub = hub_with(|limits| {
        limits.heartbeat_timeout = Duration::from_millis(500);
        limits.heartbeat_interval = Duration::from_millis(200);
        limits.outgoing = 16;
    });
    for wire in Wire::ALL {
        let stream = Stream::open_without_reading(&hub, "ProviderStream", wire);
        stream.send(json!({"register": {"providerName": "one", "clips": [{"alias": "a"}]}}));
        eventually("it is there", || aliases(&hub) == ["a"]);
        let ping = stream.encode(&json!({"ping": {"sentAtUnixMs": "1"}}));
        for _ in 0..50_000 {
            stream.send_raw(&ping);
        }
        eventually("it is gone", || aliases(&hub).is_empty());
        let runtime = Stream::open_without_reading(&hub, "RuntimeStream", wire);
        runtime.send(json!({"register": {"name": "one"}}));
        eventually("the runtime is there", || is_there(&hub));
        let ping = runtime.encode(&json!({"ping": {"sentAtUnixMs": "1"}}));
        for _ in 0..50_000 {
            runtime.send_raw(&ping);
        }
        eventually("the runtime is gone", || !is_there(&hub));
    }
}

fn is_there(hub: &Running) -> bool {
    let (_, answer) = hub.call("ListProviders", "{}");
    let providers = answer["providers"].as_array().cloned();
    let mut providers = providers.unwrap_or_default().into_iter();
    providers.any(|it| it["name"] == "one")
}
