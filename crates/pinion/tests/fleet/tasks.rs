//! Children as tasks of the same process.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Stage, is_alive, wait_until};
use crate::support::script;

fn plan(children: &[(String, Value)], more: Value) -> String {
    let children: Vec<Value> = children
        .iter()
        .map(|(name, body)| json!({"name": name, "prompt": script(body)}))
        .collect();
    let mut plan =
        json!({"defaults": {"isolation": "task", "model": "offline/demo"}, "children": children});
    for (name, value) in more.as_object().unwrap() {
        plan[name] = value.clone();
    }
    plan.to_string()
}

#[test]
fn a_task_is_like_a_process_but_for_the_process() {
    let stage = Stage::offline();
    let body = json!({"turns": [[{"tool": "bash", "args": {"command": "echo hi > made"}}], {"text": "Done."}]});
    let ran = stage.run(&plan(&[("a".into(), body)], json!({})));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let child = ran.child("a");
    assert_eq!(
        (child["result"].as_str(), child["isolation"].as_str()),
        (Some("Done."), Some("task"))
    );
    assert_eq!(child["attempts"][0]["steps"].as_array().unwrap().len(), 2);
    assert_eq!(child["attempts"][0]["changed"], true);
    assert!(stage.sandbox.work().join("made").exists());
    let log = String::from_utf8(ran.log("a.jsonl")).unwrap();
    assert!(
        log.starts_with("{\"type\":\"session\"")
            && log.ends_with("{\"type\":\"agent_settled\",\"aborted\":false}\n"),
        "{log}"
    );
}

#[test]
fn a_hundred_at_once_all_finish() {
    let stage = Stage::offline();
    let children: Vec<(String, Value)> = (0..100)
        .map(|index| {
            (
                format!("c{index}"),
                json!({"turns": [{"text": format!("I am {index}."), "paceMs": 5}]}),
            )
        })
        .collect();
    let ran = stage.run(&plan(&children, json!({"parallel": 100})));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for index in 0..100 {
        assert_eq!(
            ran.child(&format!("c{index}"))["result"],
            format!("I am {index}.")
        );
    }
}

#[test]
fn l8_what_a_task_left_behind_ends_with_it_and_not_with_others() {
    let stage = Stage::offline();
    let leaves = json!({"turns": [[{"tool": "bash", "args": {"command": "setsid sleep 1000 >/dev/null 2>&1 & echo $! > left"}}], {"text": "Bye."}]});
    let stays = json!({"turns": [[{"tool": "bash", "args": {"command": "echo $$ > stays; while [ ! -e go ]; do sleep 0.02; done"}}], {"text": "Still here."}]});
    let fleet = stage.start(
        &plan(
            &[("leaves".into(), leaves), ("stays".into(), stays)],
            json!({}),
        ),
        &[],
    );
    let pid = |name: &str| {
        fs::read_to_string(stage.sandbox.work().join(name))
            .ok()
            .and_then(|text| text.trim().parse::<i32>().ok())
    };
    wait_until("both", || pid("left").is_some() && pid("stays").is_some());
    wait_until("the end of what was left", || {
        !is_alive(pid("left").unwrap())
    });
    assert!(is_alive(pid("stays").unwrap()));
    stage.write("go", "");
    let ran = stage.wait(fleet);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.child("stays")["result"], "Still here.");
}

#[test]
fn a_task_that_takes_too_long_is_ended() {
    let stage = Stage::offline();
    let ran = stage.run(&plan(
        &[("a".into(), json!({"stall": 600_000}))],
        json!({"defaults": {"isolation": "task", "model": "offline/demo", "timeout": "600ms"}}),
    ));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.child("a")["failure"]["clock"], "child");
}

#[test]
fn a_model_that_is_a_file_lies_where_the_child_runs() {
    let stage = Stage::offline();
    stage.write(
        "deep/answers.json",
        r#"{"turns": [{"text": "From below."}]}"#,
    );
    for isolation in ["process", "task"] {
        let _ = fs::remove_dir_all(stage.run_dir());
        let ran = stage.run(&format!(
            "children:\n  - {{ name: a, prompt: go, isolation: {isolation}, directory: deep, model: 'offline/scenario:answers.json' }}\n"
        ));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.child("a")["result"], "From below.", "{isolation}");
    }
}
