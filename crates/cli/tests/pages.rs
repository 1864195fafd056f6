//! The flag tables of the pages in `docs`: they are those of the program.
//!
//! `PINION_WRITE_DOCS=1` writes them instead of comparing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::path::{Path, PathBuf};

use pinion_cli::{markdown, tables};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Checks that the page has this text, or writes it.
fn agrees(path: &Path, text: &str) {
    if std::env::var_os("PINION_WRITE_DOCS").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let line = written.lines().zip(text.lines()).find(|(a, b)| a != b);
    assert!(
        written == text,
        "{} differs from the tables of the command line, first here: {line:?}. Write it again with \
         PINION_WRITE_DOCS=1 cargo nextest run -p pinion-cli --test pages",
        path.display()
    );
}

#[test]
fn the_page_of_all_commands_is_that_of_the_tables() {
    let page = markdown::page(&tables::PROGRAMS);
    agrees(&docs().join("command-line.md"), &page);
}

#[test]
fn the_flag_tables_of_the_other_pages_are_those_of_the_program() {
    let mut blocks = 0;
    for entry in std::fs::read_dir(docs()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        blocks += page.matches("<!-- flags of ").count();
        let fresh = markdown::refreshed(&page, &tables::PROGRAMS).unwrap();
        agrees(&path, &fresh);
    }
    assert!(blocks > 0, "a page has a table");
}
