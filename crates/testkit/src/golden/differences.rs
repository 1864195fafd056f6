//! The list of cases in which pinion differs from its recordings, which must be correct in both directions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Verdict;

/// The directory of each recorded case by its name.
pub type Cases = BTreeMap<String, PathBuf>;

/// Returns the recorded cases in a directory.
pub fn cases(root: &Path) -> Cases {
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

/// Intended and pending differences from the reference.
#[derive(Debug)]
pub struct Differences(Value);

impl Differences {
    /// Reads the list.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// Checks that every name is that of a case, has a reason, and is explained to users.
    pub fn are_documented(&self, cases: &Cases, page: &Path) -> Result<(), String> {
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

    /// Describes a difference that is not in the list, or an entry without a difference.
    pub fn complaint(&self, verdict: &Verdict) -> Option<String> {
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
