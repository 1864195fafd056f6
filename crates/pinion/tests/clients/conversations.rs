//! The conversations that every client must support.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pinion_testkit::{Exit, Sandbox};
use serde_json::json;

use crate::support::{offline_sandbox, script};
use crate::talk::Client;

/// An extension that asks two questions and stores the answers in a file.
const CURIOUS: &str = r#"
import { writeFileSync } from "node:fs";
export default function (pi) {
  pi.registerCommand("curious", {
    handler: async (_args, ctx) => {
      const sure = await ctx.ui.confirm("Sure?", "There is no way back.");
      const name = await ctx.ui.input("Your name?");
      ctx.ui.notify("Thank you.", "info");
      writeFileSync("said.json", JSON.stringify({ sure, name }));
    },
  });
}
"#;

/// Runs all conversations with a client.
pub fn all(command: &[OsString]) {
    shows_the_answer_as_it_comes_and_asks_the_user(command);
    takes_nobody_there_for_no(command);
    answers_dialogs_of_a_command(command);
    answers_about_a_tool_call(command);
    stops_a_run_that_takes_too_long(command);
    waits_for_another_try(command);
    tells_what_failed(command);
    tells_that_a_prompt_was_refused(command);
    tells_that_pinion_died(command);
}

fn sandbox() -> Sandbox {
    offline_sandbox(&json!({"retry": {"baseDelayMs": 1}}))
}

fn gate() -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions");
    examples.join("permission-gate.ts")
}

fn offline() -> [&'static OsStr; 2] {
    ["--model", "offline/demo"].map(OsStr::new)
}

fn shows_the_answer_as_it_comes_and_asks_the_user(command: &[OsString]) {
    let sandbox = sandbox();
    let first = "Begun: tab\t, back\\slash \\n, \u{2028} and \"quotes\".\n";
    let last = "Over\r\n\n 🦀 and out";
    let prompt = script(&json!({"turns": [
        [{"text": first, "chunk": 3},
         {"tool": "bash", "args": {"command": "until [ -e go.txt ]; do sleep 0.02; done"}}],
        {"text": last, "chunk": 1}]}));
    let gate = gate();
    let [model, name] = offline();
    let client = Client::new(command, &sandbox);
    let mut talk = client.ask(&prompt, &[model, name, "-e".as_ref(), gate.as_ref()]);
    // The agent waits for an answer now, so everything on the screen was shown as it arrived.
    talk.wait_for_answer(first);
    talk.wait_for_note("bash");
    talk.wait_for_note("Run this command?");
    talk.wait_for_note("Once");
    talk.say("Once");
    fs::write(sandbox.work().join("go.txt"), "").unwrap();
    let (exit, answer, notes) = talk.end();
    assert_eq!(exit, Exit::Code(0), "{notes}");
    assert_eq!(answer, format!("{first}{last}"), "{notes}");
}

fn takes_nobody_there_for_no(command: &[OsString]) {
    let sandbox = sandbox();
    let gate = gate();
    let [model, name] = offline();
    let client = Client::new(command, &sandbox);
    let mut talk = client.ask(
        "run `touch made.txt`",
        &[model, name, "-e".as_ref(), gate.as_ref()],
    );
    talk.leave();
    let (exit, _, notes) = talk.end();
    assert_eq!(exit, Exit::Code(0), "{notes}");
    assert!(!sandbox.work().join("made.txt").exists(), "{notes}");
}

fn answers_dialogs_of_a_command(command: &[OsString]) {
    let sandbox = sandbox();
    sandbox.add_files(&json!({"curious.ts": CURIOUS}));
    let [model, name] = offline();
    let extension = ["-e", "curious.ts"].map(OsStr::new);
    let client = Client::new(command, &sandbox);
    let mut talk = client.ask("/curious", &[model, name, extension[0], extension[1]]);
    talk.wait_for_note("no way back");
    talk.say("y");
    talk.wait_for_note("Your name?");
    talk.say("Ada");
    let (exit, answer, notes) = talk.end();
    assert_eq!((exit, answer.as_str()), (Exit::Code(0), ""), "{notes}");
    let said = fs::read_to_string(sandbox.work().join("said.json")).unwrap();
    assert_eq!(said, r#"{"sure":true,"name":"Ada"}"#);
}

fn answers_about_a_tool_call(command: &[OsString]) {
    let sandbox = sandbox();
    let [model, name] = offline();
    let approve = ["--approve", "ask"].map(OsStr::new);
    let client = Client::new(command, &sandbox);
    for (said, made) in [("Refuse", false), ("Allow once", true)] {
        let mut talk = client.ask(
            "run `touch made.txt`",
            &[model, name, approve[0], approve[1]],
        );
        talk.wait_for_note("Allow bash: touch made.txt?");
        talk.wait_for_note("Refuse");
        talk.say(said);
        let (exit, _, notes) = talk.end();
        assert_eq!(exit, Exit::Code(0), "{notes}");
        assert_eq!(sandbox.work().join("made.txt").exists(), made, "{notes}");
    }
}

fn stops_a_run_that_takes_too_long(command: &[OsString]) {
    let sandbox = sandbox();
    let prompt = script(&json!([{"text": "Begun."}, {"stall": 3_600_000}, {"text": "Never."}]));
    let client = Client::new(command, &sandbox).with("TIMEOUT", "2");
    let (exit, answer, notes) = client.ask(&prompt, &offline()).end();
    assert_eq!(
        (exit, answer.as_str()),
        (Exit::Code(1), "Begun."),
        "{notes}"
    );
    assert!(notes.contains("aborted"), "{notes}");
}

fn waits_for_another_try(command: &[OsString]) {
    let sandbox = sandbox();
    let prompt = script(&json!([{"overload": 2}, {"text": "After all."}]));
    let client = Client::new(command, &sandbox);
    let (exit, answer, notes) = client.ask(&prompt, &offline()).end();
    assert_eq!(
        (exit, answer.as_str()),
        (Exit::Code(0), "After all."),
        "{notes}"
    );
}

fn tells_what_failed(command: &[OsString]) {
    let sandbox = sandbox();
    let prompt = script(&json!([{"text": "So far."}, {"error": "It broke."}]));
    let client = Client::new(command, &sandbox);
    let (exit, answer, notes) = client.ask(&prompt, &offline()).end();
    assert_eq!(
        (exit, answer.as_str()),
        (Exit::Code(1), "So far."),
        "{notes}"
    );
    assert!(notes.contains("It broke."), "{notes}");
}

/// Writes a program that replaces pinion.
fn stand_in(sandbox: &Sandbox, commands: &str) -> PathBuf {
    let directory = sandbox.root().join("stand-in");
    fs::create_dir(&directory).unwrap();
    let program = directory.join("pinion");
    fs::write(&program, format!("#!/bin/sh\nread line\n{commands}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn tells_that_a_prompt_was_refused(command: &[OsString]) {
    let sandbox = sandbox();
    let refusal = json!({"id": "prompt", "type": "response", "command": "prompt",
        "success": false, "error": "Not now."});
    let directory = stand_in(&sandbox, &format!("echo '{refusal}'\ncat >&2"));
    let client = Client::new(command, &sandbox).finding_pinion_in(&directory);
    let (exit, answer, notes) = client.ask("Hello.", &[]).end();
    assert_eq!((exit, answer.as_str()), (Exit::Code(1), ""), "{notes}");
    assert!(notes.contains("Not now."), "{notes}");
}

fn tells_that_pinion_died(command: &[OsString]) {
    let sandbox = sandbox();
    let directory = stand_in(&sandbox, "echo '{\"type\":\"agent_start\"}'\nexit 7");
    let client = Client::new(command, &sandbox).finding_pinion_in(&directory);
    let (exit, answer, notes) = client.ask("Hello.", &[]).end();
    assert_eq!((exit, answer.as_str()), (Exit::Code(1), ""), "{notes}");
    assert!(notes.contains('7'), "{notes}");
}
