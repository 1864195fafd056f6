//! Working directories of children.

use crate::stage::Stage;

#[test]
fn a_child_is_told_the_directory_it_is_in() {
    let stage = Stage::offline();
    stage.write("deep/down/x", "");
    std::os::unix::fs::symlink("deep", stage.sandbox.work().join("link")).unwrap();
    // No shell, which would set it right.
    let child = |name: &str, more: &str| {
        format!(
            "  - {{ name: {name}, agent: jsonl, prompt: go, command: [printenv, PWD], events: {{ done: [] }}{more} }}\n"
        )
    };
    let plan = format!(
        "children:\n{}{}{}",
        child("here", ""),
        child("there", ", directory: link/down"),
        child("said", ", directory: deep, env: { PWD: /said }"),
    );
    stage.write("plan.yaml", &plan);
    let directory = stage.run_dir().display().to_string();
    let mut run = stage.command(&["fleet", "run", "plan.yaml", "--run-dir", &directory]);
    run.env("PWD", "/nowhere");
    let ran = stage.finish(run, b"");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let work = stage.sandbox.work().canonicalize().unwrap();
    for (name, place) in [
        ("here", work.clone()),
        ("there", work.join("deep/down")),
        ("said", "/said".into()),
    ] {
        let told = String::from_utf8(ran.log(&format!("{name}.jsonl"))).unwrap();
        assert_eq!(told.trim_end(), place.display().to_string(), "{name}");
    }
}
