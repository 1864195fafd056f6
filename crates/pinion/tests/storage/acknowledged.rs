//! Everything that the program reported as done is on disk, even if it is killed the next moment.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Duration;

use pinion_testkit::Signal;
use serde_json::{Value, json};

use crate::support::{Client, HANG, Random, offline_sandbox, script};

/// Returns the messages that were reported as complete, by their JSON.
fn told(lines: &[Value]) -> Vec<Value> {
    let ended = lines.iter().filter(|line| line["type"] == "message_end");
    ended.map(|line| line["message"].clone()).collect()
}

fn entries(client: &Client) -> Vec<Value> {
    let files = client.sandbox.session_files();
    let texts = files
        .iter()
        .map(|(_, path)| fs::read_to_string(path).unwrap());
    let lines: Vec<Value> = texts
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    lines
}

#[test]
fn d2_what_was_answered_before_the_first_answer_of_a_model_is_saved() {
    for command in [
        json!({"type": "bash", "command": "echo kept"}),
        json!({"type": "set_session_name", "name": "kept"}),
    ] {
        let mut client = Client::offline();
        let answer = client.process.ask(command.clone());
        assert_eq!(answer["success"], true, "{answer}");
        client.process.signal(Signal::SIGKILL);
        assert!(client.process.wait(HANG).is_some());
        let on_disk = entries(&client);
        assert!(
            json!(on_disk).to_string().contains("kept"),
            "{command}: {on_disk:?}"
        );
    }
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"deltas": 1000, "size": 3, "paceMs": 100})));
    client.wait_for(
        from,
        &json!({"type": "message_end", "message": {"role": "user"}}),
    );
    client.process.signal(Signal::SIGKILL);
    assert!(client.process.wait(HANG).is_some());
    assert_eq!(saved(&client).len(), 1, "the question");
}

#[test]
fn d2_a_choice_that_was_answered_is_in_the_settings() {
    for round in 0..3 {
        let mut client = Client::offline();
        let mode = client
            .process
            .ask(json!({"type": "set_steering_mode", "mode": "all"}));
        assert_eq!(mode["success"], true, "{mode}");
        client.process.signal(Signal::SIGKILL);
        assert!(client.process.wait(HANG).is_some());
        let agent = client.sandbox.agent();
        let settings: Value =
            serde_json::from_slice(&fs::read(agent.join("settings.json")).unwrap()).unwrap();
        assert_eq!(settings["steeringMode"], "all", "round {round}: {settings}");
        let left: Vec<_> = fs::read_dir(&agent)
            .unwrap()
            .flatten()
            .map(|file| file.file_name())
            .collect();
        assert!(!format!("{left:?}").contains(".write-"), "{left:?}");
    }
}

#[test]
fn d2_a_word_that_is_not_understood_changes_nothing() {
    let mut client = Client::offline();
    let before = client.data("get_state");
    for (command, words) in [
        (
            json!({"type": "set_thinking_level", "level": "hgih"}),
            "unknown level \"hgih\"; use off, minimal, low",
        ),
        (
            json!({"type": "set_steering_mode", "mode": "some"}),
            "unknown mode \"some\"; use all, one-at-a-time",
        ),
        (json!({"type": "set_follow_up_mode"}), "\"mode\" is missing"),
        (
            json!({"type": "set_auto_retry", "enabled": "no"}),
            "must be true or false",
        ),
        (json!({"type": "set_model"}), "\"provider\" is missing"),
    ] {
        let answer = client.process.ask(command.clone());
        assert_eq!(answer["success"], false, "{answer}");
        assert!(
            answer["error"].as_str().unwrap().contains(words),
            "{answer}"
        );
    }
    assert_eq!(client.data("get_state"), before);
    client.finish();
    assert!(
        client.sandbox.session_files().is_empty(),
        "a session that was not used leaves no file"
    );
}

fn saved(client: &Client) -> Vec<Value> {
    let files = client.sandbox.session_files();
    let texts = files
        .iter()
        .map(|(_, path)| fs::read_to_string(path).unwrap());
    let mut messages = Vec::new();
    for text in texts {
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let entry: Value = serde_json::from_str(line).unwrap();
            if entry["type"] == "message" {
                messages.push(entry["message"].clone());
            }
        }
    }
    messages
}

fn killed_at_random(seed: u64) {
    let mut random = Random::new(seed);
    let mut client = Client::offline();
    for _ in 0..3 {
        client.send(json!({"type": "prompt", "streamingBehavior": "followUp", "message": script(&json!({"turns": [
            [{"text": "look"}, {"tool": "bash", "args": {"command": "echo one; sleep 0.02"}},
             {"tool": "bash", "args": {"command": "echo two"}}],
            {"deltas": 20, "size": 9, "paceMs": 1}]}))}));
    }
    client.wait_for(0, &json!({"type": "agent_start"}));
    // The moment of the kill is random.
    thread::sleep(Duration::from_millis(random.below(400)));
    client.process.signal(Signal::SIGKILL);
    assert!(client.process.wait(HANG).is_some());
    client.process.drain(HANG);
    let lines: Vec<Value> = client
        .lines()
        .into_iter()
        .filter(|line| line.get("__unparsed").is_none())
        .collect();
    let on_disk: HashSet<String> = saved(&client).iter().map(Value::to_string).collect();
    let told = told(&lines);
    for message in &told {
        assert!(
            on_disk.contains(&message.to_string()),
            "seed {seed}: told, but not saved: {message}"
        );
    }
    // And it opens, with all of it in place.
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    let messages = client.data("get_messages");
    let found = messages["messages"].as_array().unwrap();
    let begins = found.iter().zip(&told).all(|(found, told)| found == told);
    assert!(
        begins && found.len() >= told.len(),
        "seed {seed}: {} messages for {}",
        found.len(),
        told.len()
    );
    let from = client.prompt(&script(&json!({"text": "and on"})));
    client.wait_end(from);
}

#[test]
fn d4_what_was_told_survives_a_kill_at_any_moment() {
    for round in 0..3 {
        thread::scope(|scope| {
            for seed in 1..=8 {
                scope.spawn(move || killed_at_random(round * 100 + seed));
            }
        });
    }
}

#[test]
fn d4_a_system_message_that_was_told_survives_a_kill() {
    // The question follows at once, so one round could miss the moment between the two.
    for _ in 0..8 {
        let sandbox = offline_sandbox(&json!({}));
        let mut client = Client::start(
            sandbox,
            &[
                "--mode",
                "rpc",
                "--model",
                "offline/demo",
                "--rpc-dialect",
                "modern",
            ],
        );
        let from = client.prompt(&script(&json!({"text": "one"})));
        let line = client.wait_for(
            from,
            &json!({"type": "message_end", "message": {"role": "system"}}),
        );
        client.process.signal(Signal::SIGKILL);
        assert!(client.process.wait(HANG).is_some());
        let told = &client.line(line)["message"];
        assert!(saved(&client).contains(told), "told, but not saved: {told}");
    }
}

#[test]
fn d4_what_was_answered_survives_a_kill() {
    let mut client = Client::offline();
    let from = client.prompt(&script(&json!({"text": "one"})));
    client.wait_end(from);
    assert_eq!(
        client
            .process
            .ask(json!({"type": "set_session_name", "name": "kept"}))["success"],
        true
    );
    assert_eq!(
        client
            .process
            .ask(json!({"type": "bash", "command": "echo noted"}))["success"],
        true
    );
    client.process.signal(Signal::SIGKILL);
    assert!(client.process.wait(HANG).is_some());
    let mut client = client.restart(&["--mode", "rpc", "--model", "offline/demo", "--continue"]);
    assert_eq!(client.data("get_state")["sessionName"], "kept");
    assert!(client.data("get_messages").to_string().contains("noted"));
}
