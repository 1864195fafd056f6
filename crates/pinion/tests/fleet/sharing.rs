//! Breakers that all runs under a hub share.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::stage::{Ran, Stage, events, script, wait_until};

/// A hub that does not run; its address in the environment is enough.
const HUB: (&str, &str) = ("PINIX_URL", "http://127.0.0.1:9");

/// A child that fails on the model `bad` unless the file `well` exists, and records the model of each attempt.
const FAILS: &str = r#"echo "$PINION_FLEET_CHILD $PINION_FLEET_MODEL" >> asked; if [ "$PINION_FLEET_MODEL" = bad ] && [ ! -e well ]; then echo '{"type":"error","message":"529 Overloaded"}'; exit 1; fi; echo '{"type":"step"}'; echo '{"type":"done"}'"#;

/// Starts a run of this name.
fn start(stage: &Stage, name: &str, plan: &str, hub: Option<(&str, &str)>) -> Child {
    let file = format!("{name}.yaml");
    stage.write(&file, plan);
    let mut command = stage.command(&["fleet", "run", &file, "--run-dir", name]);
    command.envs(hub);
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    child
}

fn wait(stage: &Stage, name: &str, child: Child) -> Ran {
    Ran {
        directory: stage.sandbox.work().join(name),
        ..stage.wait(child)
    }
}

fn run(stage: &Stage, name: &str, plan: &str, hub: Option<(&str, &str)>) -> Ran {
    let ran = wait(stage, name, start(stage, name, plan, hub));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

/// Returns a plan with children of these names, which may run on two models.
fn plan(breaker: &str, names: &[&str]) -> String {
    let children: String = names.iter().map(|name| script(name, FAILS)).collect();
    format!(
        "tiers: {{ t: [bad, good] }}\ndefaults: {{ tier: t }}\nbreaker: {breaker}\nparallel: 1\nchildren:\n{children}"
    )
}

/// Returns the models of a child's attempts.
fn asked(stage: &Stage, child: &str) -> Vec<String> {
    let text = std::fs::read_to_string(stage.sandbox.work().join("asked")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(name, _)| *name == child)
        .map(|(_, model)| model.to_owned())
        .collect()
}

fn of_kind(stage: &Stage, run: &str, kind: &str) -> Vec<Value> {
    let mut all = events(&stage.sandbox.work().join(run));
    all.retain(|event| event["type"] == kind);
    all
}

#[test]
fn a_model_that_one_run_found_overloaded_is_left_alone_by_the_next() {
    let stage = Stage::offline();
    let first = run(&stage, "a", &plan("{}", &["a1", "a2", "a3"]), Some(HUB));
    assert_eq!(first.report()["breakers"][0]["state"], "open");
    assert_eq!(asked(&stage, "a3"), ["bad", "good"]);

    let next = run(&stage, "b", &plan("{}", &["b"]), Some(HUB));
    assert_eq!(asked(&stage, "b"), ["good"]);
    let seen = of_kind(&stage, "b", "breaker");
    assert_eq!(
        (&seen[0]["model"], &seen[0]["state"]),
        (&"bad".into(), &"open".into())
    );
    assert!(next.report().get("warnings").is_none());

    run(&stage, "c", &plan("{}", &["c"]), None);
    assert_eq!(
        asked(&stage, "c"),
        ["bad", "good"],
        "no hub, nothing shared"
    );
    run(&stage, "d", &plan("{ shared: true }", &["d"]), None);
    assert_eq!(asked(&stage, "d"), ["good"], "the plan wants it");
    run(&stage, "e", &plan("{ shared: false }", &["e"]), Some(HUB));
    assert_eq!(asked(&stage, "e"), ["bad", "good"], "the plan does not");

    let runs = stage.verb(&["list", "--json"]);
    assert_eq!(
        (runs.code, runs.stdout.as_str()),
        (Some(0), ""),
        "the file is no run"
    );
}

#[test]
fn one_probe_over_all_processes_and_a_killed_one_is_given_up() {
    let stage = Stage::offline();
    run(
        &stage,
        "a",
        &plan("{ cooldown: 10ms }", &["a1", "a2", "a3"]),
        Some(HUB),
    );
    let alone = |name: &str, body: &str| {
        let child = script(name, body);
        format!("defaults: {{ model: bad }}\nchildren:\n{child}")
    };
    stage.write("well", "");
    let stuck = r#"echo stuck > stuck; while :; do sleep 1; done"#;
    let mut owner = start(&stage, "owner", &alone("o", stuck), Some(HUB));
    wait_until("the probe", || stage.sandbox.work().join("stuck").exists());
    assert_eq!(of_kind(&stage, "owner", "child_started")[0]["probe"], true);

    let waiting = ["one", "other"];
    let waiters = waiting.map(|name| start(&stage, name, &alone(name, FAILS), Some(HUB)));
    for name in waiting {
        wait_until("that it looked", || {
            let seen = of_kind(&stage, name, "breaker");
            seen.iter().any(|event| event["state"] == "half_open")
        });
        assert!(of_kind(&stage, name, "child_started").is_empty());
    }
    kill(
        Pid::from_raw(owner.id().try_into().unwrap()),
        Signal::SIGKILL,
    )
    .unwrap();
    let mut probes = 0;
    for (name, waiter) in waiting.into_iter().zip(waiters) {
        let ran = wait(&stage, name, waiter);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let started = of_kind(&stage, name, "child_started");
        assert_eq!(started.len(), 1);
        probes += usize::from(started[0]["probe"] == true);
    }
    assert_eq!(probes, 1, "one tries, and the other goes when it knows");
    owner.wait().unwrap();
}

#[test]
fn a_file_that_cannot_be_used_ends_no_run_and_is_told_once() {
    let stage = Stage::offline();
    let fleets = stage.sandbox.agent().join("fleet");
    std::fs::create_dir_all(&fleets).unwrap();
    std::fs::write(fleets.join("breakers.json"), "{\"version\":1,\"wri").unwrap();
    let names = ["a", "b", "c", "d"];
    let ran = run(&stage, "torn", &plan("{}", &names), Some(HUB));
    let warnings = ran.report()["warnings"].clone();
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    assert!(
        warnings[0]
            .as_str()
            .unwrap()
            .contains("breakers.json.damaged")
    );
    assert!(ran.stdout.contains("> **Warning:** "), "{}", ran.stdout);
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{}", ran.stderr);
    assert_eq!(asked(&stage, "d"), ["good"], "it begins anew and opens");

    std::fs::remove_file(fleets.join("breakers.json")).unwrap();
    std::fs::create_dir(fleets.join("breakers.json")).unwrap();
    let names = ["e", "f", "g", "h"];
    let ran = run(&stage, "full", &plan("{}", &names), Some(HUB));
    let warnings = of_kind(&stage, "full", "warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]["message"]
            .as_str()
            .unwrap()
            .contains("no longer shares its breakers")
    );
    assert_eq!(ran.report()["warnings"][0], warnings[0]["message"]);
    assert_eq!(asked(&stage, "h"), ["good"], "its own breaker opened");
}
