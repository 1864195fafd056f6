//! A large session whose file system stops answering after the session was opened: what needs its messages waits and can
//! be aborted, and nothing else does.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use pinion_testkit::Exit;
use pinion_testkit::fault::stalling_mount::StallingMount;
use serde_json::{Value, json};

use crate::support::{Client, offline_sandbox, script};

/// Pairs of messages. `get_tree` nests two levels for each message, and the tests parse at most 128.
const PAIRS: usize = 25;
/// Words of a message, so that the file is larger than 256 KiB, from which size on messages stay in the file.
const WORDS: usize = 1_500;

fn session(cwd: &str) -> String {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "11111111-2222-4333-8444-555555555555",
            "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd})
        .to_string(),
    ];
    let usage = json!({"input": 3, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 5,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    for at in 0..PAIRS * 2 {
        let message = match at % 2 {
            0 => {
                json!({"role": "user", "content": format!("question {at} {}", "word ".repeat(WORDS)),
                "timestamp": 1_767_225_600_000_i64})
            }
            _ => json!({"role": "assistant",
                "content": [{"type": "text", "text": format!("answer {at} {}", "word ".repeat(WORDS))}],
                "api": "offline", "provider": "offline", "model": "demo", "usage": usage,
                "stopReason": "stop", "timestamp": 1_767_225_600_000_i64}),
        };
        let parent = at.checked_sub(1).map(|parent| format!("{parent:08x}"));
        lines.push(
            json!({"type": "message", "id": format!("{at:08x}"), "parentId": parent,
                "timestamp": "2026-01-01T00:00:00.000Z", "message": message})
            .to_string(),
        );
    }
    lines.join("\n") + "\n"
}

/// Returns a client whose session is on a mount that has stopped answering; `None` if mounting is not permitted.
fn client(arguments: &[&str]) -> Option<(Client, StallingMount)> {
    let sandbox = offline_sandbox(&json!({}));
    let path = sandbox.work().join("mount");
    fs::create_dir_all(&path).unwrap();
    let content = session(&sandbox.work().display().to_string());
    let mount = match StallingMount::mount(&path, "large.jsonl", content.into()) {
        Ok(mount) => mount,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return None;
        }
    };
    let file = path.join("large.jsonl").display().to_string();
    let common = [
        "--mode",
        "rpc",
        "--model",
        "offline/demo",
        "--session",
        &file,
    ];
    let client = Client::start(sandbox, &[&common[..], arguments].concat());
    Some((client, mount))
}

fn entries(answer: &Value) -> usize {
    answer["entries"].as_array().map_or(0, Vec::len)
}

#[test]
fn commands_that_need_a_stalled_session_file_can_be_aborted_and_block_nothing() {
    let Some((mut client, mount)) = client(&["--rpc-dialect", "modern"]) else {
        return;
    };
    assert!(entries(&client.data("get_entries")) >= PAIRS * 2);
    assert_eq!(client.data("get_state")["messageCount"], PAIRS * 2);
    mount.stall();
    let commands = [
        json!({"type": "get_entries"}),
        json!({"type": "get_tree"}),
        json!({"type": "get_fork_messages"}),
        json!({"type": "get_session_stats"}),
        json!({"type": "export_html", "outputPath": "page.html"}),
        json!({"type": "fork", "entryId": "00000010"}),
        json!({"type": "clone"}),
        json!({"type": "navigate_tree", "targetId": "00000010"}),
        json!({"type": "compact"}),
    ];
    for command in commands {
        let name = command["type"].clone();
        let waiting = client.send(command);
        // Conversation and state are in memory.
        assert_eq!(
            client.data("get_state")["messageCount"],
            PAIRS * 2,
            "{name}"
        );
        let messages = client.data("get_messages");
        assert_eq!(messages["messages"].as_array().unwrap().len(), PAIRS * 2);
        let abort = client.process.ask(json!({"type": "abort"}));
        assert_eq!(abort["success"], true, "{name}: {abort}");
        let answer = client.line(client.wait_answer(&waiting));
        assert_eq!(answer["success"], false, "{name}: {answer}");
    }
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn a_run_on_a_stalled_session_file_ends_with_an_abort() {
    let Some((mut client, mount)) = client(&[]) else {
        return;
    };
    assert_eq!(client.data("get_state")["messageCount"], PAIRS * 2);
    mount.stall();
    client.send(json!({"type": "get_tree"}));
    let from = client.prompt(&script(&json!({"text": "after"})));
    assert_eq!(client.data("get_state")["isStreaming"], true);
    let abort = client.process.ask(json!({"type": "abort"}));
    assert_eq!(abort["success"], true, "{abort}");
    client.wait_end(from);
    let from = client.prompt(&script(&json!({"text": "in memory"})));
    client.wait_end(from);
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn sigterm_ends_a_session_that_waits_for_its_history() {
    let Some((mut client, mount)) = client(&[]) else {
        return;
    };
    client.data("get_state");
    mount.stall();
    client.send(json!({"type": "get_entries"}));
    client.data("get_state");
    client.process.signal(Signal::SIGTERM);
    let exit = client.process.wait(Duration::from_secs(20));
    assert_eq!(exit, Some(Exit::Code(143)), "{}", client.process.stderr());
}

#[test]
fn answers_from_a_large_file_come_in_the_order_of_the_commands() {
    let Some((mut client, _mount)) = client(&[]) else {
        return;
    };
    client.data("get_state");
    let from = client.process.line_count();
    let types = [
        "get_entries",
        "get_state",
        "get_tree",
        "get_fork_messages",
        "get_messages",
    ];
    let asked: Vec<String> = types.map(|kind| client.send(json!({"type": kind}))).into();
    let answered: Vec<usize> = asked.iter().map(|id| client.wait_answer(id)).collect();
    assert!(answered.is_sorted(), "{}", client.report(from));
    assert_eq!(client.finish(), Exit::Code(0));
}
