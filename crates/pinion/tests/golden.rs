//! Plays the recorded cases of the reference agent against pinion, each case as a test of its own; see
//! `tests/golden/README.md`.

#![allow(clippy::panic, reason = "a test")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use pinion_testkit::Program;
use pinion_testkit::golden::{Differences, cases, judge};
use pinion_testkit::schema::Schema;

const RELEASES: [&str; 2] = ["pi-0.52.12", "pi-0.73.1"];

/// Cases mostly wait, so more of them run at a time than there are processors.
const AT_A_TIME: usize = 4;

/// A case that differs is played again: some recordings depend on which of two things that happen at the same moment is
/// reported first.
const ATTEMPTS: usize = 3;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let page = root.join("../../docs/pi.md");
    let differences = Arc::new(Differences::read(&root.join("differences.json")));
    let cases = cases(&root.join("pi"));
    // By this name it takes the reference's place.
    let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi").promising(Schema::PiClassic);
    let mut trials: Vec<Trial> = cases
        .iter()
        .map(|(name, path)| {
            let (path, program) = (path.clone(), program.clone());
            let differences = Arc::clone(&differences);
            Trial::test(name, move || play(&path, &program, &differences))
        })
        .collect();
    trials.push(Trial::test("the_differences_are_documented", move || {
        Ok(differences.are_documented(&cases, &page)?)
    }));
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn play(case: &Path, program: &Program, differences: &Differences) -> Result<(), Failed> {
    let mut complaint = None;
    for attempt in 1..=ATTEMPTS {
        complaint = differences.complaint(&judge(case, &RELEASES, program));
        if complaint.is_none() {
            break;
        }
        eprintln!("attempt {attempt} of {ATTEMPTS}: not as expected");
    }
    complaint.map_or(Ok(()), |complaint| Err(complaint.into()))
}
