//! The recordings of this project, in `tests/extensions`, and pinion's intended differences from them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Outcome, Places, Recording, Traffic, judge};
use crate::Program;

/// Attempts, because some recordings depend on the order of two simultaneous events.
const ATTEMPTS: usize = 3;

/// All recordings of this project.
#[derive(Debug)]
pub struct Suite {
    root: PathBuf,
    differences: Value,
}

impl Suite {
    /// Reads the list of differences.
    pub fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/extensions");
        let differences = read_json(&root.join("differences.json"));
        Self { root, differences }
    }

    /// A file of the suite that is JSON.
    pub fn json(&self, name: &str) -> Value {
        read_json(&self.root.join(name))
    }

    /// The recordings in one of its directories, in order of their names.
    pub fn recordings(&self, directory: &str) -> Vec<Recording> {
        Recording::all(&self.root.join("recordings").join(directory))
    }

    /// Returns the parts of a recording in which pinion differs on purpose.
    pub fn excused(&self, directory: &str, case: &str) -> Vec<String> {
        let name = format!("{directory}/{case}");
        let Some(entry) = self.differences.get(&name) else {
            return Vec::new();
        };
        assert!(entry["reason"].is_string(), "{name} needs a reason");
        let parts = entry["parts"].as_array().into_iter().flatten();
        parts
            .map(|part| part.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Plays a recording until exactly these parts differ, at most `ATTEMPTS` times. Lines that pinion adds at the
    /// end on purpose are `appended` to it.
    pub fn play(
        &self,
        directory: &str,
        case: &str,
        program: &Program,
        places: &Places,
        expected: &[String],
    ) -> Outcome {
        let name = format!("recordings/{directory}/{case}.jsonl");
        let mut recording = Recording::read(&self.root.join(name));
        if program.is_binary() {
            let appended = &self.differences[format!("{directory}/{case}")]["appended"];
            for line in appended.as_array().into_iter().flatten() {
                recording.traffic.push(Traffic::Out(line.clone()));
            }
        }
        let mut outcome = judge(&recording, program, places);
        for _ in 1..ATTEMPTS {
            if outcome.parts() == expected {
                break;
            }
            outcome = judge(&recording, program, places);
        }
        outcome
    }
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
