//! Paths that do not lead to a session, and entries that are damaged, through the binary.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::process::Stdio;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use pinion_testkit::Exit;
use serde_json::{Value, json};

use crate::support::{Client, args, offline_sandbox, pinion, script};

#[test]
fn d1_a_path_that_is_not_a_session_is_refused_untouched_and_the_session_goes_on() {
    let mut client = Client::offline();
    let work = client.sandbox.work();
    let fifo = work.join("fifo.jsonl");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let link = work.join("link.jsonl");
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    let huge = work.join("huge.jsonl");
    fs::File::create(&huge).unwrap().set_len(8 << 30).unwrap();
    for (path, words) in [
        (fifo.to_str().unwrap(), "FIFO"),
        (link.to_str().unwrap(), "FIFO"),
        (huge.to_str().unwrap(), "512 MiB"),
        ("/proc/self/fd/0", "descriptor"),
        ("/proc/self/fd/987654", "descriptor"),
    ] {
        let answer = client
            .process
            .ask(json!({"type": "switch_session", "sessionPath": path}));
        assert_eq!(answer["success"], false, "{answer}");
        if path != "/proc/self/fd/987654" {
            assert!(
                answer["error"].as_str().unwrap().contains(words),
                "{answer}"
            );
        }
    }
    let from = client.prompt(&script(&json!({"text": "still here"})));
    client.wait_end(from);
    assert_eq!(client.finish(), Exit::Code(0));
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&huge).unwrap().len(), 8 << 30);

    // The same files beside the sessions.
    let (_, file) = client.sandbox.session_files().remove(0);
    let directory = file.parent().unwrap();
    mkfifo(&directory.join("fifo.jsonl"), Mode::S_IRWXU).unwrap();
    fs::rename(&huge, directory.join("huge.jsonl")).unwrap();
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    assert_eq!(
        client.data("get_messages")["messages"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn d1_a_damaged_entry_is_left_out_of_entries_and_tree() {
    let mut client = Client::offline();
    for _ in 0..2 {
        let from = client.prompt(&script(&json!({"text": "answer"})));
        client.wait_end(from);
    }
    assert_eq!(client.finish(), Exit::Code(0));
    let (_, file) = client.sandbox.session_files().remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let count = lines.len() - 1;
    lines[3] = lines[3].replacen("\"content\"", "\"content", 1);
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    let entries = client.data("get_entries")["entries"].clone();
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), count - 1);
    assert!(entries.iter().all(Value::is_object), "{entries:?}");
    let tree = client.data("get_tree")["tree"].clone();
    assert_eq!(tree.as_array().map(Vec::len), Some(1), "one root: {tree}");
    assert_eq!(tree.to_string().matches("\"entry\"").count(), count - 1);
    client.finish();
}

#[test]
fn d1_what_a_context_edit_replaced_is_not_sent() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "SECRET answer"})));
    client.wait_end(from);
    assert_eq!(client.finish(), Exit::Code(0));
    let (_, file) = client.sandbox.session_files().remove(0);
    let mut text = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let edit = json!({"type": "context_edit", "id": "edit0001", "parentId": last["id"],
        "timestamp": last["timestamp"], "targetId": last["id"], "replacement": {"content": "short"}});
    text.push_str(&format!("{edit}\n"));
    fs::write(&file, text).unwrap();
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    // The prompt is the script of the answer, so only the answer itself is looked at.
    let messages = client.data("get_messages");
    let answer = messages["messages"][1].to_string();
    assert!(
        answer.contains("short") && !answer.contains("SECRET"),
        "{messages}"
    );
    client.finish();
}

#[test]
fn sessions_list_finds_the_sessions_of_a_trusted_projects_directory() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_files(&json!({".pi/settings.json": {"sessionDir": "./kept"}}));
    let run = |arguments: &[&str]| {
        let mut command = pinion().command(&sandbox, &args(arguments));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["trust"]);
    run(&["--model", "offline/demo", "-p", "Remember the heron."]);
    let list = run(&["sessions", "list", "--json"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains("/kept/"), "{list}");
    run(&["trust", "--revoke"]);
    assert_eq!(run(&["sessions", "list", "--json"]), "");
}
