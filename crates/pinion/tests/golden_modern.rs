//! Plays recorded cases in the modern dialect, each as a test of its own, and compares the lines, their order and their
//! members with those of pi 0.87.1; see `tests/golden/README.md`.

#![allow(clippy::panic, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pinion_testkit::Program;
use pinion_testkit::golden::load;
use pinion_testkit::schema::Schema;
use pinion_testkit::transcript::{compare, run};
use serde_json::Value;

/// Cases mostly wait, so more of them run at a time than there are processors.
const AT_A_TIME: usize = 4;
/// Some recordings depend on which of two simultaneous events is reported first.
const ATTEMPTS: usize = 3;
/// Members that pi's providers have and pinion's do not, or that came after the recording.
const LEFT_OUT: [&str; 4] = ["cacheWrite1h", "rawStopReason", "reasoning", "durationMs"];

/// Cases in which a client sends words that pi interprets differently and that are errors in pinion; see
/// `differences.json`.
const UNKNOWN_WORDS: [&str; 3] = ["modes-invalid", "prompt-while-streaming", "thinking-levels"];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi").promising(Schema::PiModern);
    let modern = root.join("modern");
    let entries = fs::read_dir(&modern).unwrap_or_else(|e| panic!("{}: {e}", modern.display()));
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| !UNKNOWN_WORDS.contains(&&*name(file)))
        .collect();
    assert!(!files.is_empty(), "there are no cases");
    files.sort();
    let trials = files.into_iter().map(|file| {
        let (pi, program) = (root.join("pi"), program.clone());
        Trial::test(name(&file), move || play(&pi, &file, &program))
    });
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn play(cases: &Path, file: &Path, program: &Program) -> Result<(), Failed> {
    let recorded = fs::read_to_string(file)?;
    let recorded: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let mut case = load(&cases.join(name(file)));
    let dialect = ["--rpc-dialect".to_owned(), "modern".to_owned()];
    case.args.extend(dialect.clone());
    case.leading_args.extend(dialect);
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let recording = run(&case, program);
        if !recording.broken_promises.is_empty() {
            return Err(recording.broken_promises.join("\n").into());
        }
        let found = skeleton(&recording.output);
        match compare::difference(&recorded, &found) {
            Some(difference) => last = difference,
            None => return Ok(()),
        }
    }
    Err(last.into())
}

/// Returns the lines on which a client can rely, with their members; consecutive equal progress counts once.
fn skeleton(output: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for value in output {
        let Some((line, merges)) = outline(value) else {
            continue;
        };
        if !(merges && lines.last() == Some(&line)) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the outline of a line, and whether consecutive equal ones count once.
fn outline(line: &Value) -> Option<(String, bool)> {
    let kind = line["type"].as_str()?;
    Some(match kind {
        "message_start" | "message_end" => {
            let message = &line["message"];
            let role = message["role"].as_str()?;
            let stop = message["stopReason"].as_str().unwrap_or_default();
            let head = format!("{kind} {role} {stop}").trim_end().to_owned();
            // The length of an answer at its beginning depends on timing.
            match (kind, role) {
                ("message_start", "assistant") => (head, false),
                _ => (format!("{head} {}", shape(message)), false),
            }
        }
        "message_update" => {
            let event = &line["assistantMessageEvent"];
            let (name, index) = (event["type"].as_str()?, &event["contentIndex"]);
            (format!("update {name} {index} {}", shape(event)), true)
        }
        "tool_execution_update" => (kind.to_owned(), true),
        "bash_execution_update" => (format!("{kind} {}", shape(line)), true),
        // `aborted` came after the recording.
        "agent_settled" => (kind.to_owned(), false),
        "entry_appended" => return None,
        "response" => {
            let mut line = line.clone();
            let command = line["command"].as_str()?.to_owned();
            let (id, success) = (line["id"].clone(), line["success"].clone());
            // So did `disposition`.
            let takes = matches!(command.as_str(), "prompt" | "steer" | "follow_up");
            if takes && success == true {
                line.as_object_mut()?.shift_remove("data");
            }
            let shape = shape(&line);
            (format!("response {command} {id} {success} {shape}"), false)
        }
        _ => {
            let mut line = line.clone();
            line.as_object_mut()?.shift_remove("type");
            (format!("{kind} {}", shape(&line)), false)
        }
    })
}

/// Returns the names of all members, in order; of equal elements of a list only the first.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let named = members
                .iter()
                .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
                .map(|(name, value)| format!("{name}{}", shape(value)));
            format!("{{{}}}", named.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let mut shapes: Vec<String> = Vec::new();
            for shape in items.iter().map(shape) {
                if !shape.is_empty() && !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
            format!("[{}]", shapes.join(","))
        }
        _ => String::new(),
    }
}
