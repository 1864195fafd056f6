//! Recorded cases of another implementation, and the comparison of a program with them.
//!
//! A case is a directory: `setup.json` (arguments, settings, files), `input.jsonl` (the client's steps),
//! `scenario.json` (the model's answers), and one directory per recorded release with `output.norm.jsonl`,
//! `requests.jsonl`, `sessions.norm.jsonl` and `files.json`. A program agrees with a case if it agrees
//! with one of its releases; which of several that is may differ from case to case.

mod differences;
mod later;

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub use differences::{Cases, Differences, cases};
use serde_json::{Value, json};

use crate::Program;
use crate::transcript::normal::{Normal, canonical};
use crate::transcript::{Await, Case, Placed, Reach, Step, compare, run};

/// The parts of a case that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every member of every line on standard output; only in recordings of `WITH_ALL_MEMBERS`.
    Lines,
    /// Sequence and content of the lines on standard output.
    Output,
    /// The data of the responses.
    Data,
    /// Requests to the model.
    Requests,
    /// Session files.
    Sessions,
    /// Files in the working directory.
    Files,
    /// Lines that violate the schema of the program; nothing is compared.
    Promises,
}

impl Level {
    /// All levels that are compared, the most important first.
    pub const ALL: [Self; 6] = [
        Self::Lines,
        Self::Output,
        Self::Data,
        Self::Requests,
        Self::Sessions,
        Self::Files,
    ];

    /// The name used in lists of differences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Output => "output",
            Self::Data => "data",
            Self::Requests => "requests",
            Self::Sessions => "sessions",
            Self::Files => "files",
            Self::Promises => "promises",
        }
    }
}

/// The result of a program on one case, against the closest release.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub case: String,
    /// The release it was compared with.
    pub release: String,
    /// The levels that differ, with a readable description.
    pub differences: Vec<(Level, String)>,
    /// Awaited lines that did not arrive.
    pub problems: Vec<String>,
}

impl Verdict {
    /// Reports whether nothing differs.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// Reports whether this level differs.
    pub fn differs(&self, level: Level) -> bool {
        self.differences
            .iter()
            .any(|(differing, _)| *differing == level)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "== {} (closest to {})", self.case, self.release)?;
        for (level, text) in &self.differences {
            writeln!(f, "-- {}\n{text}", level.name())?;
        }
        for problem in &self.problems {
            writeln!(f, "!! {problem}")?;
        }
        Ok(())
    }
}

/// Releases that read a project's files without a trust decision. Their cases are played in a trusted project.
const BEFORE_TRUST: [&str; 2] = ["pi-0.52.12", "pi-0.73.1"];

/// Releases whose lines are compared with all their members.
const WITH_ALL_MEMBERS: [&str; 1] = ["pi-1.5.0"];

/// Plays the case in `directory` and compares with the releases recorded there.
pub fn judge(directory: &Path, releases: &[&str], program: &Program) -> Verdict {
    let case = load(directory);
    let mut program = program.clone();
    let uses_project = case
        .files
        .as_object()
        .is_some_and(|files| files.keys().any(|name| name.starts_with(".pi/")));
    if uses_project
        && releases
            .iter()
            .all(|release| BEFORE_TRUST.contains(release))
    {
        // Not an argument of the case, because the runner records those when it restarts the program.
        program.command.push("--approve".into());
    }
    let recording = run(&case, &program);
    let mut found = Normal::of(&recording, &program);
    if releases
        .iter()
        .all(|release| BEFORE_TRUST.contains(release))
    {
        found.output = without_later_additions(found.output);
    }
    if releases
        .iter()
        .all(|release| WITH_ALL_MEMBERS.contains(release))
    {
        found.output = found.output.into_iter().map(later::line).collect();
    }
    let mut best: Option<Verdict> = None;
    for release in releases {
        let recorded = directory.join(release);
        if !recorded.is_dir() {
            continue;
        }
        let mut differences = differences(&recorded, &found, release);
        if !recording.broken_promises.is_empty() {
            differences.push((Level::Promises, recording.broken_promises.join("\n")));
        }
        let verdict = Verdict {
            case: case.name.clone(),
            release: (*release).to_owned(),
            differences,
            problems: recording.problems.clone(),
        };
        let closer = best.as_ref().is_none_or(|best| {
            let rank = |v: &Verdict| (v.differs(Level::Output), v.differences.len());
            rank(&verdict) < rank(best)
        });
        if closer {
            best = Some(verdict);
        }
    }
    best.unwrap_or_else(|| panic!("{}: no recording of {releases:?}", directory.display()))
}

/// Removes what later releases of pi added and pinion also sends in the classic dialect: `agent_settled`, and the
/// `disposition` of a prompt.
fn without_later_additions(mut output: Vec<Value>) -> Vec<Value> {
    output.retain(|line| line["type"] != "agent_settled");
    for line in output.iter_mut().filter_map(Value::as_object_mut) {
        let data = line.get("data").and_then(Value::as_object);
        if data.is_some_and(|data| data.keys().eq(["disposition"])) {
            line.shift_remove("data");
        }
    }
    output
}

fn differences(recorded: &Path, found: &Normal, release: &str) -> Vec<(Level, String)> {
    let all_members = WITH_ALL_MEMBERS.contains(&release);
    let output = lines(&recorded.join("output.norm.jsonl"));
    let requests = lines(&recorded.join("requests.jsonl"));
    let sessions = lines(&recorded.join("sessions.norm.jsonl"));
    let files = fs::read_to_string(recorded.join("files.json")).unwrap_or_else(|_| "{}".into());
    let files: Value = serde_json::from_str(&files).expect("recorded files are JSON");
    let compared = |level| match level {
        Level::Lines if all_members => (compare::whole(&output), compare::whole(&found.output)),
        Level::Lines => Default::default(),
        Level::Output => (compare::output(&output), compare::output(&found.output)),
        Level::Data => compare::data(&output, &found.output),
        Level::Requests => (
            compare::requests(&requests),
            compare::requests(&found.requests),
        ),
        Level::Sessions => (
            compare::sessions(&sessions),
            compare::sessions(&found.sessions),
        ),
        // Recordings with all members have no files.
        Level::Files if all_members => Default::default(),
        Level::Files => (file_lines(&files), file_lines(&found.files)),
        Level::Promises => Default::default(),
    };
    let differing = Level::ALL.into_iter().filter_map(|level| {
        let (expected, found) = compared(level);
        Some((level, compare::difference(&expected, &found)?))
    });
    differing.collect()
}

fn file_lines(files: &Value) -> Vec<String> {
    files
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, text)| format!("{name}: {text}"))
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let parse = |line| serde_json::from_str::<Value>(line).map(|value| canonical(&value));
    text.lines()
        .map(|line| parse(line).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}

/// Reads a recorded case.
pub fn load(directory: &Path) -> Case {
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let json = |name: &str| -> Value {
        serde_json::from_str(&read(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let setup = json("setup.json");
    let object = |name: &str| setup.get(name).cloned().unwrap_or_else(|| json!({}));
    let leading_args = vec!["--mode".to_owned(), "rpc".to_owned()];
    let steps = read("input.jsonl");
    let steps = steps.lines().enumerate().map(|(number, line)| Placed {
        place: format!("step {number}"),
        step: step(&serde_json::from_str(line).unwrap_or_else(|e| panic!("step {number}: {e}"))),
    });
    Case {
        name: directory
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default(),
        args: [leading_args.clone(), texts(&setup["args"])].concat(),
        leading_args,
        settings: object("settings"),
        env: pairs(&setup["env"]),
        files: object("files"),
        files_base64: object("files_base64"),
        agent_files: object("agent_files"),
        scenario: json("scenario.json"),
        steps: steps.collect(),
        collect: texts(&setup["collect"]),
        collect_delay: seconds(&setup["collect_delay_s"]).unwrap_or(Duration::from_millis(50)),
        ..Case::default()
    }
}

fn step(value: &Value) -> Step {
    let has = |name: &str| value.get(name).is_some();
    if has("send") {
        Step::Send(value["send"].clone())
    } else if let Some(text) = value["send_raw"].as_str() {
        Step::SendText(text.to_owned())
    } else if has("await") {
        let says = |name: &str| value[name] == json!(true);
        Step::Await(Await {
            pattern: value["await"].clone(),
            count: value["count"].as_u64().unwrap_or(1) as usize,
            reach: match (says("peek"), says("from_start")) {
                (true, _) => Reach::Peek,
                (_, true) => Reach::FromStart,
                _ => Reach::Onward,
            },
            optional: says("optional"),
            remember: pairs(&value["capture"]),
            patience: seconds(&value["timeout_s"]),
        })
    } else if let Some(ms) = value["delay_ms"].as_u64() {
        Step::Delay(Duration::from_millis(ms))
    } else if let Some(gate) = value["release"].as_str() {
        Step::Release(gate.to_owned())
    } else if has("close_stdin") {
        Step::CloseStdin
    } else if let Some(signal) = value["signal"].as_str() {
        Step::Signal(signal.parse().expect("the name of a signal"))
    } else if has("wait_exit") {
        Step::WaitExit(seconds(&value["wait_exit"]).unwrap_or_default(), None)
    } else if let Some(restart) = value.get("restart") {
        Step::Restart(restart.get("args").map(texts))
    } else if let Some(files) = value.get("write_file") {
        Step::WriteFiles(files.clone())
    } else {
        panic!("this step is not understood: {value}")
    }
}

fn seconds(value: &Value) -> Option<Duration> {
    value
        .as_f64()
        .filter(|s| *s > 0.0)
        .map(Duration::from_secs_f64)
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .map(|(n, v)| (n.clone(), v.as_str().unwrap_or_default().to_owned()))
        .collect()
}
