//! L2: every run ends in exactly one terminal event and one `done`, whatever the provider or a tool does, and the
//! conversation continues after it.

use pinion_testkit::fault::answers::faults;
use pinion_testkit::fault::limits::{Limit, limited};
use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::rules::ENDS;
use crate::stage::{Home, names, of_request, payloads};
use crate::support::{pinion, script};

/// Settings without retries and with short waits, so that a failure ends the run at once.
fn impatient() -> Value {
    json!({"retry": {"enabled": false, "provider": {"maxRetries": 0, "timeoutMs": 1200}},
           "timeouts": {"connectMs": 1200, "idleMs": 1200}})
}

/// Sends one prompt per fault, each followed by one that works.
fn survive(api_type: &str) {
    let turns: Vec<Value> = faults()
        .into_iter()
        .flat_map(|fault| [fault, json!({"steps": ["fine"]})])
        .collect();
    let server = ModelServer::start(json!({"turns": turns.clone()}));
    let home = Home::asking(&server, api_type, &impatient());
    let mut talk = home.talk(&["--patch-mode", "append", "--tools", "bash"]);
    for (number, fault) in turns.iter().step_by(2).enumerate() {
        let (bad, good) = (format!("bad-{number}"), format!("good-{number}"));
        let status = talk.say(&bad, &format!("prompt {number}"));
        let own = of_request(&talk.lines(), &bad);
        let told = names(&own);
        let ends: Vec<&&str> = told.iter().filter(|name| ENDS.contains(name)).collect();
        let errors = own
            .iter()
            .filter(|line| line["error"]["code"] == "run_failed");
        match status.as_str() {
            "failed" => {
                assert_eq!(ends, [&"ChatRunFailed"], "{api_type} {fault}");
                assert_eq!(errors.count(), 1, "{api_type} {fault}");
                let failed = payloads(&own, "ChatRunFailed")[0];
                assert!(
                    !failed["error"].as_str().unwrap_or_default().is_empty(),
                    "{api_type} {fault}: {failed}"
                );
            }
            // An empty answer, or one whose broken line a reader passes over, is an answer.
            "ok" => {
                assert_eq!(ends, [&"ChatRunFinished"], "{api_type} {fault}");
                assert_eq!(errors.count(), 0, "{api_type} {fault}");
            }
            other => panic!("{api_type} {fault}: {other}"),
        }
        let status = talk.say(&good, "and now?");
        let own = of_request(&talk.lines(), &good);
        assert_eq!(status, "ok", "{api_type} after {fault}: {own:?}");
        let text = payloads(&own, "ChatTextSegmentFinished");
        assert_eq!(text[0]["content"], "fine", "{api_type} after {fault}");
    }
    assert_eq!(talk.finish(), Exit::Code(0));
    // A call that was cut off is never made.
    assert!(!talk.home.sandbox.work().join("ran").exists());
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_completions() {
    survive("openai");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_messages() {
    survive("claude");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_responses() {
    survive("openai-responses");
}

#[test]
fn l2_a_run_ends_once_whatever_the_provider_does_gemini() {
    survive("gemini");
}

#[test]
fn l2_a_run_ends_once_whatever_a_tool_does() {
    let calls = [
        json!({"tool": "nonsense", "args": {}}),
        json!({"tool": "bash", "args": {}}),
        json!({"tool": "bash", "rawArgs": "{\"command\": \"tru"}),
        json!({"tool": "bash", "args": {"command": "kill -9 $$"}}),
        json!({"tool": "bash", "args": {"command": "exit 255"}}),
        json!({"tool": "bash", "args": {"command": "head -c 300000 /dev/urandom"}}),
        json!({"tool": "bash", "args": {"command": "sleep 60", "timeout": 0.2}}),
        json!({"tool": "bash", "args": {"command": "echo still here"}}),
        json!({"tool": "read", "args": {"path": "/proc/self/mem"}}),
        json!({"tool": "write", "args": {"path": "/proc/none/x", "content": "x"}}),
    ];
    let mut talk = Home::offline().talk(&["--patch-mode", "append", "--tools", "bash,read"]);
    for (number, call) in calls.iter().enumerate() {
        let id = format!("r{number}");
        assert_eq!(
            talk.say(&id, &script(&json!({"turns": [call, {"text": "over"}]}))),
            "ok",
            "{call}"
        );
        let own = of_request(&talk.lines(), &id);
        assert_eq!(
            payloads(&own, "ChatTextSegmentFinished")[0]["content"],
            "over",
            "{call}"
        );
        let snapshot = &own[own.len() - 2]["snapshot"]["entities"];
        let calls = snapshot
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["kind"] == "ChatToolCall");
        for entity in calls {
            assert_eq!(entity["payload"]["status"], "completed", "{call}: {entity}");
            assert_eq!(entity["payload"].get("executing"), None, "{call}: {entity}");
        }
    }
    assert_eq!(talk.finish(), Exit::Code(0));
}

#[test]
fn l2_an_overload_is_tried_again_and_only_the_last_try_counts() {
    let settings =
        json!({"retry": {"maxRetries": 3, "baseDelayMs": 10, "provider": {"maxRetries": 0}}});
    let overloaded = json!({"http": {"status": 529}});
    let server =
        ModelServer::start(json!({"turns": [overloaded, overloaded, {"steps": ["fine"]}]}));
    let told = Home::asking(&server, "claude", &settings).say("go", &["--patch-mode", "append"]);
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{told:?}"
    );
    assert_eq!(server.request_count(), 3);
    // An attempt that broke in the middle has sent frames, which are closed before the next begins.
    let broken =
        json!({"steps": ["ha", {"error": {"type": "overloaded_error", "message": "Overloaded"}}]});
    let server = ModelServer::start(json!({"turns": [broken, {"steps": ["fine"]}]}));
    let told = Home::asking(&server, "claude", &settings).say("go", &["--patch-mode", "append"]);
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{told:?}"
    );
    let texts: Vec<&Value> = payloads(&told.lines, "ChatTextSegmentFinished");
    assert_eq!(
        texts.iter().map(|it| &it["content"]).collect::<Vec<_>>(),
        [&json!("ha"), &json!("fine")]
    );
    // And when all are used up, the run has failed, once.
    let server = ModelServer::start(json!({"on_exhausted": "repeat_last", "turns": [overloaded]}));
    let told = Home::asking(&server, "claude", &settings).say("go", &[]);
    assert_eq!(
        (told.status(), told.exit),
        ("failed", Exit::Code(1)),
        "{told:?}"
    );
    assert_eq!(server.request_count(), 4);
}

#[test]
fn l2_nobody_at_the_address() {
    let server = ModelServer::start(json!({}));
    let home = Home::asking(&server, "openai", &impatient());
    drop(server);
    let told = home.say("go", &[]);
    assert_eq!(
        (told.status(), told.exit),
        ("failed", Exit::Code(1)),
        "{told:?}"
    );
    assert_eq!(
        told.names(),
        ["ChatUserMessageAccepted", "ChatRunStarted", "ChatRunFailed"]
    );
}

#[test]
fn l2_a_file_of_frames_that_cannot_grow_is_no_reason_to_stop() {
    let home = Home::offline();
    // Room for a few thousand bytes per file.
    let program = limited(&home.program(pinion()), &[Limit::FileBlocks(8)]);
    let what = script(&json!({"deltas": 200, "size": 20}));
    let arguments = [
        "run-command",
        "say.yaml",
        "--rpc",
        "--what",
        &what,
        "--debug-events-jsonl",
        "frames.jsonl",
    ];
    let told = home.run_as(&program, &arguments, b"").told();
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{}",
        told.stderr
    );
    let warned = told.stderr.contains("--debug-events-jsonl is not complete");
    assert!(warned, "nobody was told: {}", told.stderr);
}
