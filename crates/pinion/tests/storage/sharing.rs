//! Several processes at once: one writer per file, and no shared state at the start.

use std::fs;
use std::sync::Barrier;
use std::thread;

use pinion_testkit::{Exit, Process, Sandbox};
use serde_json::{Value, json};

use crate::support::{Client, HANG, args, offline_sandbox, pinion, script};

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Process {
    let all = [&["--mode", "rpc", "--model", "offline/demo"], arguments].concat();
    pinion().start(sandbox, &args(&all))
}

#[test]
fn d2_the_second_process_is_told_who_has_the_session() {
    let mut first = Client::offline();
    let from = first.prompt(&script(&json!({"text": "mine"})));
    first.wait_end(from);
    let file = first.data("get_state")["sessionFile"]
        .as_str()
        .unwrap()
        .to_owned();

    for arguments in [&["--session", file.as_str()][..], &["--continue"][..]] {
        let mut second = start(&first.sandbox, arguments);
        let exit = second.wait(HANG);
        second.drain(HANG);
        assert_eq!(
            exit,
            Some(Exit::Code(1)),
            "{arguments:?}: {}",
            second.stderr()
        );
        let holder = first.process.id().to_string();
        let told = second.stderr();
        assert!(
            told.contains("in use") && told.contains(&holder),
            "{arguments:?}: {told}"
        );
        assert_eq!(second.line_count(), 0);
    }
    let mut third = start(&first.sandbox, &[]);
    let answer = third.ask(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(answer["success"], false, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains("in use"),
        "{answer}"
    );
    // The refusal has no effect on either session: the third process continues its own, the first continues its own.
    let prompt = script(&json!({"text": "its own"}));
    assert_eq!(
        third.ask(json!({"type": "prompt", "message": prompt}))["success"],
        true
    );
    third.expect(0, &json!({"type": "agent_end"}));
    let from = first.prompt(&script(&json!({"text": "still mine"})));
    first.wait_end(from);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("still mine") && !text.contains("its own"));
    // A copy is possible at any time.
    let mut fork = start(&first.sandbox, &["--fork", &file]);
    let messages = fork.ask(json!({"type": "get_messages"}));
    assert!(messages.to_string().contains("still mine"), "{messages}");
}

#[test]
fn d2_the_session_is_free_again_when_its_process_is_killed() {
    let mut first = Client::offline();
    let from = first.prompt(&script(&json!({"text": "mine"})));
    first.wait_end(from);
    first.process.signal(pinion_testkit::Signal::SIGKILL);
    assert!(first.process.wait(HANG).is_some());
    let mut second = first.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    assert_eq!(second.data("get_state")["messageCount"], 2);
    let from = second.prompt(&script(&json!({"text": "yours"})));
    second.wait_end(from);
}

#[test]
fn d3_sixty_four_cold_starts_at_once_all_work() {
    let sandbox = offline_sandbox(&json!({}));
    let barrier = Barrier::new(64);
    let outcomes: Vec<(Exit, String, String)> = thread::scope(|scope| {
        let starts: Vec<_> = (0..64)
            .map(|number| {
                let (sandbox, barrier) = (&sandbox, &barrier);
                scope.spawn(move || {
                    let prompt = script(&json!({"text": format!("I am number {number}")}));
                    let mut command = pinion().command(
                        sandbox,
                        &args(&["--model", "offline/demo", "--mode", "json", &prompt]),
                    );
                    command.stdin(std::process::Stdio::null());
                    barrier.wait();
                    let output = command.output().unwrap();
                    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                    (
                        Exit::of(output.status),
                        text(output.stdout),
                        text(output.stderr),
                    )
                })
            })
            .collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap())
            .collect()
    });
    for (number, (exit, output, errors)) in outcomes.iter().enumerate() {
        assert_eq!(*exit, Exit::Code(0), "number {number}: {errors}");
        assert!(
            output.contains(&format!("I am number {number}")),
            "number {number}"
        );
    }
    // Each has a session of its own, and each is whole.
    let files = sandbox.session_files();
    assert_eq!(files.len(), 64);
    for (name, path) in files {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines.last().unwrap()["message"]["role"],
            "assistant",
            "{name}"
        );
    }
}

#[test]
fn d3_settings_changed_by_many_at_once_stay_whole() {
    let sandbox = offline_sandbox(&json!({"theme": "mine"}));
    thread::scope(|scope| {
        for number in 0..16 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut process = pinion().start(
                    sandbox,
                    &args(&["--mode", "rpc", "--model", "offline/demo"]),
                );
                for round in 0..5 {
                    let enabled = (number + round) % 2 == 0;
                    process.ask(json!({"type": "set_auto_retry", "enabled": enabled}));
                    process.ask(json!({"type": "set_steering_mode", "mode": "all"}));
                }
                process.close_stdin();
                assert_eq!(process.wait(HANG), Some(Exit::Code(0)));
            });
        }
    });
    let text = fs::read_to_string(sandbox.agent().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(settings["theme"], "mine");
    assert_eq!(settings["steeringMode"], "all");
    assert!(settings["retry"]["enabled"].is_boolean());
}
