//! A file system that does not respond blocks the call that needs it, and nothing else.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use pinion_testkit::Exit;
use pinion_testkit::fault::disk::SilentMount;
use serde_json::{Value, json};

use crate::support::{Client, offline_sandbox, script};

const ARGUMENTS: [&str; 6] = [
    "--mode",
    "rpc",
    "--model",
    "offline/demo",
    "--tools",
    "read,write,edit,grep,find,ls",
];

/// Returns a client with a mount that never responds below its working directory; `None` if mounting is not permitted.
fn client(arguments: &[&str]) -> Option<(Client, PathBuf, SilentMount)> {
    let sandbox = offline_sandbox(&json!({}));
    let path = sandbox.work().join("mount");
    fs::create_dir_all(&path).unwrap();
    match SilentMount::mount(&path) {
        Ok(mount) => Some((Client::start(sandbox, arguments), path, mount)),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Checks that the session answers `get_state` and a prompt.
fn answers(client: &mut Client) -> Value {
    let state = client.data("get_state");
    let from = client.prompt(&script(&json!({"text": "still here"})));
    client.wait_end(from);
    state
}

#[test]
fn a_switch_to_a_silent_mount_blocks_nothing_and_can_be_aborted() {
    let Some((mut client, mount, _guard)) = client(&ARGUMENTS) else {
        return;
    };
    let before = answers(&mut client);
    for path in [mount.join("x.jsonl"), mount.join("y.jsonl")] {
        let switch = client.send(json!({"type": "switch_session", "sessionPath": path}));
        assert_eq!(
            client.data("get_state")["sessionFile"],
            before["sessionFile"]
        );
        let abort = client.process.ask(json!({"type": "abort"}));
        assert_eq!(abort["success"], true, "{abort}");
        let answer = client.line(client.wait_answer(&switch));
        assert_eq!(answer["success"], false, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.starts_with("The session was not changed"), "{answer}");
    }
    assert_eq!(answers(&mut client)["sessionFile"], before["sessionFile"]);
    let new = client.process.ask(json!({"type": "new_session"}));
    assert_eq!(new["success"], true, "{new}");
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn commands_after_a_change_of_session_apply_to_the_new_session() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "first"})));
    client.wait_end(from);
    let old = client.data("get_state");
    for _ in 0..20 {
        client.send(json!({"type": "new_session"}));
        let state = client.send(json!({"type": "get_state"}));
        let state = client.line(client.wait_answer(&state))["data"].clone();
        assert_eq!(state["messageCount"], 0, "{state}");
        assert_ne!(state["sessionId"], old["sessionId"]);
        client.send(json!({"type": "switch_session", "sessionPath": old["sessionFile"]}));
        let messages = client.send(json!({"type": "get_messages"}));
        let messages = client.line(client.wait_answer(&messages));
        assert_eq!(messages["data"]["messages"].as_array().unwrap().len(), 2);
    }
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn sigterm_ends_a_session_that_waits_for_a_silent_mount() {
    let Some((mut client, mount, _guard)) = client(&ARGUMENTS) else {
        return;
    };
    answers(&mut client);
    client.send(json!({"type": "switch_session", "sessionPath": mount.join("x.jsonl")}));
    client.data("get_state");
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(std::time::Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn tools_and_exports_on_a_silent_mount_can_be_aborted() {
    let Some((mut client, mount, _guard)) = client(&ARGUMENTS) else {
        return;
    };
    let file = mount.join("x.txt");
    let calls = [
        json!({"tool": "read", "args": {"path": file}}),
        json!({"tool": "write", "args": {"path": file, "content": "x"}}),
        json!({"tool": "edit", "args": {"path": file, "oldText": "a", "newText": "b"}}),
        json!({"tool": "grep", "args": {"path": mount, "pattern": "x"}}),
        json!({"tool": "find", "args": {"path": mount, "pattern": "*"}}),
        json!({"tool": "ls", "args": {"path": mount}}),
    ];
    for call in calls {
        let from = client.prompt(&script(&json!([call, {"text": "done"}])));
        client.wait_for(from, &json!({"type": "tool_execution_start"}));
        client.data("get_state");
        let abort = client.process.ask(json!({"type": "abort"}));
        assert_eq!(abort["success"], true, "{call}: {abort}");
        client.wait_end(from);
    }
    let export = client.send(json!({"type": "export_html", "outputPath": mount.join("x.html")}));
    answers(&mut client);
    client.process.signal(Signal::SIGTERM);
    let answer = client.line(client.wait_answer(&export));
    assert_eq!(answer["success"], false, "{answer}");
    let exit = client.process.wait(std::time::Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn a_session_on_a_silent_mount_does_not_stop_the_others() {
    let arguments = [
        "--mode",
        "rpc",
        "--multi-session",
        "--model",
        "offline/demo",
    ];
    let Some((mut client, mount, _guard)) = client(&arguments) else {
        return;
    };
    let open = json!({"type": "open_session", "noSession": true});
    let free = client.process.ask(open.clone())["data"]["sessionId"].clone();
    let stuck = client.process.ask(open)["data"]["sessionId"].clone();
    client.send(
        json!({"type": "switch_session", "sessionId": stuck, "sessionPath": mount.join("x.jsonl")}),
    );
    client.send(json!({"type": "open_session", "session": mount.join("y.jsonl")}));
    client.send(json!({"type": "open_session", "cwd": mount.join("project")}));
    for _ in 0..5 {
        let state = client
            .process
            .ask(json!({"type": "get_state", "sessionId": free}));
        assert_eq!(state["success"], true, "{state}");
    }
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(std::time::Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

/// Puts a silent mount over the directory of the session file, and removes that file below it, so that the next append
/// needs the mount.
fn silence_sessions(client: &Client) -> Option<SilentMount> {
    let (_, file) = client.sandbox.session_files().pop().unwrap();
    fs::remove_file(&file).unwrap();
    let mount = SilentMount::mount(file.parent().unwrap());
    mount.map_err(|reason| eprintln!("skipped: {reason}")).ok()
}

fn unsaved(client: &Client) -> usize {
    let is_unsaved = |line: &Value| {
        line["type"] == "extension_error"
            && line["error"]
                .as_str()
                .is_some_and(|error| error.contains("could not save"))
    };
    client
        .lines()
        .iter()
        .filter(|line| is_unsaved(line))
        .count()
}

#[test]
fn a_session_whose_mount_hangs_answers_and_continues_in_memory_after_an_abort() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "first"})));
    client.wait_end(from);
    let Some(_mount) = silence_sessions(&client) else {
        return;
    };
    let from = client.prompt(&script(&json!({"text": "second"})));
    assert_eq!(client.data("get_state")["isStreaming"], true);
    let abort = client.process.ask(json!({"type": "abort"}));
    assert_eq!(abort["success"], true, "{abort}");
    client.wait_end(from);
    assert!(unsaved(&client) > 0, "{}", client.report(from));
    // What follows does not wait for the mount.
    answers(&mut client);
    let name = client
        .process
        .ask(json!({"type": "set_session_name", "name": "unsaved"}));
    assert_eq!(name["success"], true, "{name}");
    assert_eq!(client.data("get_state")["sessionName"], "unsaved");
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(std::time::Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn sigterm_ends_a_session_that_waits_for_an_append() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "first"})));
    client.wait_end(from);
    let Some(_mount) = silence_sessions(&client) else {
        return;
    };
    client.prompt(&script(&json!({"text": "second"})));
    client.data("get_state");
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(std::time::Duration::from_secs(25));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn what_waited_for_a_mount_is_saved_when_it_is_gone() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "first"})));
    client.wait_end(from);
    let Some(mount) = silence_sessions(&client) else {
        return;
    };
    let from = client.prompt(&script(&json!({"text": "second"})));
    client.data("get_state");
    client.process.ask(json!({"type": "abort"}));
    client.wait_end(from);
    drop(mount);
    let from = client.prompt(&script(&json!({"text": "third"})));
    client.wait_end(from);
    assert_eq!(client.finish(), Exit::Code(0));
    let (_, file) = client.sandbox.session_files().pop().unwrap();
    let text = fs::read_to_string(file).unwrap();
    for saved in ["first", "second", "third"] {
        assert!(text.contains(saved), "{saved}: {text}");
    }
}

#[test]
fn an_append_that_hangs_does_not_stop_the_other_sessions() {
    let sandbox = offline_sandbox(&json!({}));
    let arguments = [
        "--mode",
        "rpc",
        "--multi-session",
        "--model",
        "offline/demo",
    ];
    let mut client = Client::start(sandbox, &arguments);
    let mut open = |command: Value| client.process.ask(command)["data"]["sessionId"].clone();
    let free = open(json!({"type": "open_session", "noSession": true}));
    let stuck = open(json!({"type": "open_session"}));
    let prompt = |session: &Value, text: &str| json!({"type": "prompt", "sessionId": session, "message": script(&json!({"text": text}))});
    client.process.ask(prompt(&stuck, "first"));
    client.wait_for(0, &json!({"type": "agent_end", "sessionId": stuck}));
    let Some(_mount) = silence_sessions(&client) else {
        return;
    };
    client.process.ask(prompt(&stuck, "second"));
    for round in 0..5 {
        let from = client.process.line_count();
        let accepted = client.process.ask(prompt(&free, "free"));
        assert_eq!(accepted["success"], true, "{round}: {accepted}");
        client.wait_for(from, &json!({"type": "agent_end", "sessionId": free}));
    }
    let state = client
        .process
        .ask(json!({"type": "get_state", "sessionId": stuck}));
    assert_eq!(state["data"]["isStreaming"], true, "{state}");
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(std::time::Duration::from_secs(25));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn long_output_is_returned_although_the_temporary_directory_hangs() {
    let mut client = Client::offline();
    client.data("get_state");
    let mount = SilentMount::mount(&client.sandbox.temporary());
    if let Err(reason) = &mount {
        eprintln!("skipped: {reason}");
        return;
    }
    let call = json!({"tool": "bash", "args": {"command": "seq 1 100000"}});
    let prompt = script(&json!([call, {"text": "done"}]));
    let from = client.prompt(&prompt);
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    client.data("get_state");
    let abort = client.process.ask(json!({"type": "abort"}));
    assert_eq!(abort["success"], true, "{abort}");
    client.wait_end(from);
    let from = client.prompt(&prompt);
    client.data("get_state");
    let end = client.line(client.wait_for(from, &json!({"type": "tool_execution_end"})));
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("100000"), "{end}");
    assert!(
        text.contains("The full output could not be saved."),
        "{end}"
    );
    client.wait_end(from);
    assert_eq!(client.finish(), Exit::Code(0));
}
