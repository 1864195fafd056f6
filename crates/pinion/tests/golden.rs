//! Plays the recorded cases of the reference agent against pinion, each case as a test of its own; see
//! `tests/golden/README.md`.

#![allow(clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use pinion_testkit::Program;
use pinion_testkit::golden::{Verdict, judge};
use pinion_testkit::schema::Schema;
use serde_json::Value;

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

type Cases = BTreeMap<String, PathBuf>;

fn cases(root: &Path) -> Cases {
    let entries = fs::read_dir(root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let paths = entries.flatten().map(|entry| entry.path());
    let cases: Cases = paths
        .map(|path| {
            let name = path.file_name().unwrap_or_default();
            (name.to_string_lossy().into_owned(), path)
        })
        .collect();
    assert!(
        !cases.is_empty(),
        "there are no cases in {}",
        root.display()
    );
    cases
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

/// Intended and pending differences from the reference.
struct Differences(Value);

impl Differences {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// Checks that every name is that of a case, has a reason, and is explained to users.
    fn are_documented(&self, cases: &Cases, page: &Path) -> Result<(), String> {
        let page =
            fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
        for (name, entry) in self.0.as_object().into_iter().flatten() {
            if !cases.contains_key(name) {
                return Err(format!("differences.json: there is no case {name}"));
            }
            if !entry["reason"].is_string() {
                return Err(format!("differences.json: {name} needs a reason"));
            }
            if !page.contains(name) {
                return Err(format!("docs/pi.md does not explain how {name} differs"));
            }
        }
        Ok(())
    }

    fn complaint(&self, verdict: &Verdict) -> Option<String> {
        let Some(entry) = self.0.get(&verdict.case) else {
            return (!verdict.agrees()).then(|| verdict.to_string());
        };
        if verdict.agrees() {
            let unsteady = entry["unsteady"] == true;
            let name = &verdict.case;
            return (!unsteady)
                .then(|| format!("== {name} agrees: take it out of differences.json"));
        }
        let found: Vec<&str> = verdict
            .differences
            .iter()
            .map(|(level, _)| level.name())
            .collect();
        let expected: Vec<&str> = match entry["levels"].as_array() {
            Some(levels) => levels.iter().filter_map(Value::as_str).collect(),
            None => return None,
        };
        (found != expected).then(|| {
            format!(
                "== {} differs in {found:?}, expected {expected:?}\n{verdict}",
                verdict.case
            )
        })
    }
}
