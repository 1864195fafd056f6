//! An idle session is small, and the number of sessions has a limit.

use serde_json::json;

use super::MultiSession;
use crate::support::{HANG, offline_sandbox, script};

/// Returns the memory of a process in bytes, with shared pages in proportion.
fn resident(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup
        .lines()
        .find(|line| line.starts_with("Pss:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[test]
fn l11_an_idle_session_takes_less_than_200_kilobytes() {
    let sandbox = offline_sandbox(&json!({}));
    // The context file of a project is in memory once, however many sessions work in it.
    let told = "Mind the gap between the train and the platform.\n".repeat(2500);
    sandbox.add_files(&json!({"AGENTS.md": told}));
    let mut client = MultiSession::with(sandbox, &[]);
    let pid = client.0.process.id();
    // The memory that the first sessions allocate is shared by later ones.
    for _ in 0..20 {
        let id = client.open(json!({}));
        let from = client.prompt(&id, &script(&json!([{"text": "hello"}])));
        client.wait_end(&id, from);
    }
    let before = resident(pid);
    let count = 200;
    for _ in 0..count {
        let id = client.open(json!({}));
        let from = client.prompt(&id, &script(&json!([{"text": "hello"}])));
        client.wait_end(&id, from);
    }
    let each = (resident(pid) - before) / count;
    eprintln!("an idle session takes {each} bytes");
    assert!(each < 200_000, "{each} bytes");
}

#[test]
fn l11_there_is_a_limit_and_room_again_below_it() {
    let mut client = MultiSession::start();
    let ids: Vec<String> = (0..1000)
        .map(|_| {
            client
                .0
                .send(json!({"type": "open_session", "noSession": true}))
        })
        .collect();
    let mut last = String::new();
    for id in &ids {
        let at = client.0.wait_answer(id);
        let answer = client.0.line(at);
        assert_eq!(answer["success"], true, "{answer}");
        last = answer["sessionId"].as_str().unwrap().to_owned();
    }
    let words = client.refusal(json!({"type": "open_session"}));
    assert!(
        words.contains("1000 sessions are open, which is the limit"),
        "{words}"
    );
    client.data(json!({"type": "close_session", "sessionId": last}));
    client.open(json!({}));
    assert_eq!(client.listed().len(), 1000);
}

#[test]
fn l11_the_memory_of_closed_sessions_returns() {
    let mut client = MultiSession::start();
    let pid = client.0.process.id();
    let first = client.open(json!({"noSession": true}));
    let before = resident(pid);
    let ids: Vec<String> = (0..600)
        .map(|_| client.open(json!({"noSession": true})))
        .collect();
    let full = resident(pid);
    for id in ids.iter().chain([&first]) {
        client.data(json!({"type": "close_session", "sessionId": id}));
    }
    let enough = before + (full - before) / 2;
    let begun = std::time::Instant::now();
    while resident(pid) > enough {
        assert!(
            begun.elapsed() < HANG,
            "{} of {full} bytes stay; before there were {before}",
            resident(pid)
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
