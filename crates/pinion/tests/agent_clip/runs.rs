//! Runs: their events, the messages they accept, and their ends.

use serde_json::{Value, json};

use crate::common::python_clip;
use crate::stage::{Stage, kinds, text};
use crate::support::{offline_sandbox, script};

const TODO: &str = r#"
import json, sys
def say(**message): print(json.dumps(message, separators=(",", ":")), flush=True)
say(type="register", manifest={"package": "@acme/todo", "commands": [
    {"name": "add", "input": {"title": {"type": "string", "required": True}}}, {"name": "fail"}]})
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "invoke": continue
    if message["command"] == "add": say(type="result", id=message["id"], output={"added": message["input"]["title"]})
    else: say(type="error", id=message["id"], error="no shelf")
"#;

/// Returns a turn that waits until there is a file of this name in the working directory.
fn waits_for(name: &str) -> Value {
    let command = format!("until [ -e {name} ]; do sleep 0.02; done; echo there");
    json!({"tool": "bash", "args": {"command": command}})
}

fn waiting(name: &str, answer: &str) -> Value {
    json!({"message": script(&json!({"turns": [waits_for(name), {"text": answer}]}))})
}

fn in_topic(mut input: Value, topic: &Value) -> Value {
    input["topic_id"] = topic.clone();
    input
}

fn is_tool_call(event: &Value) -> bool {
    event["type"] == "tool_call"
}

#[test]
fn events_come_in_order_and_end_with_the_result() {
    let stage = Stage::new();
    let said = script(&json!({"turns": [
        [{"think": "Hm."}, {"text": "Let me look."}, {"tool": "bash", "args": {"command": "echo found"}, "id": "call-1"}],
        {"steps": [{"text": "It is there."}], "usage": {"input": 7, "output": 3, "cacheRead": 2}},
    ]}));
    let events = stage.chat(&json!({"message": said})).rest();
    assert_eq!(
        kinds(&events),
        [
            "start",
            "thinking",
            "text",
            "usage",
            "tool_call",
            "tool_result",
            "text",
            "usage",
            "done",
            "result"
        ]
    );
    assert_eq!(text(&events), "Let me look.It is there.");
    let one = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap();
    assert_eq!(
        *one("tool_call"),
        json!({"type": "tool_call", "id": "call-1", "name": "bash", "arguments": {"command": "echo found"}})
    );
    assert_eq!(
        *one("tool_result"),
        json!({"type": "tool_result", "id": "call-1", "content": "found\n"})
    );
    let usage = one("usage");
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(9), &json!(3))
    );
    assert_eq!(usage["cost"], 0.0);
    let (start, end) = (&events[0], events.last().unwrap());
    assert_eq!(end["status"], "done");
    for id in ["topic_id", "run_id", "agent_id"] {
        assert_eq!(start[id], end[id]);
    }
    let run = stage.ask("get-run", &json!({"id": start["run_id"]}));
    assert_eq!(
        (&run["status"], &run["topic_id"]),
        (&json!("done"), &start["topic_id"])
    );

    // A caller who wants one answer gets all of it.
    let whole = stage.ask("chat", &json!({"message": "hello"}));
    let whole = whole.as_array().unwrap();
    assert_eq!(kinds(whole), ["start", "text", "usage", "done", "result"]);
}

#[test]
fn what_is_said_into_a_run_is_heard() {
    let stage = Stage::new();
    let mut chat = stage.chat(&waiting("go", "First answer."));
    let mut events = chat.until(is_tool_call);
    let topic = &events[0]["topic_id"].clone();
    let state = stage.ask("state", &json!({"topic_id": topic}));
    assert_eq!(
        (&state["status"], &state["model"]),
        (&json!("running"), &json!("offline/demo"))
    );
    let steer = stage.ask(
        "steer",
        &json!({"topic_id": topic, "message": "mind the gap"}),
    );
    assert_eq!(steer["status"], "queued");
    let later = script(&json!({"text": "Second answer."}));
    stage.ask("follow_up", &json!({"topic_id": topic, "message": later}));
    std::fs::write(stage.sandbox.work().join("go"), "").unwrap();
    events.extend(chat.rest());
    assert_eq!(text(&events), "First answer.Second answer.");
    let ended = events.iter().filter(|event| event["type"] == "done");
    assert_eq!(ended.count(), 1);

    let topic_now = stage.ask("topic get", &json!({"id": topic}));
    let messages = topic_now["messages"].as_array().unwrap();
    let said: Vec<(&str, &str)> = messages
        .iter()
        .map(|message| {
            (
                message["role"].as_str().unwrap(),
                message["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(said[2], ("tool", "there\n"));
    assert_eq!(said[3], ("user", "mind the gap"));
    assert_eq!(said[4], ("assistant", "First answer."));
    assert_eq!(said[6], ("assistant", "Second answer."));
    // No run is active any more.
    let idle = stage.try_ask(
        &stage.token,
        "steer",
        &json!({"topic_id": topic, "message": "x"}),
    );
    assert_eq!(idle.unwrap_err()["code"], "failed_precondition");
    assert_eq!(
        stage.ask("abort", &json!({"topic_id": topic}))["status"],
        "idle"
    );
}

#[test]
fn an_aborted_run_says_so_and_ends() {
    let stage = Stage::new();
    let mut chat = stage.chat(&waiting("never", "x"));
    let events = chat.until(is_tool_call);
    let topic = &events[0]["topic_id"];
    let aborted = stage.ask("abort", &json!({"topic_id": topic}));
    assert_eq!(aborted["status"], "aborted");
    let rest = chat.rest();
    let failure = rest.last().unwrap();
    assert_eq!(failure["failure"]["code"], "canceled", "{rest:?}");
    assert_eq!(rest[rest.len() - 2]["type"], "error");
    let run = stage.ask("run get", &json!({"id": events[0]["run_id"]}));
    assert_eq!(run["status"], "cancelled");
    // The topic can be used again.
    let again = stage
        .chat(&in_topic(
            json!({"message": script(&json!({"text": "Back."}))}),
            topic,
        ))
        .rest();
    assert_eq!(text(&again), "Back.");
}

#[test]
fn a_caller_who_leaves_ends_the_run_unless_it_is_detached() {
    let stage = Stage::new();
    let mut chat = stage.chat(&waiting("never", "x"));
    let started = chat.until(is_tool_call).remove(0);
    drop(chat);
    let run = stage.until("run get", &json!({"id": started["run_id"]}), |run| {
        run["status"] != "running"
    });
    assert_eq!(run["status"], "cancelled");

    let mut input = waiting("later", "Still here.");
    input["detach"] = true.into();
    let mut chat = stage.chat(&input);
    let started = chat.until(is_tool_call).remove(0);
    drop(chat);
    let topic = json!({"topic_id": started["topic_id"]});
    // It is not ended by something that takes a while.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(stage.ask("state", &topic)["status"], "running");
    std::fs::write(stage.sandbox.work().join("later"), "").unwrap();
    stage.until("state", &topic, |state| state["status"] == "idle");
    let messages = stage.ask("topic get", &json!({"id": started["topic_id"]}));
    let last = messages["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["content"], "Still here.");
}

#[test]
fn topics_run_beside_each_other_and_a_second_call_takes_the_place_of_the_first() {
    let stage = Stage::new();
    let mut one = stage.chat(&waiting("one", "One."));
    let mut two = stage.chat(&waiting("two", "Two."));
    let first = one.until(is_tool_call);
    two.until(is_tool_call);
    std::fs::write(stage.sandbox.work().join("two"), "").unwrap();
    assert_eq!(text(&two.rest()), "Two.");
    let topic = &first[0]["topic_id"];
    let third = stage
        .chat(&in_topic(
            json!({"message": script(&json!({"text": "Three."}))}),
            topic,
        ))
        .rest();
    assert_eq!(text(&third), "Three.");
    let ended = one.rest();
    assert_eq!(
        ended.last().unwrap()["failure"]["code"],
        "canceled",
        "{ended:?}"
    );
}

#[test]
fn a_provider_that_fails_is_told_and_fails_the_call() {
    let stage = Stage::new();
    let said = script(&json!({"error": {"status": 400, "message": "no such thing"}}));
    let events = stage.chat(&json!({"message": said})).rest();
    assert_eq!(kinds(&events), ["start", "usage", "error", "failure"]);
    let words = |event: &Value| event.to_string().contains("no such thing");
    assert!(words(&events[2]) && words(&events[3]), "{events:?}");
    assert_eq!(events[3]["failure"]["code"], "internal");
    let run = stage.ask("run get", &json!({"run_id": events[0]["run_id"]}));
    assert_eq!(run["status"], "error");
    assert!(words(&run["error"]));
}

#[test]
fn an_engine_that_cannot_be_made_fails_the_call() {
    let stage = Stage::new();
    let made = stage.ask(
        "agent create",
        &json!({"name": "broken", "llm_model": "nobody/knows-it"}),
    );
    let events = stage
        .chat(&json!({"message": "hi", "agent_id": made["id"]}))
        .rest();
    assert_eq!(kinds(&events), ["start", "error", "failure"]);
    assert_eq!(
        events[2]["failure"]["code"], "failed_precondition",
        "{events:?}"
    );
    let events = stage
        .chat(&json!({"message": "hi", "topic_id": "nowhere"}))
        .rest();
    assert_eq!(events[0]["failure"]["code"], "not_found");
}

#[test]
fn clips_are_tools_within_the_scope_of_the_agent() {
    let stage = Stage::new();
    stage.install("todo", python_clip(TODO).path());
    let said = script(&json!({"turns": [
        [{"tool": "todo_add", "args": {"title": "Milk"}}, {"tool": "todo_fail", "args": {}}],
        {"tool": "todo_add", "args": {"title": ["Milk"]}},
        {"text": "Done."},
    ]}));
    let results = |input: &Value| -> Vec<String> {
        let events = stage.chat(input).rest();
        let results = events.iter().filter(|event| event["type"] == "tool_result");
        results
            .map(|event| event["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        results(&json!({"message": said})),
        [
            r#"{"added":"Milk"}"#,
            "todo fail failed (internal): no shelf",
            "todo add failed (invalid_argument): the input of \"todo add\" is wrong: \"title\" must be a string, not [\"Milk\"]",
        ]
    );
    let made = stage.ask(
        "/agents create",
        &json!({"name": "narrow", "scope": ["browser"]}),
    );
    assert_eq!(
        results(&json!({"message": said, "agent_id": made["id"]})),
        [
            "Tool todo_add not found",
            "Tool todo_fail not found",
            "Tool todo_add not found"
        ]
    );
    // Scopes may name packages, too.
    stage.ask(
        &format!("/agents/{} update", made["id"].as_str().unwrap()),
        &json!({"scope": ["local/todo"]}),
    );
    assert_eq!(
        results(&json!({"message": said, "agent_id": made["id"]}))[0],
        r#"{"added":"Milk"}"#
    );
}

#[test]
fn topics_go_on_after_a_restart_also_after_a_kill() {
    let arguments = ["--model", "offline/demo"];
    let stage = Stage::new();
    let events = stage
        .chat(&json!({"message": script(&json!({"text": "Before."}))}))
        .rest();
    let topic = events[0]["topic_id"].clone();
    let mut chat = stage.chat(&in_topic(waiting("never", "x"), &topic));
    let cut = chat.until(is_tool_call);
    let stage = stage.restart(&arguments);
    let run = stage.ask("run get", &json!({"id": cut[0]["run_id"]}));
    assert_eq!(
        (&run["status"], &run["error"]),
        (&json!("error"), &json!("the hub ended before the run did"))
    );
    let after = stage
        .chat(&in_topic(
            json!({"message": script(&json!({"text": "After."}))}),
            &topic,
        ))
        .rest();
    assert_eq!(text(&after), "After.");
    let topics = stage.ask("topic list", &json!({}))["topics"].clone();
    assert_eq!(topics.as_array().unwrap().len(), 1);
    let shown = stage.ask("topic get", &json!({"id": topic}));
    let answers: Vec<&Value> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(answers.first(), Some(&&json!("Before.")));
    assert_eq!(answers.last(), Some(&&json!("After.")));
}

#[test]
fn rules_hold_for_the_agent_of_a_hub() {
    let sandbox = offline_sandbox(&json!({"approvals": {"deny": ["bash"]}}));
    let stage = Stage::with(sandbox, &["--model", "offline/demo"]);
    let said = script(
        &json!({"turns": [{"tool": "bash", "args": {"command": "echo hi"}}, {"text": "x"}]}),
    );
    let events = stage.chat(&json!({"message": said})).rest();
    let result = events
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert_eq!(result["is_error"], true, "{result}");
}
