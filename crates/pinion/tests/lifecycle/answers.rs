//! Every request is answered exactly once, at once where possible, in any order of requests.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::support::{Client, Random, answers_by_id, check_runs, script};

/// Returns a random command; some are wrong on purpose.
fn any_command(random: &mut Random) -> Value {
    let quick = [
        "get_state",
        "get_messages",
        "get_session_stats",
        "get_commands",
        "get_available_models",
        "cycle_thinking_level",
        "cycle_model",
        "get_fork_messages",
        "get_last_assistant_text",
        "abort",
        "abort_retry",
        "abort_bash",
        "clear_queue",
        "get_entries",
        "get_tree",
        "get_available_thinking_levels",
        "compact",
        "new_session",
        "clone",
    ];
    let scripts = [
        json!({"text": "yes"}),
        json!({"deltas": 40, "size": 10, "paceMs": 1}),
        json!([{"think": "hm"}, {"text": "ok"}]),
        json!({"turns": [{"tool": "bash", "args": {"command": "sleep 0.05; echo done"}}, {"text": "ok"}]}),
        json!({"turns": [{"tool": "nonsense", "args": {}}, {"text": "ok"}]}),
        json!({"error": "400 no"}),
        json!({"overload": 1}),
    ];
    let message = |random: &mut Random| script(&random.pick(&scripts));
    match random.below(24) {
        0..=8 => json!({"type": random.pick(&quick)}),
        9..=11 => json!({"type": "prompt", "message": message(random)}),
        12 => json!({"type": "prompt", "message": message(random), "streamingBehavior": "steer"}),
        13 => json!({"type": "steer", "message": "left a bit"}),
        14 => json!({"type": "follow_up", "message": message(random)}),
        15 => {
            json!({"type": "bash", "command": random.pick(&["true", "sleep 0.05; echo x", "exit 3"])})
        }
        16 => json!({"type": "set_model", "provider": "offline",
                     "modelId": random.pick(&["demo", "none"])}),
        17 => json!({"type": "set_session_name", "name": random.pick(&["", "  ", "a name"])}),
        18 => json!({"type": "fork", "entryId": random.pick(&["", "nobody"])}),
        19 => json!({"type": "set_auto_retry", "enabled": random.below(2) == 0}),
        20 => {
            json!({"type": "set_steering_mode", "mode": random.pick(&["all", "one-at-a-time", "?"])})
        }
        21 => json!({"type": random.pick(&["nonsense", "", "Prompt"])}),
        22 => json!({"type": random.pick(&["prompt", "steer", "bash", "switch_session"])}),
        _ => json!({"type": random.pick(&[json!(7), json!(null), json!({"a": []})])}),
    }
}

/// Returns an id of a random JSON type; none is used twice.
fn any_id(random: &mut Random, number: usize) -> Value {
    match random.below(6) {
        0 => json!(number),
        1 => json!({"n": number}),
        2 => json!([number, null]),
        3 => json!(number as f64 + 0.5),
        _ => json!(format!("id-{number}")),
    }
}

fn play(seed: u64) {
    let mut random = Random::new(seed);
    let mut client = Client::offline_with(&json!({"retry": {"baseDelayMs": 20}}));
    let mut expected: HashMap<String, usize> = HashMap::new();
    for number in 0..120 {
        let mut command = any_command(&mut random);
        let key = if random.below(20) == 0 {
            "none".to_owned()
        } else {
            let id = any_id(&mut random, number);
            command["id"] = id.clone();
            id.to_string()
        };
        *expected.entry(key).or_default() += 1;
        client.process.send(&command);
        if random.below(3) == 0 {
            thread::sleep(Duration::from_millis(random.below(30)));
        }
    }
    assert_eq!(
        client.finish(),
        Exit::Code(0),
        "seed {seed}; {}",
        client.report(0)
    );
    let lines = client.lines();
    assert_eq!(answers_by_id(&lines), expected, "seed {seed}");
    check_runs(&lines).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

#[test]
fn l1_every_request_is_answered_exactly_once() {
    thread::scope(|scope| {
        let games: Vec<_> = (1..=6)
            .map(|seed| scope.spawn(move || play(seed)))
            .collect();
        for game in games {
            game.join().unwrap();
        }
    });
}

#[test]
fn l1_lines_that_are_no_requests_are_answered_too() {
    let mut client = Client::offline();
    let wrong = [
        "",
        " ",
        "{",
        "nonsense",
        "null",
        "7",
        "[]",
        "\"x\"",
        "{}",
        "{\"id\":1}",
        "\r",
    ];
    for line in wrong {
        client.process.send_text(line);
    }
    // The answer to an unknown dialog is the only kind of line without a response.
    client
        .process
        .send(&json!({"type": "extension_ui_response", "id": "gone", "value": "x"}));
    client.data("get_state");
    client.finish();
    let answers = client.lines();
    assert_eq!(answers.len(), wrong.len() + 1, "{}", client.report(0));
    let refused = &answers[..wrong.len()];
    assert!(
        refused.iter().all(|line| line["success"] == false),
        "{}",
        client.report(0)
    );
}

#[test]
fn l1_acceptance_and_completion_are_told_apart() {
    let server = ModelServer::start(json!({"turns": [{"pre_gate": "g", "steps": ["done"]}]}));
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    // The prompt has been accepted; the model has not answered.
    assert!(!client.kinds(from).contains(&"agent_end".to_owned()));
    let refused = client
        .process
        .ask(json!({"type": "prompt", "message": "again"}));
    assert_eq!(refused["success"], false);
    server.release("g");
    client.wait_end(from);
    client.finish();
    let answered = client
        .kinds(0)
        .iter()
        .filter(|kind| *kind == "prompt:response")
        .count();
    assert_eq!(answered, 2, "{}", client.report(0));
}

#[test]
fn l3_whatever_a_prompt_says_something_becomes_of_it() {
    let mut client = Client::offline();
    client.sandbox.add_agent_files(&json!({
        "prompts/greet.md": "---\ndescription: greets\n---\nread the letter to $1",
        "skills/knots/SKILL.md": "---\nname: knots\ndescription: ties knots\n---\nTie a knot.",
    }));
    for text in [
        "",
        "  ",
        "/greet Ada",
        "/skill:knots now",
        "/nonsense",
        "/skill:nonsense",
        "/",
        "\u{2028}",
    ] {
        let from = client.prompt(text);
        let messages = client.wait_end(from);
        assert!(messages.len() >= 2, "{text:?}: {messages:?}");
        assert_eq!(messages[0]["role"], "user", "{text:?}");
    }
    assert_eq!(client.finish(), Exit::Code(0));
}

#[test]
fn l3_a_prompt_that_cannot_start_says_why() {
    let server = ModelServer::start(json!({}));
    let client = Client::of(
        &server,
        &json!({"defaultProvider": "locked", "defaultModel": "m"}),
    );
    client
        .sandbox
        .add_agent_files(&json!({"models.json": {"providers": {"locked": {
        "baseUrl": server.base_url(), "api": "anthropic-messages", "apiKey": "!exit 7",
        "models": [{"id": "m", "name": "M", "contextWindow": 1000, "maxTokens": 100}]}}}}));
    let mut client = client.restart(&["--mode", "rpc"]);
    let answer = client
        .process
        .ask(json!({"type": "prompt", "message": "hello"}));
    // Either the prompt is refused with a reason, or a run ends with one.
    let reason = if answer["success"] == true {
        let last = client.wait_end(0).pop().unwrap();
        assert_eq!(last["stopReason"], "error", "{last}");
        last["errorMessage"].clone()
    } else {
        answer["error"].clone()
    };
    assert!(
        reason
            .as_str()
            .is_some_and(|reason| reason.contains("locked")),
        "{reason}"
    );
    assert_eq!(server.request_count(), 0);
}

#[test]
fn l10_the_state_can_be_asked_for_while_the_model_is_silent() {
    let server = ModelServer::start(
        json!({"turns": [{"steps": [{"text": ["first", {"gate": "g"}, " last"]}]}]}),
    );
    let mut client = Client::of(&server, &json!({}));
    let from = client.prompt("go");
    client.wait_for(
        from,
        &json!({"type": "message_update", "assistantMessageEvent": {"delta": "first"}}),
    );
    for _ in 0..100 {
        // Each is answered before the next is sent, and the gate is closed all the time.
        assert_eq!(client.data("get_state")["isStreaming"], true);
    }
    assert!(!client.kinds(from).contains(&"agent_end".to_owned()));
    server.release("g");
    client.wait_end(from);
    assert_eq!(client.data("get_state")["isStreaming"], false);
}

#[test]
fn l10_the_state_can_be_asked_for_while_a_tool_runs_and_while_text_pours() {
    let mut client = Client::offline();
    let tool = json!({"turns": [
        {"tool": "bash", "args": {"command": "while [ ! -e go ]; do sleep 0.01; done"}},
        {"deltas": 600, "size": 12, "paceMs": 2}]});
    let from = client.prompt(&script(&tool));
    client.wait_for(from, &json!({"type": "tool_execution_start"}));
    for _ in 0..100 {
        assert_eq!(client.data("get_state")["isStreaming"], true);
    }
    assert!(
        !client
            .kinds(from)
            .contains(&"tool_execution_end".to_owned())
    );
    client.sandbox.add_files(&json!({"go": ""}));
    client.wait_for(from, &json!({"type": "message_update"}));
    let asked = client.send(json!({"type": "get_state"}));
    let answered = client.wait_answer(&asked);
    client.wait_end(from);
    let ended = client.wait_for(from, &json!({"type": "agent_end"}));
    assert!(
        answered < ended,
        "the answer came at {answered}, the end at {ended}"
    );
}
