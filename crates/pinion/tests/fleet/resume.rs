//! Runs that were killed or failed go on, and every child is accounted for exactly once.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::stage::{Ran, Stage, events, script};

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
        std::fs::read_to_string(stage.sandbox.work().join(name))
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

/// How often each child ended as finished, over the whole journal.
fn finished(stage: &Stage) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for event in events(&stage.run_dir()) {
        if event["type"] == "child_ended" && event["outcome"] == "finished" {
            *counts
                .entry(event["child"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    counts
}

#[test]
fn d4_kills_at_random_moments_lose_and_repeat_nothing_that_was_told() {
    let children = 6;
    // Delays from a fixed list, so that a failure can be seen again.
    for (round, delay) in [15u64, 40, 60, 90, 130, 170, 210, 260, 330, 420]
        .into_iter()
        .enumerate()
    {
        let stage = Stage::offline();
        let body = r#"sleep 0.0$((RANDOM % 9)); echo "$PINION_FLEET_CHILD" >> finished; echo '{"type":"step","cost":0.01}'; echo '{"type":"text","text":"ok"}'; echo '{"type":"done"}'"#;
        let scripts: String = (0..children)
            .map(|index| script(&format!("c{index}"), body))
            .collect();
        let fleet = stage.start(
            &format!("parallel: 2\nchildren:\n{scripts}"),
            &["--output", "jsonl"],
        );
        std::thread::sleep(Duration::from_millis(delay));
        let _ = kill(Pid::from_raw(fleet.id() as i32), Signal::SIGKILL);
        let output = fleet.wait_with_output().unwrap();
        // What was told on standard output, whole lines only.
        let told: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let kept = events(&stage.run_dir());
        for event in &told {
            assert!(
                kept.contains(event),
                "round {round}: {event} was told and is lost"
            );
        }
        if kept.is_empty() {
            continue;
        }
        let before = finished(&stage);
        let again = resumed(&stage);
        assert_eq!(again.code, Some(0), "round {round}: {}", again.stderr);
        let after = finished(&stage);
        assert_eq!(after.len(), children, "round {round}");
        assert!(
            after.values().all(|count| *count == 1),
            "round {round}: {after:?}"
        );
        assert!(before.keys().all(|child| after.contains_key(child)));
        let numbers: Vec<u64> = events(&stage.run_dir())
            .iter()
            .map(|event| event["seq"].as_u64().unwrap())
            .collect();
        assert!(
            numbers.iter().copied().eq(1..=numbers.len() as u64),
            "round {round}: {numbers:?}"
        );
        let report = again.report();
        assert_eq!(report["children"].as_array().unwrap().len(), children);
        let steps: u64 = report["children"]
            .as_array()
            .unwrap()
            .iter()
            .map(|child| child["totalCostMicros"].as_u64().unwrap())
            .sum();
        assert_eq!(report["totalCostMicros"], steps);
    }
}

#[test]
fn a_run_is_run_by_one() {
    let stage = Stage::offline();
    let body =
        r#"echo started > started; while [ ! -e go ]; do sleep 0.02; done; echo '{"type":"done"}'"#;
    let fleet = stage.start(&format!("children:\n{}", script("a", body)), &[]);
    crate::stage::wait_until("the child", || {
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
