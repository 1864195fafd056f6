//! Every accepted run ends in exactly one terminal event, whatever fails, and the session continues after it.

use pinion_testkit::fault::answers::faults;
use pinion_testkit::fault::limits::{Limit, limited};
use pinion_testkit::{Exit, ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, args, check_runs, pinion, script};

/// Settings without retries and with short waits, so that a failure ends the run at once.
fn impatient() -> Value {
    json!({"retry": {"enabled": false, "provider": {"maxRetries": 0, "timeoutMs": 400}},
           "timeouts": {"connectMs": 400, "idleMs": 400}})
}

/// Sends one prompt per fault, each followed by one that works.
fn survive(model: &str) {
    let turns: Vec<Value> = faults()
        .into_iter()
        .flat_map(|fault| [fault, json!({"steps": ["fine"]})])
        .collect();
    let faults = turns.len() / 2;
    let server = ModelServer::start(json!({"turns": turns.clone()}));
    let sandbox = Sandbox::with_settings(server.port(), &impatient());
    let mut client = Client::start(sandbox, &["--mode", "rpc", "--model", model]);
    for number in 0..faults {
        let fault = &turns[number * 2];
        let from = client.prompt(&format!("prompt {number}"));
        let messages = client.wait_end(from);
        assert_eq!(messages[0]["role"], "user", "{model} {fault}: {messages:?}");
        assert!(messages.len() > 1, "{model} {fault}: {messages:?}");
        // The run is over when its end can be read: the next prompt is accepted at once.
        let from = client.prompt("and now?");
        let messages = client.wait_end(from);
        let last = messages.last().unwrap();
        assert_eq!(last["stopReason"], "stop", "{model} after {fault}: {last}");
        assert_eq!(
            last["content"][0]["text"], "fine",
            "{model} after {fault}: {last}"
        );
    }
    assert_eq!(client.finish(), Exit::Code(0));
    assert_eq!(check_runs(&client.lines()), Ok(faults * 2));
    // A call that was cut off is never made.
    assert!(!client.sandbox.work().join("ran").exists());
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_anthropic() {
    survive("mock/mock-1");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_chat() {
    survive("mock-chat/chat-1");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_responses() {
    survive("mock-resp/resp-1");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_gemini() {
    survive("mock-gem/gem-1");
}

#[test]
fn l2_a_run_ends_once_whatever_a_tool_does() {
    let calls = [
        json!({"tool": "nonsense", "args": {}}),
        json!({"tool": "bash", "args": {}}),
        json!({"tool": "bash", "rawArgs": "{\"command\": \"tru"}),
        json!({"tool": "bash", "args": {"command": "kill -9 $$"}}),
        json!({"tool": "bash", "args": {"command": "exit 255"}}),
        json!({"tool": "bash", "args": {"command": "head -c 3000000 /dev/urandom"}}),
        json!({"tool": "bash", "args": {"command": "exec 1>&- 2>&-; sleep 0.1"}}),
        json!({"tool": "bash", "args": {"command": "sleep 60", "timeout": 0.2}}),
        json!({"tool": "bash", "args": {"command": "kill -9 $PPID; sleep 0.2"}}),
        json!({"tool": "bash", "args": {"command": "echo still here"}}),
        json!({"tool": "read", "args": {"path": "/proc/self/mem"}}),
        json!({"tool": "read", "args": {"path": "/"}}),
        json!({"tool": "write", "args": {"path": "/proc/none/x", "content": "x"}}),
        json!({"tool": "edit", "args": {"path": "none", "oldText": "a", "newText": "b"}}),
    ];
    let mut client = Client::offline();
    for call in &calls {
        let from = client.prompt(&script(&json!({"turns": [call, {"text": "over"}]})));
        let messages = client.wait_end(from);
        assert_eq!(messages.len(), 4, "{call}: {messages:?}");
        assert_eq!(messages[2]["role"], "toolResult", "{call}");
        assert_eq!(messages[3]["stopReason"], "stop", "{call}: {}", messages[3]);
    }
    assert_eq!(client.finish(), Exit::Code(0));
    assert_eq!(check_runs(&client.lines()), Ok(calls.len()));
}

#[test]
fn l2_a_run_ends_once_when_retries_are_used_up() {
    let server = ModelServer::start(
        json!({"on_exhausted": "repeat_last", "turns": [{"http": {"status": 529}}]}),
    );
    let settings =
        json!({"retry": {"maxRetries": 2, "baseDelayMs": 20, "provider": {"maxRetries": 0}}});
    let mut client = Client::of(&server, &settings);
    let from = client.prompt("go");
    client.wait_for(from, &json!({"type": "auto_retry_end", "success": false}));
    assert_eq!(client.data("get_state")["isStreaming"], false);
    client.finish();
    assert_eq!(check_runs(&client.lines()), Ok(3));
    assert_eq!(server.request_count(), 3);
}

#[test]
fn l2_a_run_ends_once_when_the_disk_is_full() {
    let sandbox = crate::support::offline_sandbox(&json!({}));
    // Room for a few thousand bytes per file: the log stops growing in the middle of the session.
    let program = limited(&pinion(), &[Limit::FileBlocks(8)]);
    let arguments = args(&["--mode", "rpc", "--model", "offline/demo"]);
    let mut client = Client::around(program.start(&sandbox, &arguments), sandbox);
    for number in 0..4 {
        let from = client.prompt(&script(&json!({"deltas": 100, "size": 20})));
        let messages = client.wait_end(from);
        assert_eq!(messages[1]["stopReason"], "stop", "{number}: {messages:?}");
    }
    assert_eq!(client.finish(), Exit::Code(0));
    let lines = client.lines();
    assert_eq!(check_runs(&lines), Ok(4));
    let told = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    assert!(told.count() > 0, "nobody was told; {}", client.report(0));
}
