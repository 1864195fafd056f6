//! Reports before the start of a plan, and its visible state afterwards.

use serde_json::Value;

use crate::stage::{Stage, script};

#[test]
fn a_wrong_plan_starts_nothing_and_ends_with_2() {
    let stage = Stage::offline();
    let ran = stage.run("children:\n  - { name: a, promt: x, model: nowhere/nothing }\n  - { name: b, prompt: { file: none.md } }\n");
    assert_eq!(ran.code, Some(2));
    for part in [
        "plan.yaml:2: unknown key \"promt\"",
        "did you mean \"prompt\"?",
        "plan.yaml:2:",
        "nowhere",
        "plan.yaml:3: prompt \"none.md\" cannot be read",
        "nothing was started",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(!ran.directory.exists());
}

#[test]
fn a_missing_program_is_reported_before_anything_starts() {
    let stage = Stage::offline();
    stage.write("tool.sh", "#!/bin/sh\n");
    let plan = "children:\n\
        \x20 - { name: a, agent: jsonl, prompt: x, command: [/no/such/program] }\n\
        \x20 - { name: b, agent: jsonl, prompt: x, command: [printnev, PWD] }\n\
        \x20 - { name: c, agent: jsonl, prompt: x, command: [./tool.sh] }\n\
        \x20 - { name: d, agent: jsonl, prompt: x, command: [bash, -c, 'touch ran'] }\n\
        \x20 - { name: e, agent: opencode, prompt: x, env: { PATH: /no/such/path } }\n\
        \x20 - { name: f, agent: jsonl, prompt: x, model: gone, command: ['tool-{{ model }}'] }\n\
        judge: { agent: jsonl, prompt: x, command: no-such-judge-program }\n";
    let ran = stage.run(plan);
    let checked = stage.verb(&["check", "plan.yaml"]);
    for ran in [&ran, &checked] {
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for part in [
            "plan.yaml:2: there is no program \"/no/such/program\"; install it",
            "plan.yaml:3: there is no program \"printnev\" on the PATH; did you mean \"printenv\"?",
            "plan.yaml:4: \"./tool.sh\" is not executable; run `chmod +x`",
            "plan.yaml:6: agent opencode cannot be started: there is no program \"opencode\" on the PATH",
            "plan.yaml:7: there is no program \"tool-gone\"",
            "plan.yaml:8: there is no program \"no-such-judge-program\"",
            "6 problems in the plan; nothing was started",
        ] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    assert!(!ran.directory.exists());
    assert!(!stage.sandbox.work().join("ran").exists());
}

#[test]
fn a_plan_can_be_checked_without_running_it() {
    let stage = Stage::offline();
    stage.write(
        "plan.yaml",
        &format!("children:\n{}", script("a", "touch ran")),
    );
    let checked = stage.verb(&["check", "plan.yaml"]);
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (Some(0), "plan.yaml: 1 child, no problems\n")
    );
    assert!(!stage.sandbox.work().join("ran").exists());
    let unknown = stage.verb(&["chekc", "plan.yaml"]);
    assert_eq!(unknown.code, Some(2));
    let hint = "unknown command `fleet chekc`. Did you mean `pinion fleet check`?";
    assert!(unknown.stderr.contains(hint), "{}", unknown.stderr);
}

#[test]
fn a_run_leaves_everything_behind_that_was_promised() {
    let stage = Stage::offline();
    let plan = format!(
        "children:\n{}",
        script(
            "a",
            r#"cat > got; echo '{"type":"text","text":"hello"}'; echo oops >&2; echo '{"type":"done"}'"#
        )
    );
    let plan = plan.replace("prompt: go", "prompt: 'Look at {{ input }} in {{ name }}'");
    let ran = stage.run_with(&plan, "the input", &["--output", "jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(stage.sandbox.work().join("got")).unwrap(),
        "Look at the input in a"
    );
    assert_eq!(
        ran.log("a.jsonl"),
        b"{\"type\":\"text\",\"text\":\"hello\"}\n{\"type\":\"done\"}\n"
    );
    assert_eq!(ran.log("a.stderr"), b"oops\n");
    assert_eq!(
        std::fs::read_to_string(ran.directory.join("input")).unwrap(),
        "the input"
    );
    let child = ran.child("a");
    assert_eq!(
        (child["status"].as_str(), child["result"].as_str()),
        (Some("finished"), Some("hello"))
    );
    let printed: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        printed,
        ran.events(),
        "what is printed is what is written down"
    );
    let numbers: Vec<u64> = printed
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.iter().copied().eq(1..=numbers.len() as u64),
        "{numbers:?}"
    );
    assert!(
        std::fs::read_to_string(ran.directory.join("report.md"))
            .unwrap()
            .contains("| a | ✓ |")
    );
    let schema = stage.finish(stage.command(&["schema", "fleet"]), b"");
    assert_eq!(schema.code, Some(0), "{}", schema.stderr);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&ran.report())
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn runs_are_listed_shown_and_deleted() {
    let stage = Stage::offline();
    stage.write(
        "plan.yaml",
        &format!(
            "name: mine\nchildren:\n{}",
            script("a", r#"echo '{"type":"done"}'"#)
        ),
    );
    let ran = stage.finish(
        stage.command(&["fleet", "run", "plan.yaml", "--quiet"]),
        b"",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(
        ran.stdout
            .starts_with("## mine: finished (1 of 1 finished)"),
        "{}",
        ran.stdout
    );
    let listed = stage.verb(&["list"]);
    assert!(
        listed.stdout.contains("mine") && listed.stdout.contains("finished"),
        "{}",
        listed.stdout
    );
    let shown = stage.verb(&["show"]);
    assert_eq!(shown.stdout, ran.stdout);
    let json: Value =
        serde_json::from_str(&stage.verb(&["show", "last", "--json"]).stdout).unwrap();
    assert_eq!(json["exitCode"], 0);
    assert_eq!(stage.verb(&["clean"]).code, Some(0));
    assert!(
        stage.verb(&["list"]).stdout.contains("mine"),
        "it is not old"
    );
    stage.verb(&["clean", "--all"]);
    assert_eq!(stage.verb(&["list"]).stdout, "");
    let missing = stage.verb(&["resume", "nothing"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.stderr.contains("there is no run \"nothing\""),
        "{}",
        missing.stderr
    );
}
