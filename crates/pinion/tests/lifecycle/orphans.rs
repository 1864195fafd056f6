//! Nothing outlives the process, even if it is killed with SIGKILL: not a child, nor a child that left its group, its
//! session or its parent, nor one that cleared its environment.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use pinion_testkit::fault::proc;
use pinion_testkit::{Exit, Sandbox, Signal};
use serde_json::json;

use crate::support::{Client, HANG, Random, script};

/// Ways to escape a program that looks only at its children.
const ESCAPES: &[&str] = &[
    "sleep 600",
    "sleep 600 & sleep 600 & wait",
    "nohup sleep 600 >/dev/null 2>&1 & sleep 600",
    "setsid sleep 600 & sleep 600",
    "(setsid sh -c '(sleep 600 &) ; sleep 600' &) ; sleep 600",
    "setsid nohup sh -c 'setsid sleep 600 & sleep 600' </dev/null >/dev/null 2>&1 & exit 0",
    "trap '' TERM HUP INT; sh -c 'trap \"\" TERM HUP INT; sleep 600' & while :; do sleep 1; done",
    "env -i setsid sleep 600MARK & sleep 600",
    "for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep 600 & done; sleep 600",
];

/// Returns the processes of the sandbox: by the mark in their environment, or by the mark on their command line.
fn left(marker: &str, time: Duration) -> Vec<String> {
    let end = Instant::now() + time;
    loop {
        let mut found: Vec<String> = proc::marked(marker)
            .into_iter()
            .map(|process| process.command)
            .collect();
        found.extend(by_command_line(marker));
        if found.is_empty() || Instant::now() > end {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn by_command_line(marker: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.contains(&duration_of(marker)))
        .collect()
}

/// Returns a duration to sleep that no other process uses.
fn duration_of(marker: &str) -> String {
    let number: u64 = marker
        .bytes()
        .fold(7, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_000_000);
    format!("600.{number:09}")
}

fn killed_during(escape: &str, pause: Duration, how: Signal) {
    let mut client = Client::offline();
    let marker = client.sandbox.marker().to_owned();
    let command = escape.replace("600MARK", &duration_of(&marker));
    let command = format!("touch begun; {command}");
    let from = client.prompt(&script(
        &json!({"tool": "bash", "args": {"command": command}}),
    ));
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    let end = Instant::now() + HANG;
    while !client.sandbox.work().join("begun").exists() {
        assert!(Instant::now() < end, "{}", client.report(0));
        thread::sleep(Duration::from_millis(2));
    }
    // The moment of the kill is random.
    thread::sleep(pause);
    client.process.signal(how);
    let exit = client.process.wait(HANG);
    assert!(exit.is_some(), "still running after {how}");
    assert_eq!(
        left(&marker, HANG),
        Vec::<String>::new(),
        "{escape} after {how}"
    );
}

#[test]
fn l8_nothing_outlives_a_kill() {
    let mut random = Random::new(8);
    let pauses: Vec<u64> = ESCAPES.iter().map(|_| random.below(150)).collect();
    thread::scope(|scope| {
        for (escape, pause) in ESCAPES.iter().zip(pauses) {
            scope.spawn(move || {
                killed_during(escape, Duration::from_millis(pause), Signal::SIGKILL)
            });
        }
    });
}

#[test]
fn l8_nothing_outlives_a_kill_at_any_moment() {
    let mut random = Random::new(88);
    let pauses: Vec<u64> = (0..16).map(|_| random.below(300)).collect();
    thread::scope(|scope| {
        for pause in pauses {
            scope.spawn(move || {
                let mut client = Client::offline();
                let command = "for i in 1 2 3; do setsid sleep 600 & done; sleep 600";
                let talk = json!([{"deltas": 20, "size": 5, "paceMs": 1}, {"tool": "bash", "args": {"command": command}}]);
                client.send(json!({"type": "prompt", "message": script(&talk)}));
                thread::sleep(Duration::from_millis(pause));
                client.process.signal(Signal::SIGKILL);
                assert!(client.process.wait(HANG).is_some());
                let found = left(client.sandbox.marker(), HANG);
                assert_eq!(found, Vec::<String>::new(), "killed after {pause} ms");
            });
        }
    });
}

#[test]
fn l8_nothing_outlives_a_polite_end() {
    thread::scope(|scope| {
        for escape in ESCAPES {
            scope.spawn(move || killed_during(escape, Duration::from_millis(20), Signal::SIGTERM));
        }
    });
}

#[test]
fn l8_a_command_that_fetches_a_key_does_not_outlive_a_kill() {
    let sandbox =
        Sandbox::with_settings(1, &json!({"defaultProvider": "slow", "defaultModel": "m"}));
    let models = |command: &str| {
        json!({"models.json": {"providers": {"slow": {"baseUrl": "http://127.0.0.1:1",
            "api": "anthropic-messages", "apiKey": command,
            "models": [{"id": "m", "name": "M", "contextWindow": 1000, "maxTokens": 100}]}}}})
    };
    sandbox.add_agent_files(&models("!touch begun; exec sleep 600"));
    let mut client = Client::start(sandbox, &["--mode", "rpc"]);
    client.send(json!({"type": "prompt", "message": "go"}));
    let end = Instant::now() + HANG;
    while !client.sandbox.work().join("begun").exists() {
        assert!(Instant::now() < end, "{}", client.report(0));
        thread::sleep(Duration::from_millis(2));
    }
    client.process.signal(Signal::SIGKILL);
    assert!(client.process.wait(HANG).is_some());
    assert_eq!(left(client.sandbox.marker(), HANG), Vec::<String>::new());
}

#[test]
fn l8_what_a_finished_command_left_running_ends_with_the_session() {
    let mut client = Client::offline();
    let command = "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo started";
    let from = client.prompt(&script(&json!({"turns": [
        {"tool": "bash", "args": {"command": command}}, {"text": "done"}]})));
    client.wait_end(from);
    let answer = client
        .process
        .ask(json!({"type": "bash", "command": command}));
    assert_eq!(answer["data"]["output"], "started\n");
    assert_eq!(client.finish(), Exit::Code(0));
    assert_eq!(left(client.sandbox.marker(), HANG), Vec::<String>::new());
}

#[test]
fn l8_an_aborted_user_command_takes_its_children_along() {
    let mut client = Client::offline();
    let id = client
        .send(json!({"type": "bash", "command": "touch begun; setsid sleep 600 & sleep 600"}));
    let end = Instant::now() + HANG;
    while !client.sandbox.work().join("begun").exists() {
        assert!(Instant::now() < end, "{}", client.report(0));
        thread::sleep(Duration::from_millis(2));
    }
    client.process.ask(json!({"type": "abort_bash"}));
    let answer = client.line(client.wait_answer(&id));
    assert_eq!(answer["data"]["cancelled"], true, "{answer}");
    let sleeping = |marker: &str| {
        proc::marked(marker)
            .into_iter()
            .any(|process| process.command.starts_with("sleep"))
    };
    let end = Instant::now() + HANG;
    while sleeping(client.sandbox.marker()) {
        assert!(
            Instant::now() < end,
            "{:?}",
            proc::marked(client.sandbox.marker())
        );
        thread::sleep(Duration::from_millis(5));
    }
    client.data("get_state");
}
