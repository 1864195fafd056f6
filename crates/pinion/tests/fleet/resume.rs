//! Failed runs continue with the children that did not finish.

use std::fs;

use serde_json::json;

use crate::stage::{Ran, Stage, script, wait_until};

fn resumed(stage: &Stage) -> Ran {
    let directory = stage.run_dir().display().to_string();
    stage.verb(&["resume", &directory])
}

#[test]
fn only_what_did_not_finish_runs_again() {
    let stage = Stage::offline();
    let body = |name: &str| {
        format!(
            r#"echo x >> ran-{name}; [ -e well ] || [ {name} = good ] || exit 1; echo '{{"type":"step","cost":0.5}}'; echo '{{"type":"done"}}'"#
        )
    };
    let plan = format!(
        "defaults: {{ retries: 0 }}\nchildren:\n{}{}",
        script("good", &body("good")),
        script("bad", &body("bad"))
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    stage.write("well", "");
    let again = resumed(&stage);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let count = |name: &str| {
        fs::read_to_string(stage.sandbox.work().join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!((count("ran-good"), count("ran-bad")), (1, 2));
    let report = again.report();
    assert_eq!(
        (report["status"].as_str(), report["resumed"].as_u64()),
        (Some("finished"), Some(1))
    );
    assert_eq!(report["totalCostMicros"], 1_000_000);
    assert_eq!(again.child("bad")["attempts"].as_array().unwrap().len(), 2);
    assert!(again.directory.join("children/bad.2.jsonl").exists());
}

#[test]
fn a_run_is_run_by_one() {
    let stage = Stage::offline();
    let body =
        r#"echo started > started; while [ ! -e go ]; do sleep 0.02; done; echo '{"type":"done"}'"#;
    let fleet = stage.start(&format!("children:\n{}", script("a", body)), &[]);
    wait_until("the child", || {
        stage.sandbox.work().join("started").exists()
    });
    let second = resumed(&stage);
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("is being run by another process"),
        "{}",
        second.stderr
    );
    stage.write("go", "");
    assert_eq!(stage.wait(fleet).code, Some(0));
}

fn judge(body: &str) -> String {
    let command = json!(["bash", "-c", body]);
    format!(
        "judge: {{ agent: jsonl, prompt: judge, command: {command}, verdict: {{ exit: {{ approve: 0, block: 1 }} }} }}\n"
    )
}

#[test]
fn the_judge_sees_what_a_resumed_run_brings() {
    let stage = Stage::offline();
    let body = r#"[ -e well ] || exit 1; echo '{"type":"text","text":"all is lost"}'; echo '{"type":"done"}'"#;
    let good = r#"echo '{"type":"text","text":"fine"}'; echo '{"type":"done"}'"#;
    let judging = r#"echo x >> judged; v=approve; grep -q lost && v=block; echo "{\"type\":\"text\",\"text\":\"{\\\"verdict\\\":\\\"$v\\\"}\"}"; echo '{"type":"done"}'"#;
    let plan = format!(
        "defaults: {{ retries: 0 }}\nchildren:\n{}{}{}",
        script("good", good),
        script("bad", body),
        judge(judging)
    );
    let ran = stage.run(&plan);
    assert_eq!(ran.report()["verdict"], "approve", "{}", ran.stderr);
    stage.write("well", "");
    let again = resumed(&stage);
    assert_eq!(again.report()["verdict"], "block", "{}", again.stderr);
    assert_eq!(again.code, Some(1));
    let judged = || {
        fs::read_to_string(stage.sandbox.work().join("judged"))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!(judged(), 2);
    // No child is left to run, so there are no new events.
    let third = resumed(&stage);
    assert_eq!((third.code, judged()), (Some(1), 2), "{}", third.stderr);
}

#[test]
fn a_killed_run_names_its_logs_and_how_to_go_on_with_it() {
    let stage = Stage::offline();
    let body = r#"echo '{"type":"text","text":"x"}'; touch began; sleep 1000"#;
    let mut fleet = stage.start(&format!("children:\n{}", script("a", body)), &[]);
    wait_until("the child", || stage.sandbox.work().join("began").exists());
    fleet.kill().unwrap();
    fleet.wait().unwrap();
    let directory = stage.run_dir().display().to_string();
    let shown = stage.verb(&["show", &directory]);
    let advice = format!("`pinion fleet resume {directory}`");
    assert!(shown.stderr.contains(&advice), "{}", shown.stderr);
    let shown = stage.verb(&["show", &directory, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        report["children"][0]["attempts"][0]["log"],
        "children/a.jsonl"
    );
}

#[test]
fn d1_damage_in_the_journal_is_told() {
    let stage = Stage::offline();
    let body =
        r#"echo '{"type":"tool","name":"read"}'; [ -e well ] || exit 1; echo '{"type":"done"}'"#;
    stage.run(&format!(
        "defaults: {{ retries: 0 }}\nchildren:\n{}",
        script("a", body)
    ));
    let path = stage.run_dir().join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let broken = text.replace("\"child_tool\"", "\"child_tool") + "{\"seq\":99,\"ti";
    fs::write(&path, broken).unwrap();
    let directory = stage.run_dir().display().to_string();
    let line = "line 3 of the journal cannot be read";
    let shown = stage.verb(&["show", &directory]);
    assert!(shown.stdout.contains(line), "{}", shown.stdout);
    stage.write("well", "");
    for _ in 0..2 {
        let again = resumed(&stage);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        let warnings = again.report()["warnings"].clone();
        let warnings: Vec<&str> = warnings
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with(line), "{warnings:?}");
        assert!(
            warnings[1].contains("was torn; its 13 bytes"),
            "{warnings:?}"
        );
    }
    let torn = fs::read_to_string(stage.run_dir().join("events.jsonl.torn")).unwrap();
    assert_eq!(torn, "{\"seq\":99,\"ti\n");
}
