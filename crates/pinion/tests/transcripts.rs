//! Plays `tests/transcripts/*.txt` against our binary. The format is described in
//! `pinion_testkit::transcript::text`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinion_testkit::Program;
use pinion_testkit::schema::Schema;
use pinion_testkit::transcript::text::check;

#[test]
fn every_transcript_is_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts");
    let files = std::fs::read_dir(&root).expect("tests/transcripts");
    let mut files: Vec<PathBuf> = files
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are no transcripts");
    let program = Program::new(env!("CARGO_BIN_EXE_pinion")).promising(Schema::PiClassic);
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(report) = check(file, &program) {
                        reports.lock().expect("no panic").push(report);
                    }
                }
            });
        }
    });
    let reports = reports.into_inner().expect("no panic");
    assert!(
        reports.is_empty(),
        "{} of {} transcripts are not as written:\n{}",
        reports.len(),
        files.len(),
        reports.join("\n")
    );
}
