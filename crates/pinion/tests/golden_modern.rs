//! Plays recorded cases in the modern dialect and compares the lines, their order and their members with those of pi
//! 0.87.1; see `tests/golden/README.md`. `GOLDEN=name,name` plays only some.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

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

#[test]
fn a_modern_client_reads_what_it_would_read_from_pi() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let comparable = |path: &PathBuf| !UNKNOWN_WORDS.contains(&&*name(path));
    let wanted = |path: &PathBuf| only.is_empty() || only.split(',').any(|n| n == name(path));
    let files = fs::read_dir(root.join("modern")).unwrap();
    let files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    let files = files.into_iter().filter(wanted).filter(comparable);
    let files: Vec<PathBuf> = files.collect();
    assert!(!files.is_empty(), "there are no such cases");
    let program = Program::linked(env!("CARGO_BIN_EXE_pinion"), "pi").promising(Schema::PiModern);
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(complaint) = complaint(&root, file, &program) {
                        complaints.lock().unwrap().push(complaint);
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(
        complaints.is_empty(),
        "{} of {} cases differ:\n{}",
        complaints.len(),
        files.len(),
        complaints.join("\n")
    );
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn complaint(root: &Path, file: &Path, program: &Program) -> Option<String> {
    let recorded = fs::read_to_string(file).unwrap();
    let recorded: Vec<String> = recorded.lines().map(str::to_owned).collect();
    let mut case = load(&root.join("pi").join(name(file)));
    let dialect = ["--rpc-dialect".to_owned(), "modern".to_owned()];
    case.args.extend(dialect.clone());
    case.leading_args.extend(dialect);
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let recording = run(&case, program);
        if !recording.broken_promises.is_empty() {
            return Some(format!(
                "== {}\n{}",
                case.name,
                recording.broken_promises.join("\n")
            ));
        }
        let found = skeleton(&recording.output);
        let difference = compare::difference(&recorded, &found)?;
        last = Some(format!("== {}\n{difference}", case.name));
    }
    last
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
