//! Overload, failback, retries: scripted failures end to end.

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, script};

fn overloaded() -> Value {
    json!({"http": {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}}})
}

fn models(ran: &Ran, child: &str) -> Vec<String> {
    let child = ran.child(child);
    let attempts = child["attempts"].as_array().unwrap();
    attempts
        .iter()
        .map(|attempt| attempt["model"].as_str().unwrap_or("–").to_owned())
        .collect()
}

/// A pinion child on two models of the mock server.
const OURS: &str = "  - { name: a, prompt: 'say hi', tier: t }\n";
const TIER: &str = "tiers: { t: [mock/mock-1, mock/mock-2] }\n";

#[test]
fn m2_overload_moves_on_before_retries_are_spent() {
    let stage = Stage::mock(json!({"turns": [overloaded(), {"steps": [{"text": "hello"}]}]}));
    let ran = stage.run(&format!("{TIER}children:\n{OURS}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(models(&ran, "a"), ["mock/mock-1", "mock/mock-2"]);
    assert_eq!(ran.child("a")["result"], "hello");
    let requests = stage.server.as_ref().unwrap().requests();
    assert_eq!(requests.len(), 2, "one overload was enough");
}

#[test]
fn m3_a_child_that_changed_something_is_not_moved_unless_told() {
    let turns = || {
        json!({"turns": [
        {"steps": [{"tool": "bash", "args": {"command": "echo once >> effects"}}]},
        overloaded(), overloaded(), overloaded(), overloaded(), overloaded(),
    ], "on_exhausted": "repeat_last"})
    };
    let settings = json!({"retry": {"maxRetries": 1, "baseDelayMs": 10}});
    let effects = |stage: &Stage| {
        let text =
            std::fs::read_to_string(stage.sandbox.work().join("effects")).unwrap_or_default();
        text.lines().count()
    };
    let stage = Stage::mock(turns());
    stage
        .sandbox
        .add_agent_files(&json!({"settings.json": settings}));
    let ran = stage.run(&format!("{TIER}children:\n{OURS}"));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(
        (
            child["failure"]["kind"].as_str(),
            child["failure"]["status"].as_u64()
        ),
        (Some("api"), Some(529))
    );
    assert_eq!(models(&ran, "a"), ["mock/mock-1"], "it wrote a file");
    assert_eq!(child["attempts"][0]["changed"], true);
    assert_eq!(effects(&stage), 1);

    let stage = Stage::mock(json!({"turns": [
        {"steps": [{"tool": "bash", "args": {"command": "echo once >> effects"}}]},
        overloaded(), {"steps": [{"text": "done"}]},
    ]}));
    let ran = stage.run(&format!(
        "{TIER}defaults: {{ failback: always }}\nchildren:\n{OURS}"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(models(&ran, "a"), ["mock/mock-1", "mock/mock-2"]);
}

#[test]
fn a_wrong_key_is_not_tried_on_another_model() {
    let wrong = json!({"http": {"status": 401, "body": {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}}});
    let stage = Stage::mock(json!({"turns": [wrong], "on_exhausted": "repeat_last"}));
    let ran = stage.run(&format!("{TIER}children:\n{OURS}"));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.child("a")["failure"]["kind"], "provider_auth");
    assert_eq!(models(&ran, "a"), ["mock/mock-1"]);
    assert_eq!(stage.server.as_ref().unwrap().requests().len(), 1);
}

#[test]
fn an_answer_that_is_cut_is_asked_for_once_more() {
    let cut = json!({"steps": [{"text": "It was a dark and"}], "stop": "length"});
    let stage = Stage::mock(json!({"turns": [cut, {"steps": [{"text": "All of it."}]}]}));
    let ran = stage.run("children:\n  - { name: a, prompt: 'tell', model: mock/mock-1 }\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(child["attempts"][0]["failure"]["kind"], "output_length");
    assert_eq!(child["result"], "All of it.");
    let second = stage.server.as_ref().unwrap().requests()[1].to_string();
    assert!(second.contains("cut off at the limit"), "{second}");
}

/// Children whose model `bad` fails. They record the model of each permitted attempt in the file `asked`.
#[test]
fn the_breaker_opens_for_all_and_lets_one_probe_through() {
    let stage = Stage::offline();
    let body = r#"echo "$PINION_FLEET_MODEL" >> asked; if [ "$PINION_FLEET_MODEL" = bad ] && [ ! -e well ]; then echo '{"type":"error","message":"529 Overloaded"}'; exit 1; fi; [ "$PINION_FLEET_CHILD" = c5 ] && touch well && sleep 5.2; echo '{"type":"step"}'; echo '{"type":"done"}'"#;
    let scripts: String = (0..8)
        .map(|index| script(&format!("c{index}"), body))
        .collect();
    let plan = format!(
        "tiers: {{ t: [bad, good] }}\ndefaults: {{ tier: t }}\nbreaker: {{ failures: 3, window: 60s, cooldown: 5s }}\nparallel: 1\nchildren:\n{scripts}"
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = std::fs::read_to_string(stage.sandbox.work().join("asked")).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    // Three fail on the first model and move; then it is left alone; after the cooldown one tries, and all go back.
    assert_eq!(
        asked,
        [
            "bad", "good", "bad", "good", "bad", "good", "good", "good", "good", "bad", "bad"
        ]
    );
    let states: Vec<String> = ran
        .events()
        .iter()
        .filter(|event| event["type"] == "breaker")
        .map(|event| event["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["open", "half_open", "closed"]);
}

#[test]
fn retries_are_counted_and_the_last_two_minutes_start_none() {
    let stage = Stage::offline();
    let body = r#"echo x >> tries; exit 3"#;
    let plan = |more: &str| {
        format!(
            "{more}\ndefaults: {{ retries: 2, backoff: 10ms }}\nchildren:\n{}",
            script("a", body)
        )
    };
    let tries = |stage: &Stage| {
        std::fs::read_to_string(stage.sandbox.work().join("tries"))
            .unwrap()
            .lines()
            .count()
    };
    let ran = stage.run(&plan(""));
    assert_eq!((ran.code, tries(&stage)), (Some(1), 3), "{}", ran.stderr);
    assert_eq!(ran.child("a")["attempts"].as_array().unwrap().len(), 3);
    let stage = Stage::offline();
    stage.run(&plan("timeout: 90s"));
    assert_eq!(tries(&stage), 1, "90 s are less than two minutes");
}

#[test]
fn answers_in_the_wrong_form_are_tried_again() {
    let stage = Stage::offline();
    let body = r#"if [ "$PINION_FLEET_ATTEMPT" = 1 ]; then t='no idea'; else t='{\"severity\":\"low\"}'; fi; echo "{\"type\":\"text\",\"text\":\"$t\"}"; echo '{"type":"done"}'"#;
    stage.write("s.json", r#"{"type":"object","required":["severity"]}"#);
    let ran = stage.run(&format!(
        "defaults: {{ schema: s.json, backoff: 10ms }}\nchildren:\n{}",
        script("a", body)
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(child["attempts"][0]["failure"]["kind"], "structured_output");
    assert_eq!(child["output"], json!({"severity": "low"}));
}

#[test]
fn a_probe_that_finishes_without_a_step_closes_the_breaker() {
    let stage = Stage::offline();
    let body = r#"if [ "$PINION_FLEET_CHILD" = c0 ] && [ "$PINION_FLEET_MODEL" = bad ]; then echo '{"type":"error","message":"529 Overloaded"}'; exit 1; fi; [ "$PINION_FLEET_CHILD" = c1 ] && sleep 1.3; echo '{"type":"text","text":"ok"}'; echo '{"type":"done"}'"#;
    let scripts: String = (0..4)
        .map(|index| script(&format!("c{index}"), body))
        .collect();
    let ran = stage.run(&format!(
        "tiers: {{ t: [bad, good] }}\ndefaults: {{ tier: t }}\nbreaker: {{ failures: 1, window: 60s, cooldown: 1s }}\nparallel: 1\nchildren:\n{scripts}"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = ran.events();
    let states: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "breaker")
        .filter_map(|event| event["state"].as_str())
        .collect();
    assert_eq!(states, ["open", "half_open", "closed"]);
    assert_eq!(ran.child("c3")["model"], "bad");
}
