//! The bundled examples of the reference in pinion, and pinion's own examples in the reference: conversations with those
//! of 0.73.1, registrations with those of 1.5.0. Needs the reference in
//! `PINION_INTEROP_DIR`; `cargo xtask interop` puts it there.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod registrations;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pinion_testkit::Program;
use pinion_testkit::vectors::{Outcome, Places, Suite};

const NEEDS: &str = "PINION_INTEROP_DIR names the directory with the reference agent";
const PACKAGE: &str = "pi-0.73.1/node_modules/@mariozechner/pi-coding-agent";

fn package() -> PathBuf {
    let directory = PathBuf::from(std::env::var_os("PINION_INTEROP_DIR").expect(NEEDS));
    let package = directory.join(PACKAGE);
    let real = package.canonicalize();
    real.unwrap_or_else(|error| panic!("{}: {error}", package.display()))
}

fn reference() -> Program {
    let script = package().join("dist/cli.js");
    Program::from_command([Path::new("node"), script.as_path()])
}

/// Returns the binary under test; another implementation can be put to the same test.
fn ours() -> Program {
    match std::env::var("PINION_INTEROP_OURS") {
        Ok(command) => Program::from_command(command.split(' ')),
        Err(_) => Program::new(env!("CARGO_BIN_EXE_pinion")),
    }
}

/// Plays all recordings of the examples in pinion, a few at a time: they mostly wait.
fn play_examples(suite: &Suite) -> Vec<Outcome> {
    let places = Places::new(Some(package().join("examples/extensions")));
    let program = ours();
    let cases = suite.recordings("examples");
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(recording) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let case = &recording.case;
                    let excused = suite.excused("examples", case);
                    let outcome = suite.play("examples", case, &program, &places, &excused);
                    outcomes.lock().unwrap().push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by(|a, b| a.case.cmp(&b.case));
    for outcome in &mut outcomes {
        // Timers of an example race with the conversation; on a busy machine the other one may win.
        if !is_expected(suite, outcome) {
            println!("played again, alone: {outcome}");
            let excused = suite.excused("examples", &outcome.case);
            *outcome = suite.play("examples", &outcome.case, &program, &places, &excused);
        }
    }
    outcomes
}

fn is_expected(suite: &Suite, outcome: &Outcome) -> bool {
    outcome.parts() == suite.excused("examples", &outcome.case)
}

/// Checks that the reference still behaves as recorded.
fn reference_agrees(directory: &str) {
    let suite = Suite::open();
    for recording in suite.recordings(directory) {
        let (case, places) = (&recording.case, Places::new(None));
        let outcome = suite.play(directory, case, &reference(), &places, &[]);
        assert!(outcome.agrees(), "{outcome}");
    }
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn our_own_examples_work_in_the_reference() {
    reference_agrees("own");
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn the_probes_do_in_the_reference_what_was_recorded() {
    reference_agrees("probes");
}

#[test]
#[ignore = "needs the reference agent: cargo xtask interop"]
fn every_example_does_here_what_it_does_in_the_reference() {
    let suite = Suite::open();
    let outcomes = play_examples(&suite);
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !is_expected(&suite, outcome))
        .map(ToString::to_string)
        .collect();
    let right = outcomes.len() - wrong.len();
    println!("{right} of {} examples are as expected", outcomes.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    table::is_as_documented(&suite, &outcomes);
}
