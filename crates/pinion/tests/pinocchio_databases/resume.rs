//! Continued conversations: the model receives the stored turns, the user sees the stored timeline.

use pinion_testkit::{Exit, Frames, ModelServer};
use serde_json::{Value, json};

use super::{Home, answers, errors, finish, frames, ordinals, status};
use crate::support::{HANG, args, pinion};

const PROFILES: &str = "slug: local\nprofiles:\n  default:\n    slug: default\n    inference_settings:\n      api:\n        api_keys: {openai-api-key: test-key}\n        base_urls: {openai-base-url: BASE}\n        allow_http: {openai: true}\n        allow_local_networks: {openai: true}\n      chat: {engine: some-model, api_type: openai}\n";

/// Returns a home whose only model is a scripted server.
fn with_server(scenario: Value) -> (ModelServer, Home) {
    let server = ModelServer::start(scenario);
    let home = Home::new();
    let base = format!("{}/v1", server.base_url());
    let directory = home.sandbox.home().join(".config/pinocchio");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join("profiles.yaml"),
        PROFILES.replace("BASE", &base),
    )
    .unwrap();
    (server, home)
}

fn turn(text: &str) -> Value {
    json!({"steps": [{"text": text}]})
}

/// Returns the messages of a request, as `role: text`.
fn said(request: &Value) -> Vec<String> {
    let body = request.get("body").unwrap_or(request);
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    };
    messages
        .iter()
        .map(|message| {
            let role = message["role"].as_str().unwrap_or_default();
            format!("{role}: {}", text(&message["content"]))
        })
        .collect()
}

#[test]
fn a_conversation_is_resumed_from_its_last_final_turn() {
    let (server, home) = with_server(json!({"turns": [turn("One."), turn("Two.")]}));
    let (first, exit) = home.say("s", "first", &[]);
    assert_eq!((status(&first), exit), ("ok", Exit::Code(0)), "{first:?}");
    let (second, _) = home.say("s", "second", &["--resume"]);
    assert_eq!(answers(&second), ["Two."]);
    assert_eq!(
        said(&server.requests()[1]),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One.",
            "user: second"
        ]
    );
    // Both are shown, and the numbers continue.
    assert_eq!(ordinals(&second)[0], ordinals(&first).len() as u64 + 1);
    let kept = home.turns().latest("s", "final").unwrap().unwrap();
    assert_eq!(kept.turn.blocks.len(), 5);
    let first_kept = kept.turn.id.clone();
    assert!(!first_kept.is_empty());
}

#[test]
fn without_resume_the_model_starts_afresh_though_the_old_is_shown() {
    let (server, home) = with_server(json!({"turns": [turn("One."), turn("Two.")]}));
    home.say("s", "first", &[]);
    let (second, _) = home.say("s", "second", &[]);
    assert_eq!(
        said(&server.requests()[1]),
        ["system: Be brief.", "user: second"]
    );
    let shown = second[1]["snapshot"]["entities"].as_array().unwrap();
    let contents: Vec<&str> = shown
        .iter()
        .filter_map(|entity| entity["payload"]["content"].as_str())
        .collect();
    assert_eq!(contents, ["first", "One."]);
}

#[test]
fn a_failed_run_is_kept_as_failed_and_not_resumed() {
    let (server, home) = with_server(json!({"turns": [
        turn("One."), {"http": {"status": 400, "body": "no"}}, turn("Three.")]}));
    home.say("s", "first", &[]);
    let (failed, exit) = home.say("s", "second", &["--resume"]);
    assert_eq!((status(&failed), exit), ("failed", Exit::Code(1)));
    assert!(home.turns().latest("s", "failed").unwrap().is_some());
    let (third, _) = home.say("s", "third", &["--resume"]);
    assert_eq!(answers(&third), ["Three."]);
    assert_eq!(
        said(server.requests().last().unwrap()),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One.",
            "user: third"
        ]
    );
}

#[test]
fn requests_go_on_with_a_conversation_too() {
    let (server, home) =
        with_server(json!({"turns": [turn("One."), turn("Two."), turn("Three.")]}));
    home.say("s", "first", &[]);
    let mut process: Frames = home.start("s", &["--stdin-rpc", "--resume"]);
    for (id, prompt) in [("a", "second"), ("b", "third")] {
        let from = process.line_count();
        process.send(&json!({"requestId": id, "submit": {"prompt": prompt}}));
        let done = |line: &Value| line["done"].is_object() && line["requestId"] == id;
        process.find(from, 1, HANG, done).expect("it is done");
    }
    let (lines, exit) = finish(process);
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(answers(&lines), ["Two.", "Three."]);
    assert_eq!(
        said(&server.requests()[2]),
        [
            "system: Be brief.",
            "user: first",
            "assistant: One.",
            "user: second",
            "assistant: Two.",
            "user: third"
        ]
    );
    let kept = home.turns().latest("s", "final").unwrap().unwrap();
    assert_eq!(kept.turn.blocks.len(), 7);
}

#[test]
fn what_a_tool_gave_is_kept_as_json_and_told_as_it_was() {
    let call = json!({"tool": "bash", "args": {"command": "printf 'one\ntwo'"}, "id": "call_1"});
    let (server, home) =
        with_server(json!({"turns": [{"steps": [call]}, turn("One."), turn("Two.")]}));
    home.say("s", "first", &["--tools", "bash"]);
    let kept = home.turns().latest("s", "final").unwrap().unwrap();
    let result = |block: &pinion_history::Block| block.payload.get("result").cloned();
    let results: Vec<Value> = kept.turn.blocks.iter().filter_map(result).collect();
    assert_eq!(results, [json!("\"one\\ntwo\"")]);
    // The user sees its output.
    let show = ["turns", "show", "--turns-db", &home.path("turns.db")];
    let shown = pinion().command(&home.sandbox, &args(&show)).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("Result bash: one\ntwo\n"), "{shown}");
    home.say("s", "second", &["--resume"]);
    let asked = server.requests();
    let told = "tool: one\ntwo".to_owned();
    assert!(said(&asked[1]).contains(&told), "{:?}", said(&asked[1]));
    assert!(said(&asked[2]).contains(&told), "{:?}", said(&asked[2]));
}

#[test]
fn requests_are_kept_in_the_session_the_client_names() {
    let home = Home::new();
    let (turns, timeline) = (home.path("turns.db"), home.path("timeline.db"));
    let arguments = [
        "run-command",
        "say.yaml",
        "--stdin-rpc",
        "--turns-db",
        &turns,
        "--timeline-db",
        &timeline,
    ];
    let mut process = Frames::start(&pinion(), &home.sandbox, &args(&arguments));
    process.send(&json!({"sessionId": "mine", "requestId": "a", "submit": {"prompt": "hello"}}));
    process
        .find(0, 1, HANG, |line| line["done"].is_object())
        .expect("it is done");
    let seen = frames(&process);
    let (_, exit) = finish(process);
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(home.events("mine").len(), ordinals(&seen).len());
    assert!(home.turns().latest("mine", "final").unwrap().is_some());
}

#[test]
fn what_cannot_be_resumed_is_told() {
    let home = Home::new();
    let (lines, exit) = home.say("never", "hello", &["--resume"]);
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(errors(&lines), ["runner_init_failed"]);
    let message = lines[1]["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "no persisted final turn found for session \"never\""
    );
    for (arguments, words) in [
        (
            &["run-command", "say.yaml", "--rpc", "--resume"][..],
            "--resume requires --session-id",
        ),
        (
            &[
                "run-command",
                "say.yaml",
                "--rpc",
                "--resume",
                "--session-id",
                "s",
            ][..],
            "resume requires --turns-db or --turns-dsn",
        ),
    ] {
        let mut process = Frames::start(&pinion(), &home.sandbox, &args(arguments));
        process.close_stdin();
        assert_eq!(process.wait(HANG), Some(Exit::Code(1)));
        process.drain(HANG);
        assert!(process.stderr().contains(words), "{}", process.stderr());
        assert_eq!(process.line_count(), 0);
    }
}

#[test]
fn text_mode_keeps_turns_and_timeline_as_well() {
    let home = Home::new();
    let arguments = home.arguments("s", &[]);
    let mut process = pinion().start(&home.sandbox, &arguments);
    process.close_stdin();
    assert_eq!(process.wait(HANG), Some(Exit::Code(0)));
    assert!(home.events("s").len() > 4);
    assert!(home.turns().latest("s", "final").unwrap().is_some());
}
