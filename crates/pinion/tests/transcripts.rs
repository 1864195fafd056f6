//! Plays `tests/transcripts` against pinion: those of classic clients, and in directories of their own those of early
//! and modern ones. The format is described in `pinion_testkit::transcript::text`.

#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinion_testkit::Program;
use pinion_testkit::schema::Schema;
use pinion_testkit::transcript::text::{Shown, check};

/// Kinds of lines that no transcript shows, with the reason.
const UNSEEN: &[(Schema, &str, &str)] = &[];

#[test]
fn every_transcript_is_as_written_and_together_they_show_everything() {
    let only = std::env::var("TRANSCRIPT").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let mut files = Vec::new();
    for directory in ["", "early", "modern"] {
        files.extend(transcripts(&root.join(directory)));
    }
    files.retain(|file| only.is_empty() || file.to_string_lossy().contains(&only));
    let (shown, reports) = play(&files);
    assert!(
        reports.is_empty(),
        "{} of {} transcripts are not as written:\n{}",
        reports.len(),
        files.len(),
        reports.join("\n")
    );
    if only.is_empty() {
        let gaps = gaps(&shown);
        assert!(
            gaps.is_empty(),
            "the schemas have lines that no transcript shows:\n{}",
            gaps.join("\n")
        );
    }
}

fn transcripts(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are no transcripts");
    files
}

fn play(files: &[PathBuf]) -> (Vec<Shown>, Vec<String>) {
    let program = Program::new(env!("CARGO_BIN_EXE_pinion")).promising(Schema::PiClassic);
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = check(file, &program);
                    let mut results = results.lock().expect("no panic");
                    match result {
                        Ok(shown) => results.0.push(shown),
                        Err(report) => results.1.push(report),
                    }
                }
            });
        }
    });
    results.into_inner().expect("no panic")
}

/// Returns the kinds of the schemas that no transcript shows, and the exceptions that are not needed.
fn gaps(shown: &[Shown]) -> Vec<String> {
    let mut seen: BTreeMap<Schema, BTreeSet<&str>> = BTreeMap::new();
    for shown in shown {
        let kinds = shown.kinds.iter().map(String::as_str);
        seen.entry(shown.schema.expect("every transcript has one"))
            .or_default()
            .extend(kinds);
    }
    let mut gaps = Vec::new();
    for schema in Schema::PI {
        let seen = seen.remove(&schema).unwrap_or_default();
        let kinds = schema.kinds();
        let excused = UNSEEN.iter().filter(|(of, ..)| *of == schema);
        let excused: BTreeSet<&str> = excused.map(|(_, kind, _)| *kind).collect();
        let dialect = schema.dialect();
        for kind in &kinds {
            match (
                seen.contains(kind.as_str()),
                excused.contains(kind.as_str()),
            ) {
                (false, false) => gaps.push(format!("  {dialect}: {kind}")),
                (true, true) => gaps.push(format!("  {dialect}: {kind} is excused and seen")),
                _ => {}
            }
        }
        let unknown = excused.iter().filter(|kind| !kinds.contains(**kind));
        gaps.extend(unknown.map(|kind| format!("  {dialect}: {kind} is excused and unknown")));
    }
    gaps
}
