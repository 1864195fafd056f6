//! Recordings of extensions in another implementation, and the comparison of a program with them.
//!
//! A recording is a file of JSON lines, each with a `dir`:
//!
//! | `dir` | what it is |
//! |---|---|
//! | `meta` | the first line: name, command line (`args`), `files` to create beforehand |
//! | `in`, `in-eof` | a line for standard input, and its end |
//! | `out` | a line of standard output, reduced as [`project`] does |
//! | `exit`, `stderr` | how the program ended, and what it wrote to standard error |
//! | `provider` | a request to the model: model, tools if they changed, roles, the messages since the last answer |
//! | `note` | a remark |
//!
//! An `in` line is sent when all `out` lines before it have arrived. The prompts contain the model's answers, see
//! [`crate::model`].

mod names;
mod play;
pub mod project;
mod provider;
mod suite;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Program;
use crate::transcript::compare;
use play::Pace;

pub use names::Places;
pub use play::sandbox;
pub use suite::Suite;

/// The content of a recording, in order of time.
#[derive(Debug, Clone)]
pub struct Recording {
    pub case: String,
    pub(crate) args: Vec<String>,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) provider: Vec<Value>,
    pub(crate) exit: Option<i64>,
    pub(crate) stderr: String,
}

/// One line in or out.
#[derive(Debug, Clone)]
pub(crate) enum Traffic {
    In(Value),
    Out(Value),
    EndOfInput,
}

impl Recording {
    /// Reads a recording.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut lines = text.lines().map(|line| -> Value {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", path.display()))
        });
        let meta = lines.next().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut recording = Self {
            case: text(&meta["case"]),
            args: meta["args"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect(),
            files: meta["files"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            traffic: Vec::new(),
            provider: Vec::new(),
            exit: None,
            stderr: String::new(),
        };
        for mut line in lines {
            match line["dir"].as_str().unwrap_or_default() {
                "in" => recording.traffic.push(Traffic::In(line["msg"].take())),
                "out" => recording.traffic.push(Traffic::Out(line["msg"].take())),
                "in-eof" => recording.traffic.push(Traffic::EndOfInput),
                "exit" => recording.exit = line["code"].as_i64(),
                "stderr" => recording.stderr = text(&line["text"]),
                "provider" => recording.provider.push(line),
                "note" => {}
                other => panic!("{}: what is {other:?}?", path.display()),
            }
        }
        recording
    }

    /// All recordings in a directory, in order of their names.
    pub fn all(directory: &Path) -> Vec<Self> {
        let entries =
            fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn expected(&self) -> Vec<Value> {
        let out = self.traffic.iter().filter_map(|traffic| match traffic {
            Traffic::Out(line) => Some(line.clone()),
            _ => None,
        });
        out.collect()
    }
}

/// The result of a program on a recording.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub case: String,
    /// The differences, by the part of the recording: `out`, `exit`, `provider`, `stderr`.
    pub differences: Vec<(&'static str, String)>,
}

impl Outcome {
    /// Reports whether nothing differs.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// The parts that differ.
    pub fn parts(&self) -> Vec<&'static str> {
        self.differences.iter().map(|(part, _)| *part).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "== {}", self.case)?;
        for (part, text) in &self.differences {
            writeln!(f, "-- {part}\n{text}")?;
        }
        Ok(())
    }
}

/// Plays a recording against a program and compares the results.
pub fn judge(recording: &Recording, program: &Program, places: &Places) -> Outcome {
    let played = play::play(recording, program, places, Pace::AsRecorded);
    let mut differences = Vec::new();
    let mut compare = |part: &'static str, expected: Vec<String>, found: Vec<String>| {
        if let Some(text) = compare::difference(&expected, &found) {
            differences.push((part, text));
        }
    };
    let lines = |values: &[Value]| values.iter().map(sorted).collect();
    compare(
        "out",
        lines(&project::settle(recording.expected())),
        lines(&played.out),
    );
    compare(
        "exit",
        vec![shown(recording.exit)],
        vec![shown(played.exit)],
    );
    compare(
        "provider",
        lines(&recording.provider),
        lines(&played.provider),
    );
    let texts = |text: &str| text.trim_end().lines().map(str::to_owned).collect();
    compare("stderr", texts(&recording.stderr), texts(&played.stderr));
    Outcome {
        case: recording.case.clone(),
        differences,
    }
}

/// Plays the `in` lines of a file and returns the file with all output; this creates recordings.
pub fn record(script: &Path, program: &Program, places: &Places) -> String {
    let recording = Recording::read(script);
    let played = play::play(&recording, program, places, Pace::WhenQuiet);
    let mut lines = Vec::new();
    let text = fs::read_to_string(script).unwrap_or_default();
    lines.extend(text.lines().next().map(str::to_owned));
    let mut told = 0;
    let mut tell = |lines: &mut Vec<String>, upto: usize| {
        for line in &played.out[told..upto] {
            lines.push(json!({"dir": "out", "msg": line}).to_string());
        }
        told = upto;
    };
    for (before, step) in &played.sent {
        tell(&mut lines, *before);
        match step {
            Traffic::In(line) => lines.push(json!({"dir": "in", "msg": line}).to_string()),
            Traffic::EndOfInput => lines.push(json!({"dir": "in-eof"}).to_string()),
            Traffic::Out(_) => {}
        }
    }
    tell(&mut lines, played.out.len());
    lines.push(json!({"dir": "exit", "code": played.exit}).to_string());
    lines.extend(played.provider.iter().map(Value::to_string));
    if !played.stderr.is_empty() {
        let text = played.stderr.trim_end();
        lines.push(json!({"dir": "stderr", "text": text}).to_string());
    }
    lines.join("\n") + "\n"
}

fn shown(exit: Option<i64>) -> String {
    exit.map_or_else(|| "did not exit".to_owned(), |code| code.to_string())
}

fn sorted(value: &Value) -> String {
    compare::sorted(value)
}
