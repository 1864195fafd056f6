//! Plays the recorded cases of the reference agent against pinion; see `tests/golden/README.md`. `GOLDEN=name,name`
//! plays only some.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pinion_testkit::Program;
use pinion_testkit::golden::{Verdict, judge};
use pinion_testkit::schema::Schema;
use serde_json::Value;

const RELEASES: [&str; 2] = ["pi-0.52.12", "pi-0.73.1"];

/// Cases mostly wait, so more of them run at a time than there are processors.
const AT_A_TIME: usize = 4;

/// A case that differs is played again, alone: some recordings depend on which of two things that happen
/// at the same moment is reported first.
const ATTEMPTS: usize = 3;

#[test]
fn behaves_like_the_reference_except_where_we_say_so() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let differences = Differences::read(&root.join("differences.json"));
    let cases = cases(&root.join("pi"));
    differences.are_documented(&cases, &root.join("../../docs/pi.md"));
    // By this name it takes the reference's place.
    let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi").promising(Schema::PiClassic);

    let mut verdicts = play(&cases, &program);
    for (name, verdict) in &mut verdicts {
        for attempt in 2..=ATTEMPTS {
            if differences.complaint(verdict).is_none() {
                break;
            }
            println!("{name}: not as expected, attempt {attempt}");
            *verdict = judge(&cases[name], &RELEASES, &program);
        }
    }

    let complaints: Vec<String> = verdicts
        .values()
        .filter_map(|verdict| differences.complaint(verdict))
        .collect();
    let agree = verdicts.values().filter(|verdict| verdict.agrees()).count();
    println!("{agree} of {} cases agree at every level", verdicts.len());
    assert!(
        complaints.is_empty(),
        "{} cases are not as expected:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

type Cases = BTreeMap<String, PathBuf>;

fn cases(root: &Path) -> Cases {
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|n| n == name);
    let entries = fs::read_dir(root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let named = |path: PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name, path)
    };
    let cases: Cases = entries
        .flatten()
        .map(|entry| named(entry.path()))
        .filter(|(name, _)| wanted(name))
        .collect();
    assert!(
        !cases.is_empty(),
        "there are no such cases in {}",
        root.display()
    );
    cases
}

fn play(cases: &Cases, program: &Program) -> BTreeMap<String, Verdict> {
    let list: Vec<(&String, &PathBuf)> = cases.iter().collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((name, path)) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = judge(path, &RELEASES, program);
                    verdicts.lock().unwrap().insert((*name).clone(), verdict);
                }
            });
        }
    });
    verdicts.into_inner().unwrap()
}

/// Intended and pending differences from the reference.
struct Differences(Value);

impl Differences {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// Checks that every name is that of a case, has a reason, and is explained to users.
    fn are_documented(&self, cases: &Cases, page: &Path) {
        if std::env::var_os("GOLDEN").is_some() {
            return;
        }
        let page = fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        for (name, entry) in self.0.as_object().into_iter().flatten() {
            assert!(
                cases.contains_key(name),
                "differences.json: there is no case {name}"
            );
            assert!(
                entry["reason"].is_string(),
                "differences.json: {name} needs a reason"
            );
            assert!(
                page.contains(name),
                "docs/pi.md does not say how {name} differs"
            );
        }
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
