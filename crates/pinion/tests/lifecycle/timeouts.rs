//! A silent provider is distinguished from a slow one: every wait has a limit, and the error names it.

use std::time::Duration;

use pinion_testkit::fault::net::DeafPort;
use pinion_testkit::{ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, HANG};

fn settings(timeouts: &Value, first_byte: u64) -> Value {
    json!({"timeouts": timeouts,
           "retry": {"enabled": false, "provider": {"maxRetries": 0, "timeoutMs": first_byte}}})
}

/// Returns the error with which the run ended.
fn error(client: &Client, from: usize) -> String {
    let messages = client.wait_end(from);
    let last = messages.last().unwrap();
    assert_eq!(last["stopReason"], "error", "{last}");
    last["errorMessage"].as_str().unwrap_or_default().to_owned()
}

fn stalls(model: &str, at: &Value, settings: &Value) -> (String, Value) {
    let turn = json!({"steps": [{"text": "some wörds, möre wörds", "chunk": 2}],
                      "fault": {"at": at, "then": "stall"}});
    let server = ModelServer::start(json!({"turns": [turn]}));
    let sandbox = Sandbox::with_settings(server.port(), settings);
    let mut client = Client::start(sandbox, &["--mode", "rpc", "--model", model]);
    let from = client.prompt("go");
    let error = error(&client, from);
    // pinion closes the connection as well: nothing waits for the server any more.
    assert!(server.wait_until_idle(HANG), "the connection stays open");
    assert!(server.timings()[0].hung_up, "{model} {at}");
    let last = client.wait_end(from).pop().unwrap();
    (error, last)
}

const MODELS: [&str; 4] = [
    "mock/mock-1",
    "mock-chat/chat-1",
    "mock-resp/resp-1",
    "mock-gem/gem-1",
];

#[test]
fn l4_silence_before_the_first_byte_ends_with_a_named_error() {
    for model in MODELS {
        let (error, _) = stalls(
            model,
            &json!("connect"),
            &settings(&json!({"idleMs": 60_000}), 300),
        );
        assert_eq!(error, "Request timed out.", "{model}");
    }
}

#[test]
fn l4_silence_in_the_middle_ends_with_a_named_error_and_keeps_what_came() {
    for model in MODELS {
        for at in [
            json!("headers"),
            json!({"event": 4}),
            json!({"byte": 700}),
            json!("utf8"),
        ] {
            let (error, last) = stalls(model, &at, &settings(&json!({"idleMs": 300}), 60_000));
            assert!(error.contains("idle timeout"), "{model} {at}: {error}");
            if at == json!("utf8") {
                let text = last["content"][0]["text"].as_str().unwrap_or_default();
                assert!(text.starts_with("some w"), "{model}: {last}");
                assert!(!text.contains('\u{fffd}'), "{model}: {last}");
            }
        }
    }
}

#[test]
fn l4_a_trickle_that_never_ends_ends() {
    let turn = json!({"steps": [{"text": {"delta": "drip ", "count": 100_000}}], "pace_ms": 20});
    let server = ModelServer::start(json!({"turns": [turn]}));
    let timeouts = json!({"idleMs": 60_000, "totalMs": 600});
    let mut client = Client::of(&server, &settings(&timeouts, 60_000));
    let from = client.prompt("go");
    let error = error(&client, from);
    assert!(error.contains("not finished after"), "{error}");
    assert!(server.wait_until_idle(HANG));
}

#[test]
fn l4_a_host_that_does_not_answer_ends_with_a_named_error() {
    let port = DeafPort::open();
    let sandbox = Sandbox::with_settings(
        port.number(),
        &settings(&json!({"connectMs": 300, "idleMs": 60_000}), 60_000),
    );
    let mut client = Client::start(sandbox, &["--mode", "rpc"]);
    let from = client.prompt("go");
    let error = error(&client, from);
    assert!(error.contains("timed out"), "{error}");
}

#[test]
fn l4_a_pause_shorter_than_the_limit_is_no_failure() {
    let turn = json!({"steps": [{"text": ["slow", {"delay_ms": 400}, " but", {"delay_ms": 400}, " sure"]}]});
    let server = ModelServer::start(json!({"turns": [turn]}));
    let mut client = Client::of(&server, &settings(&json!({"idleMs": 4000}), 4000));
    let from = client.prompt("go");
    let last = client.wait_end(from).pop().unwrap();
    assert_eq!(last["content"][0]["text"], "slow but sure", "{last}");
}

#[test]
fn l4_a_compaction_that_stalls_ends_with_a_named_error() {
    let summary = json!({"match": {"no_tools": true}, "steps": ["half", {"stall": true}]});
    let server = ModelServer::start(json!({"turns": [{"steps": ["one"]}, summary]}));
    let mut settings = settings(&json!({"idleMs": 300}), 60_000);
    settings["compaction"] = json!({"keepRecentTokens": 1});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    client.wait_end(from);
    let answer = client.process.ask(json!({"type": "compact"}));
    assert_eq!(answer["success"], false, "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("idle timeout"), "{error}");
    assert_eq!(client.data("get_state")["isCompacting"], false);
}

#[test]
fn l4_a_server_that_asks_to_wait_for_hours_is_not_waited_for() {
    let busy = json!({"http": {"status": 429, "headers": {"retry-after": "7200"}}});
    let server = ModelServer::start(json!({"on_exhausted": "repeat_last", "turns": [busy]}));
    let settings = json!({"retry": {"enabled": false, "provider": {"maxRetries": 2}}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    let error = error(&client, from);
    assert!(error.contains("429") || error.contains("retry"), "{error}");
    assert!(client.process.wait(Duration::ZERO).is_none());
}
