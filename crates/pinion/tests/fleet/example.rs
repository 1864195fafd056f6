//! The worked example behaves as its README describes.

use std::path::Path;

use serde_json::Value;

use crate::stage::Stage;

#[test]
fn seven_reviewers_and_a_judge_block_the_change() {
    let stage = Stage::offline();
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/code-review")
        .canonicalize()
        .unwrap();
    let plan = example.join("offline.yaml").display().to_string();
    let diff = std::fs::read(example.join("change.diff")).unwrap();
    let directory = stage.run_dir().display().to_string();
    let command = stage.command(&["fleet", "run", &plan, "--run-dir", &directory]);
    let ran = stage.finish(command, &diff);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let report = ran.report();
    assert_eq!(
        (report["status"].as_str(), report["verdict"].as_str()),
        (Some("judged"), Some("block"))
    );
    let children = report["children"].as_array().unwrap();
    assert_eq!(children.len(), 7);
    for child in children {
        assert_eq!(child["status"], "finished", "{child:#}");
        for finding in child["output"]["findings"].as_array().unwrap() {
            let severity = finding["severity"].as_str().unwrap();
            assert!(["critical", "warning", "suggestion"].contains(&severity));
        }
    }
    let judge = &report["judge"];
    assert_eq!(judge["output"]["findings"].as_array().unwrap().len(), 3);
    assert!(
        ran.stdout
            .starts_with("## code review (offline): block (7 of 7 finished)"),
        "{}",
        ran.stdout
    );
    let asked = String::from_utf8(ran.log("judge.jsonl")).unwrap();
    let first: Vec<Value> = asked
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let prompt = first
        .iter()
        .find(|line| line["message"]["role"] == "user")
        .unwrap()["message"]["content"]
        .to_string();
    assert!(
        prompt.contains("The name goes into the query as it is")
            && prompt.contains("def search(name"),
        "{prompt}"
    );
}

#[test]
fn the_real_plan_is_a_plan() {
    let stage = Stage::offline();
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/code-review")
        .canonicalize()
        .unwrap();
    let plan = example.join("plan.yaml").display().to_string();
    let ran = stage.verb(&["run", &plan]);
    assert_eq!(ran.code, Some(2));
    // Without keys its models cannot be asked; nothing else is wrong with it.
    let problems: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("plan.yaml:"))
        .collect();
    assert!(
        !problems.is_empty() && problems.iter().all(|line| line.contains("cannot be asked")),
        "{}",
        ran.stderr
    );
}
