//! Plays `tests/transcripts` against pinion, each file as a test of its own: those of classic clients, and in
//! directories of their own those of early and modern ones. The format is described in
//! `pinion_testkit::transcript::text`.

#![allow(clippy::panic, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use pinion_testkit::Program;
use pinion_testkit::schema::Schema;
use pinion_testkit::transcript::text::{check, shown};

/// Transcripts mostly wait, so more of them run at a time than there are processors.
const AT_A_TIME: usize = 4;

/// Kinds of lines that no transcript shows, with the reason.
const UNSEEN: &[(Schema, &str, &str)] = &[];

fn main() -> ExitCode {
    let program = Program::new(env!("CARGO_BIN_EXE_pinion")).promising(Schema::PiClassic);
    let files = transcripts();
    let mut trials: Vec<Trial> = files
        .iter()
        .map(|(name, file)| {
            let (file, program) = (file.clone(), program.clone());
            Trial::test(name, move || Ok(check(&file, &program)?))
        })
        .collect();
    trials.push(Trial::test(
        "together_the_transcripts_show_every_kind_of_line",
        move || {
            let gaps = gaps(files.values())?;
            if gaps.is_empty() {
                return Ok(());
            }
            Err(format!("no transcript shows these lines of the schemas:\n{gaps}").into())
        },
    ));
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The files by the names of their tests, such as `modern::tree`.
fn transcripts() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let mut files = BTreeMap::new();
    for (directory, prefix) in [("", ""), ("early", "early::"), ("modern", "modern::")] {
        let directory = root.join(directory);
        let entries = std::fs::read_dir(&directory);
        let entries = entries.unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|e| e == "txt"));
        files.extend(paths.map(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            (format!("{prefix}{stem}"), path)
        }));
    }
    assert!(!files.is_empty(), "there are no transcripts");
    files
}

/// Returns the kinds of the schemas that no transcript shows, and the exceptions that are not needed, one per line.
fn gaps<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<String, String> {
    let mut seen: BTreeMap<Schema, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let shown = shown(file)?;
        let schema = shown.schema.unwrap_or(Schema::PiClassic);
        seen.entry(schema).or_default().extend(shown.kinds);
    }
    let mut gaps = Vec::new();
    for schema in Schema::PI {
        let seen = seen.remove(&schema).unwrap_or_default();
        let kinds = schema.kinds();
        let excused = UNSEEN.iter().filter(|(of, ..)| *of == schema);
        let excused: BTreeSet<&str> = excused.map(|(_, kind, _)| *kind).collect();
        let dialect = schema.dialect();
        for kind in &kinds {
            match (seen.contains(kind), excused.contains(kind.as_str())) {
                (false, false) => gaps.push(format!("  {dialect}: {kind}")),
                (true, true) => gaps.push(format!("  {dialect}: {kind} is excused and seen")),
                _ => {}
            }
        }
        let unknown = excused.iter().filter(|kind| !kinds.contains(**kind));
        gaps.extend(unknown.map(|kind| format!("  {dialect}: {kind} is excused and unknown")));
    }
    Ok(gaps.join("\n"))
}
