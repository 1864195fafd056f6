//! The memory of a conversation over standard input, and the order of its requests.

use pinion_testkit::{Exit, ModelServer};
use serde_json::{Value, json};

use crate::stage::{Home, of_request, payloads, said};
use crate::support::{HANG, script};

const APPEND: [&str; 2] = ["--patch-mode", "append"];

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({"steps": [text]})).collect()
}

#[test]
fn a_prompt_that_failed_or_was_stopped_is_forgotten() {
    let turns = json!([
        {"steps": ["One."]},
        {"http": {"status": 400, "body": {"error": {"message": "no"}}}},
        {"steps": ["Two."]},
        {"steps": [{"text": ["Thr", {"stall": true}]}]},
        {"steps": ["Four."]},
    ]);
    let server = ModelServer::start(json!({"turns": turns}));
    let mut talk = Home::of(&server, "openai").talk(&APPEND);
    assert_eq!(talk.say("a", "first"), "ok");
    assert_eq!(talk.say("b", "bad"), "failed");
    assert_eq!(talk.say("c", "second"), "ok");
    talk.submit("d", "long");
    talk.event("d", "ChatTextPatch");
    talk.ask("e", "cancel");
    assert_eq!(talk.done("d"), "stopped");
    assert_eq!(talk.say("f", "third"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
    let requests = server.requests();
    let heard: Vec<Vec<String>> = requests.iter().map(said).collect();
    let before = ["user: seed", "user: first"];
    assert_eq!(heard[0], before);
    let known = [&before[..], &["assistant: One."]].concat();
    assert_eq!(heard[1], [&known[..], &["user: bad"]].concat());
    assert_eq!(heard[2], [&known[..], &["user: second"]].concat());
    let known = [&known[..], &["user: second", "assistant: Two."]].concat();
    assert_eq!(heard[3], [&known[..], &["user: long"]].concat());
    assert_eq!(heard[4], [&known[..], &["user: third"]].concat());
    let lines = talk.lines();
    let failed = of_request(&lines, "b");
    let error = &failed[failed.len() - 2]["error"];
    assert_eq!(error["code"], "run_failed");
    assert_eq!(error.get("terminal"), None, "{error}");
    // The timeline still contains them: it shows what happened.
    let last = of_request(&lines, "f");
    let entities = last[last.len() - 2]["snapshot"]["entities"]
        .as_array()
        .unwrap()
        .clone();
    let shown: Vec<&str> = entities
        .iter()
        .filter_map(|it| it["payload"]["content"].as_str())
        .collect();
    for text in [
        "first", "One.", "bad", "second", "Two.", "long", "Thr", "third", "Four.",
    ] {
        assert!(shown.contains(&text), "{text} in {shown:?}");
    }
}

#[test]
fn what_a_tool_found_out_is_remembered() {
    let turns = json!([
        {"steps": [{"tool": "bash", "args": {"command": "echo found-it"}, "id": "call_1"}]},
        {"steps": ["Yes."]}, {"steps": ["Still."]}]);
    let server = ModelServer::start(json!({"turns": turns}));
    let mut talk = Home::of(&server, "openai").talk(&["--tools", "bash"]);
    assert_eq!(talk.say("a", "look"), "ok");
    assert_eq!(talk.say("b", "sure?"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
    let heard = said(&server.requests()[2]);
    assert_eq!(
        heard,
        [
            "user: seed",
            "user: look",
            "assistant: ",
            "tool: found-it\n",
            "assistant: Yes.",
            "user: sure?"
        ],
        "{heard:?}"
    );
}

#[test]
fn the_system_prompt_and_messages_of_the_file_come_first() {
    let server = ModelServer::start(json!({"turns": texts(&["Yes."])}));
    let home = Home::of(&server, "openai");
    home.write(
        "full.yaml",
        "name: full\nshort: Everything\nsystem-prompt: Be brief.\nmessages:\n  - one\n  - two\n",
    );
    let mut talk = home.talk_about("full.yaml", &[]);
    assert_eq!(talk.say("a", "three"), "ok");
    talk.finish();
    assert_eq!(
        said(&server.requests()[0]),
        ["system: Be brief.", "user: one", "user: two", "user: three"]
    );
}

#[test]
fn a_snapshot_waits_for_the_run_and_a_cancel_behind_it_does_not() {
    let mut talk = Home::offline().talk(&APPEND);
    talk.submit(
        "run",
        &script(&json!([{"text": "begun"}, {"stall": 600_000}])),
    );
    talk.event("run", "ChatTextPatch");
    talk.ask("look", "snapshot");
    talk.ask("empty", "somethingElse");
    talk.ask("stop", "cancel");
    assert_eq!(talk.done("stop"), "ok");
    assert_eq!(talk.done("run"), "stopped");
    assert_eq!(talk.done("look"), "ok");
    assert_eq!(talk.done("empty"), "failed");
    assert_eq!(talk.finish(), Exit::Code(0));
    let lines = talk.lines();
    let at = |id: &str| {
        lines
            .iter()
            .position(|line| line["requestId"] == id && line.get("done").is_some())
            .unwrap()
    };
    assert!(at("run") < at("look") && at("look") < at("empty"));
    let look = of_request(&lines, "look");
    let shown = look[0]["snapshot"]["entities"].as_array().unwrap();
    assert_eq!(shown[1]["payload"]["status"], "stopped");
}

#[test]
fn a_shutdown_waits_for_the_run_and_comes_after_its_done() {
    for _ in 0..10 {
        let mut talk = Home::offline().talk(&APPEND);
        talk.submit(
            "run",
            &script(&json!({"deltas": 20, "size": 4, "paceMs": 2})),
        );
        talk.ask("bye", "shutdown");
        assert_eq!(talk.end(), Exit::Code(0));
        let lines = talk.lines();
        let done: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["done"]["status"].as_str())
            .collect();
        assert_eq!(done, ["ok", "shutdown"]);
    }
}

#[test]
fn the_end_of_input_waits_for_the_run_and_for_what_waited() {
    let mut talk = Home::offline().talk(&APPEND);
    talk.submit(
        "run",
        &script(&json!({"deltas": 40, "size": 4, "paceMs": 5})),
    );
    talk.ask("look", "snapshot");
    talk.submit("late", "too early");
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(talk.done("run"), "ok");
    assert_eq!(talk.done("look"), "ok");
    // It came behind the snapshot, so nothing was active when its turn came.
    assert_eq!(talk.done("late"), "ok");
    assert_eq!(talk.lines().last().unwrap()["requestId"], "late");
}

#[test]
fn a_last_line_without_a_line_feed_counts() {
    let mut talk = Home::offline().talk(&[]);
    talk.process
        .send_bytes(br#"{"requestId":"last","snapshot":{}}"#);
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(talk.done("last"), "ok");
}

#[test]
fn a_second_prompt_is_refused_while_one_is_answered() {
    let server =
        ModelServer::start(json!({"turns": [{"steps": [{"text": ["a", {"gate": "g"}, "b"]}]}]}));
    let mut talk = Home::of(&server, "openai").talk(&APPEND);
    talk.submit("one", "x");
    talk.event("one", "ChatTextPatch");
    for number in 0..5 {
        let id = format!("busy-{number}");
        assert_eq!(talk.say(&id, "y"), "failed");
        let refused = of_request(&talk.lines(), &id);
        assert_eq!(refused[0]["error"]["code"], "session_busy", "{refused:?}");
        assert_eq!(
            refused[0]["error"]["message"],
            "stdin RPC session s1 already has an active submit"
        );
    }
    server.release("g");
    assert_eq!(talk.done("one"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
    assert_eq!(server.request_count(), 1);
}

#[test]
fn no_engine_fails_every_prompt_and_nothing_else() {
    let mut talk = Home::offline().talk(&["--ai-engine", "gpt-4o"]);
    for id in ["a", "b"] {
        assert_eq!(talk.say(id, "x"), "failed");
        let refused = of_request(&talk.lines(), id);
        assert_eq!(
            refused[0]["error"]["code"], "engine_init_failed",
            "{refused:?}"
        );
        assert_eq!(refused[0]["error"].get("terminal"), None);
    }
    talk.ask("c", "snapshot");
    assert_eq!(talk.done("c"), "ok");
    assert_eq!(talk.finish(), Exit::Code(0));
}

#[test]
fn a_session_can_be_bound_by_the_command_line() {
    let home = Home::offline();
    let mut talk = home.talk(&["--session-id", "mine"]);
    talk.process
        .send(&json!({"requestId": "a", "sessionId": "mine", "snapshot": {}}));
    assert_eq!(talk.done("a"), "ok");
    talk.process
        .send(&json!({"requestId": "b", "sessionId": "yours", "snapshot": {}}));
    assert_eq!(talk.done("b"), "failed");
    assert_eq!(talk.finish(), Exit::Code(0));
    let lines = talk.lines();
    assert!(
        lines.iter().all(|line| line["sessionId"] == "mine"),
        "{lines:?}"
    );
}

#[test]
fn numbers_go_on_over_prompts_and_the_turn_keeps_its_id() {
    let mut talk = Home::offline().talk(&APPEND);
    for id in ["a", "b", "c"] {
        assert_eq!(talk.say(id, &script(&json!({"text": id}))), "ok");
    }
    assert_eq!(talk.finish(), Exit::Code(0));
    let lines = talk.lines();
    let calls = payloads(&lines, "ChatProviderCallStarted");
    let ids = |name: &str| {
        let mut ids: Vec<&str> = calls
            .iter()
            .filter_map(|call| call["correlation"][name].as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    assert_eq!(calls.len(), 3);
    assert_eq!(ids("turnId"), 1, "{calls:?}");
    assert_eq!(ids("runId"), 3, "{calls:?}");
}

#[test]
fn a_client_that_writes_before_it_reads_is_served() {
    let mut talk = Home::offline().talk(&[]);
    let mut input = String::new();
    for number in 0..2000 {
        input.push_str(&format!(
            "{}\n",
            json!({"requestId": format!("r{number}"), "snapshot": {}})
        ));
    }
    talk.process.send_bytes(input.as_bytes());
    assert_eq!(talk.finish(), Exit::Code(0));
    let done = talk
        .process
        .find(0, 2000, HANG, |line| line["done"]["status"] == "ok");
    assert!(done.is_some());
}
