//! Plays `tests/transcripts/acp` against `pinion acp`, each file as a test of its own. Besides what a transcript states,
//! every line is checked strictly, standard error stays empty, and no session speaks before the answer that names it.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod faults;
mod registry;
mod strict;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pinion_testkit::Program;
use pinion_testkit::transcript::{Recording, run, text};
use serde_json::Value;

/// Transcripts mostly wait, so more of them run at a time than there are processors.
const AT_A_TIME: usize = 4;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts/acp");
    let entries = std::fs::read_dir(&root).unwrap_or_else(|error| panic!("{error}"));
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "txt"))
        .collect();
    files.sort();
    let mut trials: Vec<Trial> = files
        .into_iter()
        .map(|file| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            Trial::test(format!("transcript::{name}"), move || {
                s10_every_line_of_a_transcript_is_as_it_should_be(&file)
            })
        })
        .collect();
    trials.extend(faults::trials());
    trials.extend(registry::trials());
    trials.extend(strict::trials());
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn s10_every_line_of_a_transcript_is_as_it_should_be(file: &Path) -> Result<(), Failed> {
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let case = text::parse(&source)?;
    let recording = run(&case, &Program::new(env!("CARGO_BIN_EXE_pinion")));
    let mut problems = recording.problems.clone();
    problems.extend(complaints(&recording));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n  ").into())
    }
}

fn complaints(recording: &Recording) -> Vec<String> {
    let mut complaints = Vec::new();
    if !recording.stderr.trim().is_empty() {
        complaints.push(format!("standard error: {}", recording.stderr));
    }
    let last = recording.output.last().map(|line| &line["__harness"]);
    if last.is_some_and(|end| end["code"] != 0) {
        complaints.push(format!("it did not exit with 0: {last:?}"));
    }
    let mut check = strict::Conversation::default();
    let lines = recording.output.iter();
    for line in lines.filter(|line| line["__harness"].is_null()) {
        complaints.extend(check.complaint(line));
    }
    let answered: Vec<Value> = recording
        .input
        .iter()
        .filter_map(|sent| serde_json::from_str::<Value>(&sent.text).ok())
        .filter(|line| line.get("method").is_some())
        .filter_map(|line| line.get("id").cloned())
        .collect();
    complaints.extend(check.unanswered(&answered));
    complaints
}
