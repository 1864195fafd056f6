//! Shell pipelines as in scripts of Pinocchio's users, run by a shell with jq against pinion, called by Pinocchio's
//! name.

use std::process::{Command, Stdio};

use pinion_testkit::{Exit, Program};
use serde_json::{Value, json};

use crate::stage::Home;
use crate::support::{args, script};

/// Runs a pipeline and returns its output and the exit of its last program. The shell finds pinion as `pinocchio`.
fn shell(home: &Home, pipeline: &str) -> (String, Exit) {
    shell_with(home, "pinocchio", pipeline)
}

/// Runs a pipeline in a shell that finds pinion by this name.
fn shell_with(home: &Home, name: &str, pipeline: &str) -> (String, Exit) {
    let linked = Program::linked(env!("CARGO_BIN_EXE_pinion"), name);
    let link = std::path::PathBuf::from(&linked.command[0]);
    let path = format!(
        "{}:{}",
        link.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let program = home.program(Program::new("bash"));
    let mut command: Command = program.command(&home.sandbox, &args(&["-c", pipeline]));
    let output = command
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, Exit::of(output.status))
}

/// Returns a home in which `my-command.yaml` makes the built-in model answer with this.
fn saying(what: &Value) -> Home {
    let home = Home::offline();
    let command = json!({"name": "my-command", "short": "Mine", "prompt": script(what)});
    home.write("my-command.yaml", &command.to_string());
    home
}

/// Parses consecutive JSON values.
fn values(text: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.map(Result::unwrap).collect()
}

fn answer() -> Home {
    saying(
        &json!([{"think": "Hm."}, {"text": "One. ", "paceMs": 20}, {"text": "Two.", "paceMs": 20}]),
    )
}

#[test]
#[ignore = "needs bash and jq: cargo xtask test --all"]
fn pipelines_of_scripts_work() {
    patches_by_name_print_the_text_as_it_grows();
    patches_by_type_are_the_same();
    final_segments_are_the_answer();
    tool_payloads_are_found_by_their_type();
    ordinals_are_numbers_in_quotes();
    a_run_that_ends_is_done();
    a_terminal_error_is_found_and_the_exit_is_that_of_the_program();
    requests_written_by_jq_are_served();
    the_guide_is_right();
}

fn patches_by_name_print_the_text_as_it_grows() {
    let (text, exit) = shell(
        &answer(),
        r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq -r '
      select(.uiEvent.name == "ChatTextPatch")
      | .uiEvent.payload.text
    '"#,
    );
    assert_eq!(exit, Exit::Code(0));
    let printed: Vec<&str> = text.lines().collect();
    assert_eq!(printed.last(), Some(&"One. Two."), "{text}");
    for pair in printed.windows(2) {
        assert!(pair[1].starts_with(pair[0]), "{text}");
    }
}

fn patches_by_type_are_the_same() {
    let home = answer();
    let (text, exit) = shell(
        &home,
        r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq -r '
      select(.uiEvent.payload["@type"] == "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch")
      | .uiEvent.payload.text
    '"#,
    );
    assert_eq!(
        (text.lines().last(), exit),
        (Some("One. Two."), Exit::Code(0))
    );
    // With appended patches, the pieces are the text.
    let (text, exit) = shell(
        &home,
        r#"pinocchio run-command ./my-command.yaml --rpc --patch-mode append | jq -j 'select(.uiEvent.name == "ChatTextPatch") | .uiEvent.payload.text'"#,
    );
    assert_eq!((text.as_str(), exit), ("One. Two.", Exit::Code(0)));
}

fn final_segments_are_the_answer() {
    let (text, exit) = shell(
        &answer(),
        r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq -r '
      select(.uiEvent.name == "ChatTextSegmentFinished")
      | select(.uiEvent.payload.role == "assistant")
      | .uiEvent.payload.content // .uiEvent.payload.text
    '"#,
    );
    assert_eq!((text.as_str(), exit), ("One. Two.\n", Exit::Code(0)));
}

fn tool_payloads_are_found_by_their_type() {
    let home = saying(
        &json!({"turns": [{"tool": "bash", "args": {"command": "echo hi"}}, {"text": "Done."}]}),
    );
    // jq complains about frames without a payload and continues.
    let (text, _) = shell(
        &home,
        r#"pinocchio run-command ./my-command.yaml --output jsonl --tools bash \
  | jq '
      select(.uiEvent.payload["@type"]? | test("pinocchio.chatapp.v1.ChatTool"))
      | .uiEvent
    '"#,
    );
    let found = values(&text);
    let names: Vec<&str> = found
        .iter()
        .filter_map(|event| event["name"].as_str())
        .collect();
    assert_eq!(names.first(), Some(&"ChatToolCallStarted"), "{text}");
    for name in [
        "ChatToolArgumentsPatch",
        "ChatToolCallRequested",
        "ChatToolExecutionStarted",
        "ChatToolResultReady",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(names.last(), Some(&"ChatToolCallFinished"), "{text}");
    let (text, exit) = shell(
        &home,
        r#"pinocchio run-command ./my-command.yaml --rpc --tools bash | jq -r 'select(.uiEvent.payload["@type"] == "type.googleapis.com/pinocchio.chatapp.v1.ChatToolResultReady") | .uiEvent.payload.result | fromjson'"#,
    );
    assert_eq!((text.trim(), exit), ("hi", Exit::Code(0)));
}

fn ordinals_are_numbers_in_quotes() {
    let (text, exit) = shell(
        &answer(),
        r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq 'select(.uiEvent) | .uiEvent.ordinal | tonumber'"#,
    );
    assert_eq!(exit, Exit::Code(0));
    let ordinals: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(ordinals.len() > 8, "{ordinals:?}");
    assert_eq!(ordinals, (1..=ordinals.len()).collect::<Vec<_>>());
}

fn a_run_that_ends_is_done() {
    let (text, exit) = shell(
        &answer(),
        r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq 'select(.done)'"#,
    );
    assert_eq!(exit, Exit::Code(0));
    let found = values(&text);
    assert_eq!(found.len(), 1, "{text}");
    assert_eq!(found[0]["done"]["status"], "ok");
}

fn a_terminal_error_is_found_and_the_exit_is_that_of_the_program() {
    let home = saying(&json!([{"text": "half"}, {"error": "400 it broke"}]));
    let pipeline = r#"pinocchio run-command ./my-command.yaml --output jsonl \
  | jq 'select(.error.terminal == true) | .error'"#;
    let (text, _) = shell(&home, pipeline);
    let found = values(&text);
    assert_eq!(found.len(), 1, "{text}");
    assert_eq!(found[0]["code"], "run_failed");
    assert!(
        found[0]["message"].as_str().unwrap().contains("it broke"),
        "{text}"
    );
    let (_, exit) = shell(&home, &format!("set -o pipefail; {pipeline}"));
    assert_eq!(exit, Exit::Code(1));
}

fn requests_written_by_jq_are_served() {
    let home = Home::offline();
    let prompt = script(&json!({"text": "Served."}));
    home.write("prompt.txt", &prompt);
    let (text, exit) = shell(
        &home,
        r#"{
  jq -cn --rawfile prompt prompt.txt '{version: 1, requestId: "a", submit: {$prompt}}'
  jq -cn '{version: 1, requestId: "b", shutdown: {}}'
} | pinocchio run-command seed.yaml --rpc --stdin-rpc \
  | jq -r 'select(.uiEvent.name == "ChatTextSegmentFinished") | .uiEvent.payload.content'"#,
    );
    assert_eq!((text.as_str(), exit), ("Served.\n", Exit::Code(0)));
}

/// The pipelines in `docs/pinocchio.md`, as they stand there.
fn the_guide_is_right() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pinocchio.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide
        .split_once("Frames work well in pipelines:\n\n```\n")
        .unwrap();
    let (pipelines, _) = rest.split_once("```").unwrap();
    let home = Home::offline();
    let command =
        json!({"name": "greet", "short": "Greets", "prompt": script(&json!({"text": "Hello."}))});
    home.write("greet.yaml", &command.to_string());
    let (text, exit) = shell_with(&home, "pinion", pipelines);
    assert_eq!(
        (text.as_str(), exit),
        ("Hello.\nHello.\nok\n", Exit::Code(0))
    );
}
