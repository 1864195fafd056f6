//! Events of the agent clip: prompts by the clock, and the records of their runs.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::stage::{Stage, root};
use crate::support::{HANG, script};

/// Returns a time in the future.
fn soon(milliseconds: i64) -> String {
    let time = Timestamp::now() + SignedDuration::from_millis(milliseconds);
    format!("{time:.3}")
}

fn saying(text: &str) -> String {
    script(&json!({"text": text}))
}

/// Returns a prompt whose run does not end by itself.
fn waiting() -> String {
    let wait = json!({"tool": "bash", "args": {"command": "sleep 600"}});
    script(&json!({"turns": [wait, {"text": "x"}]}))
}

fn once(schedule: &str, prompt: &str) -> Value {
    json!({"type": "once", "schedule": schedule, "prompt": prompt})
}

fn with(mut input: Value, name: &str, value: &Value) -> Value {
    input[name] = value.clone();
    input
}

fn until_done(stage: &Stage, event: &Value) -> Value {
    let done = |event: &Value| event["status"] == "done";
    stage.until("event get", &json!({"id": event["id"]}), done)
}

fn until_running(stage: &Stage, event: &Value) -> Value {
    let id = json!({"id": event["id"]});
    let begun = stage.until("event get", &id, |event| !event["last_run_id"].is_null());
    let topic = json!({"topic_id": begun["last_topic_id"]});
    stage.until("state", &topic, |state| state["status"] == "running");
    begun
}

fn answers(stage: &Stage, topic: &Value) -> Vec<Value> {
    let shown = stage.ask("topic get", &json!({"id": topic}));
    let messages = shown["messages"].as_array().unwrap().iter();
    let answers = messages.filter(|message| message["role"] == "assistant");
    answers.map(|message| message["content"].clone()).collect()
}

fn events(stage: &Stage) -> Vec<Value> {
    let listed = stage.ask("event list", &json!({}));
    listed["events"].as_array().unwrap().clone()
}

fn refused(stage: &Stage, command: &str, input: &Value) -> (String, String) {
    let failure = stage.try_ask(&stage.token, command, input).unwrap_err();
    let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

#[test]
fn the_agent_is_called_when_the_time_comes() {
    let stage = Stage::new();
    let topic = stage.ask("topic create", &json!({"title": "News"}))["id"].clone();
    let at = soon(1000);
    let made = stage.ask(
        "event create",
        &with(once(&at, &saying("Nothing new.")), "topic_id", &topic),
    );
    assert_eq!(
        (&made["status"], &made["next_run_at"], &made["agent_id"]),
        (&json!("active"), &json!(at), &json!("default"))
    );
    let done = until_done(&stage, &made);
    assert_eq!(done["next_run_at"], Value::Null);
    assert_eq!(done["last_error"], Value::Null);
    assert!(done["last_run_at"].as_str().unwrap() >= at.as_str());
    assert_eq!(answers(&stage, &topic), ["Nothing new."]);
    let run = stage.ask("run get", &json!({"id": done["last_run_id"]}));
    assert_eq!((&run["status"], &run["topic_id"]), (&json!("done"), &topic));

    // Without a topic it begins one.
    let made = stage.ask("/events create", &once(&soon(300), &saying("Alone.")));
    let done = until_done(&stage, &made);
    assert_eq!(done["topic_id"], Value::Null);
    assert_ne!(done["last_topic_id"], topic);
    assert_eq!(answers(&stage, &done["last_topic_id"]), ["Alone."]);

    // A run that fails is over, too.
    let failing = script(&json!({"turns": [{"error": "out of ideas"}]}));
    let made = stage.ask("event create", &once(&soon(300), &failing));
    let done = until_done(&stage, &made);
    assert!(done["last_error"].is_string(), "{done}");
}

#[test]
fn events_are_listed_changed_paused_and_cancelled_in_both_spellings() {
    let stage = Stage::new();
    let made = stage.ask(
        "event create",
        &json!({"type": "daily", "schedule": "08:30", "timezone": "UTC", "prompt": "Good morning"}),
    );
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        (&made["type"], &made["schedule"], &made["timezone"]),
        (&json!("daily"), &json!("08:30"), &json!("UTC"))
    );
    let next: Timestamp = made["next_run_at"].as_str().unwrap().parse().unwrap();
    let ahead = next.duration_since(Timestamp::now());
    assert!(ahead > SignedDuration::ZERO && ahead < SignedDuration::from_hours(26));
    assert_eq!(events(&stage), std::slice::from_ref(&made));
    let listed = stage.ask("/events list", &json!({"agent_id": "another"}));
    assert_eq!(listed["events"], json!([]));
    assert_eq!(stage.ask(&format!("/events/{id} get"), &json!({})), made);

    let update = |input: &Value| stage.ask(&format!("/events/{id} update"), input);
    let paused = update(&json!({"status": "paused"}));
    assert_eq!(
        (&paused["status"], &paused["next_run_at"]),
        (&json!("paused"), &Value::Null)
    );
    let resumed = update(&json!({"status": "active", "prompt": "Hello"}));
    assert_eq!(
        (&resumed["prompt"], &resumed["next_run_at"]),
        (&json!("Hello"), &made["next_run_at"])
    );
    // A form sends back what it was shown.
    let same = stage.ask("event update", &resumed);
    assert_eq!(same["next_run_at"], resumed["next_run_at"]);
    let at = soon(3_600_000);
    let once = update(&json!({"type": "once", "schedule": at}));
    assert_eq!(once["next_run_at"], json!(at));

    let cancelled = stage.ask("event cancel", &json!({"id": id}));
    assert_eq!(
        (&cancelled["status"], &cancelled["next_run_at"]),
        (&json!("cancelled"), &Value::Null)
    );
    assert_eq!(events(&stage)[0]["status"], "cancelled");
    assert_eq!(update(&json!({"status": "active"}))["status"], "active");
    let again = stage.ask("cancel-event", &json!({"id": id}));
    assert_eq!(again["status"], "cancelled");
}

#[test]
fn what_is_paused_or_cancelled_is_not_called() {
    let stage = Stage::new();
    let at = soon(1000);
    let made = [1, 2].map(|_| stage.ask("event create", &once(&at, &saying("Never."))));
    stage.ask("cancel-event", &json!({"id": made[0]["id"]}));
    stage.ask(
        "event update",
        &json!({"id": made[1]["id"], "status": "paused"}),
    );
    // One that comes after them runs.
    let last = stage.ask("event create", &once(&soon(1200), &saying("Now.")));
    until_done(&stage, &last);
    let topics = stage.ask("topic list", &json!({}))["topics"].clone();
    assert_eq!(topics.as_array().unwrap().len(), 1);
    let resume = json!({"id": made[1]["id"], "status": "active"});
    let (code, message) = refused(&stage, "event update", &resume);
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("has passed"), "{message}");
}

#[test]
fn what_is_no_event_is_refused_in_words() {
    let stage = Stage::new();
    let daily = |schedule: &str| json!({"type": "daily", "schedule": schedule, "prompt": "x"});
    for (input, words) in [
        (json!({}), "type is required: once or daily"),
        (json!({"type": "weekly"}), "use one of once, daily"),
        (json!({"type": "once"}), "schedule is required"),
        (
            json!({"type": "daily", "schedule": "08:30"}),
            "prompt is required",
        ),
        (
            with(daily("08:30"), "prompt", &json!(" ")),
            "prompt is required",
        ),
        (
            with(daily("08:30"), "prompt", &json!("x".repeat(70_000))),
            "at most 65536 bytes",
        ),
        (daily("25:00"), "such as \"08:30\""),
        (once("tomorrow", "x"), "such as \"2030-01-31T09:00:00Z\""),
        (once("2020-01-31T09:00:00Z", "x"), "has passed"),
        (
            with(daily("08:30"), "timezone", &json!("Mars/Base")),
            "unknown timezone \"Mars/Base\"",
        ),
        (with(daily("08:30"), "topic_id", &json!("../x")), "is no id"),
    ] {
        let (code, message) = refused(&stage, "event create", &input);
        assert_eq!(code, "invalid_argument", "{input}: {message}");
        assert!(message.contains(words), "{input}: {message}");
    }
    for (name, value) in [("agent_id", "nobody"), ("topic_id", "nowhere")] {
        let input = with(daily("08:30"), name, &json!(value));
        assert_eq!(refused(&stage, "event create", &input).0, "not_found");
    }
    let nothing = json!({"id": "nothing"});
    for command in ["event get", "event update", "cancel-event"] {
        let (code, message) = refused(&stage, command, &nothing);
        assert_eq!(code, "not_found", "{command}: {message}");
    }
    let made = stage.ask("event create", &daily("08:30"));
    let done = json!({"id": made["id"], "status": "done"});
    let (_, message) = refused(&stage, "event update", &done);
    assert!(message.contains("active, paused or cancelled"), "{message}");
    assert_eq!(events(&stage), [made]);
}

#[test]
fn events_go_with_their_topic_and_their_agent() {
    let stage = Stage::new();
    let agent = stage.ask("agent create", &json!({"name": "other"}))["id"].clone();
    let topic = stage.ask("topic create", &json!({"agent_id": agent}))["id"].clone();
    let at = soon(3_600_000);
    let in_topic = stage.ask("event create", &with(once(&at, "x"), "topic_id", &topic));
    assert_eq!(in_topic["agent_id"], agent);
    let of_agent = stage.ask("event create", &with(once(&at, "x"), "agent_id", &agent));
    stage.ask("topic delete", &json!({"id": topic}));
    assert_eq!(events(&stage), [of_agent]);
    stage.ask("agent delete", &json!({"id": agent}));
    assert_eq!(events(&stage), [] as [Value; 0]);
    let kept = std::fs::read_dir(root(&stage.sandbox).join("data/agent/events")).unwrap();
    assert_eq!(kept.count(), 0);
}

#[test]
fn an_event_takes_the_place_of_what_goes_on_in_its_topic() {
    let stage = Stage::new();
    let mut chat = stage.chat(&json!({"message": waiting()}));
    let started = chat.until(|event| event["type"] == "tool_call").remove(0);
    let topic = &started["topic_id"];
    let made = stage.ask(
        "event create",
        &with(
            once(&soon(300), &saying("By the clock.")),
            "topic_id",
            topic,
        ),
    );
    let rest = chat.rest();
    assert_eq!(rest.last().unwrap()["failure"]["code"], "canceled");
    until_done(&stage, &made);
    assert_eq!(answers(&stage, topic).last().unwrap(), "By the clock.");
}

#[test]
fn others_have_events_of_their_own_and_no_tools_of_the_machine() {
    let stage = Stage::new();
    let other = stage.other_token();
    let ask = |command: &str, input: &Value| stage.try_ask(&other, command, input);
    let mine = stage.ask("event create", &once(&soon(3_600_000), "x"));
    assert_eq!(ask("event list", &json!({})).unwrap()["events"], json!([]));
    let hidden = ask("cancel-event", &json!({"id": mine["id"]})).unwrap_err();
    assert_eq!(hidden["code"], "not_found");
    let prompt =
        script(&json!({"turns": [{"tool": "bash", "args": {"command": "id"}}, {"text": "No."}]}));
    let theirs = ask("event create", &once(&soon(300), &prompt)).unwrap();
    let done = until_done(&stage, &theirs);
    let topic = ask("topic get", &json!({"id": done["last_topic_id"]})).unwrap();
    assert_eq!(topic["messages"][2]["content"], "Tool bash not found");
    assert_eq!(events(&stage).len(), 2);
}

#[test]
fn events_outlive_the_hub_and_a_time_that_was_missed_is_made_up_for() {
    let stage = Stage::new();
    let daily = json!({"type": "daily", "schedule": "08:30", "prompt": "x"});
    let daily = stage.ask("event create", &daily);
    let running = stage.ask("event create", &once(&soon(100), &waiting()));
    until_running(&stage, &running);
    let missed = stage.ask("event create", &once(&soon(1000), &saying("Late.")));
    let Stage {
        sandbox,
        mut process,
        ..
    } = stage;
    // An active run does not delay the end of the hub.
    let before = Instant::now();
    process.signal(Signal::SIGTERM);
    assert!(process.wait(HANG).is_some());
    assert!(before.elapsed() < Duration::from_secs(15));
    // The time of the missed event passes.
    std::thread::sleep(Duration::from_millis(1100));

    let stage = Stage::with(sandbox, &["--model", "offline/demo"]);
    let late = until_done(&stage, &missed);
    assert_eq!(answers(&stage, &late["last_topic_id"]), ["Late."]);
    assert_eq!(late["last_error"], Value::Null);
    let cut = stage.ask("event get", &json!({"id": running["id"]}));
    assert_eq!(
        (&cut["status"], &cut["last_error"]),
        (&json!("done"), &json!("the hub ended before the run did"))
    );
    assert_eq!(events(&stage)[0], daily);
}
