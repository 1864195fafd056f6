//! Standard input of a fleet, also if it stays silent.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::{Stage, script, wait_until};

const DONE: &str = r#"cat > got; echo '{"type":"done"}'"#;

/// Starts a plan with standard input open.
fn start_open(stage: &Stage, plan: &str) -> Child {
    stage.write("plan.yaml", plan);
    let directory = stage.run_dir().display().to_string();
    let args = ["fleet", "run", "plan.yaml", "--run-dir", &directory];
    stage.command(&args).spawn().unwrap()
}

fn asking(more: &str) -> String {
    format!("{more}children:\n{}", script("a", DONE)).replace("prompt: go", "prompt: '{{ input }}'")
}

/// Reads standard error until it contains these words, then drains the rest in the background.
fn hear(child: &mut Child, words: &str) {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let said = stderr
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains(words));
    assert!(said, "it never said: {words}");
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
}

#[test]
fn l6_a_silent_input_that_nothing_uses_is_not_waited_for() {
    let stage = Stage::offline();
    let mut fleet = start_open(&stage, &format!("children:\n{}", script("a", DONE)));
    let stdin = fleet.stdin.take();
    let ran = stage.wait(fleet);
    drop(stdin);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard input is open but silent"),
        "{}",
        ran.stderr
    );
}

#[test]
fn l6_waiting_for_the_input_is_told() {
    let stage = Stage::offline();
    let mut fleet = start_open(&stage, &asking(""));
    hear(&mut fleet, "Waiting for the input of the run");
    fleet.stdin.take().unwrap().write_all(b"late").unwrap();
    let ran = stage.wait(fleet);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        fs::read_to_string(stage.sandbox.work().join("got")).unwrap(),
        "late"
    );
}

#[test]
fn a_run_that_waits_for_its_input_can_be_stopped_and_leaves_a_report() {
    let stage = Stage::offline();
    let mut fleet = start_open(&stage, &asking(""));
    let mut stdin = fleet.stdin.take().unwrap();
    stdin.write_all(b"half").unwrap();
    hear(&mut fleet, "Waiting for the input of the run");
    kill(Pid::from_raw(fleet.id() as i32), Signal::SIGTERM).unwrap();
    let ran = stage.wait(fleet);
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.child("a")["status"], "stopped");
    drop(stdin);
    let directory = stage.run_dir().display().to_string();
    let again = stage.verb(&["resume", &directory]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("is incomplete"), "{}", again.stderr);
}

#[test]
fn the_time_of_a_run_counts_while_it_waits_for_its_input() {
    let stage = Stage::offline();
    let mut fleet = start_open(&stage, &asking("timeout: 500ms\n"));
    let stdin = fleet.stdin.take();
    let ran = stage.wait(fleet);
    drop(stdin);
    assert_eq!(ran.code, Some(124), "{}", ran.stderr);
    assert_eq!(ran.child("a")["failure"]["clock"], "run");
}

#[test]
fn what_is_left_of_a_run_that_never_began_is_cleaned_up() {
    let stage = Stage::offline();
    stage.write("plan.yaml", &asking(""));
    let mut fleet = stage
        .command(&["fleet", "run", "plan.yaml"])
        .spawn()
        .unwrap();
    hear(&mut fleet, "Waiting for the input of the run");
    let root = stage.sandbox.agent().join("fleet");
    let count = || fs::read_dir(&root).map_or(0, Iterator::count);
    assert_eq!(count(), 1);
    let kept = stage.verb(&["clean", "--all"]);
    assert_eq!((kept.code, count()), (Some(1), 1), "{}", kept.stderr);
    fleet.kill().unwrap();
    fleet.wait().unwrap();
    wait_until("the end of what was left", || {
        stage.verb(&["clean", "--all"]);
        count() == 0
    });
}
