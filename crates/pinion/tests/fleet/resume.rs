//! Runs that failed go on with what did not finish.

use crate::stage::{Ran, Stage, script};

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
