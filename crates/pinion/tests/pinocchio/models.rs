//! Behaviour of real models, over each kind of interface: they think, refuse, break off in the middle of a call, call
//! tools.

use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::stage::{Home, payloads, said};

const KINDS: [&str; 4] = ["openai", "claude", "openai-responses", "gemini"];

#[test]
fn a_request_that_is_refused_is_a_failed_run_and_nothing_else() {
    for kind in KINDS {
        let server = ModelServer::start(json!({"turns": [
            {"http": {"status": 401, "body": {"error": {"message": "no such key"}}}}]}));
        let told = Home::of(&server, kind).say("hello", &[]);
        assert_eq!((told.status(), told.exit), ("failed", Exit::Code(1)));
        assert_eq!(
            told.names(),
            ["ChatUserMessageAccepted", "ChatRunStarted", "ChatRunFailed"],
            "{kind}"
        );
        let failed = payloads(&told.lines, "ChatRunFailed")[0];
        assert_eq!(
            failed["correlation"]["runId"], failed["messageId"],
            "{kind}"
        );
    }
}

#[test]
fn a_call_that_was_cut_off_is_not_run() {
    for kind in ["openai", "claude", "openai-responses"] {
        let server = ModelServer::start(json!({"turns": [
            {"steps": [{"tool": "bash", "raw_args": "{\"command\":\"touch ran", "id": "call_1"}]},
            {"steps": ["Oh."]}]}));
        let home = Home::of(&server, kind);
        let told = home.say("hello", &["--tools", "bash"]);
        assert_eq!(told.status(), "ok", "{kind}: {}", told.stderr);
        let result = payloads(&told.lines, "ChatToolResultReady")[0];
        assert_eq!(result["status"], "error", "{kind}: {result}");
        let words = result["result"].as_str().unwrap();
        assert!(
            words.starts_with("Error: Invalid arguments for tool \"bash\""),
            "{kind}: {words}"
        );
        assert!(!home.sandbox.work().join("ran").exists(), "{kind}");
    }
}

#[test]
fn thinking_over_completions_is_printed_once_and_on_lines_of_its_own() {
    let server = ModelServer::start(json!({"turns": [
        {"steps": [{"thinking": "3×4", "chunk": 2}, {"text": "12.", "chunk": 2}]}]}));
    let ran = Home::of(&server, "openai").run(&["run-command", "say.yaml"]);
    assert_eq!(ran.stdout, "3×4\n12.\n", "{}", ran.stderr);
}

/// Returns turns that call a command that prints this, and answer.
fn printing(text: &str) -> Value {
    let call = json!({"tool": "bash", "args": {"command": format!("printf '{text}'")}, "id": "call_1", "chunk": 5});
    json!({"turns": [{"steps": [call]}, {"steps": ["Done."]}]})
}

#[test]
fn the_result_of_a_tool_is_json() {
    for (printed, result) in [
        ("hi there", "\"hi there\""),
        ("{\"celsius\":-3}", "{\"celsius\":-3}"),
    ] {
        let server = ModelServer::start(printing(printed));
        let told = Home::of(&server, "openai").say("hello", &["--tools", "bash"]);
        assert_eq!(
            payloads(&told.lines, "ChatToolResultReady")[0]["result"],
            result
        );
        // The model receives the output of the tool.
        assert_eq!(
            said(&server.requests()[1]).last().unwrap(),
            &format!("tool: {printed}")
        );
    }
}

#[test]
fn arguments_are_always_told_as_what_is_new() {
    for mode in ["snapshot", "append"] {
        let server = ModelServer::start(printing("hi"));
        let more = ["--tools", "bash", "--patch-mode", mode];
        let told = Home::of(&server, "openai").say("hello", &more);
        let patches = payloads(&told.lines, "ChatToolArgumentsPatch");
        assert!(patches.len() > 2, "{mode}: {patches:?}");
        let mut arguments = String::new();
        for patch in patches {
            assert_eq!(patch["mode"], "CHAT_STREAM_PATCH_MODE_APPEND", "{mode}");
            arguments += patch["arguments"].as_str().unwrap();
        }
        let requested = payloads(&told.lines, "ChatToolCallRequested")[0];
        assert_eq!(requested["input"], arguments, "{mode}");
    }
}

#[test]
fn a_system_prompt_alone_is_something_to_ask() {
    let server = ModelServer::start(json!({"turns": [{"steps": ["Ahoy."]}]}));
    let home = Home::of(&server, "openai");
    home.write(
        "only.yaml",
        "name: only\nshort: Says nothing\nsystem-prompt: Greet like a sailor.\n",
    );
    let told = home.run(&["run-command", "only.yaml", "--rpc"]).told();
    assert_eq!(
        (told.status(), told.exit),
        ("ok", Exit::Code(0)),
        "{:?}",
        told.lines
    );
    let started = payloads(&told.lines, "ChatRunStarted")[0];
    assert_eq!(started["prompt"], "(input turn)");
    let answer = payloads(&told.lines, "ChatTextSegmentFinished")[0];
    assert_eq!(answer["content"], "Ahoy.");
    assert_eq!(
        said(&server.requests()[0]),
        ["system: Greet like a sailor."]
    );
}
