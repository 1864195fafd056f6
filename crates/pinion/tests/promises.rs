//! `docs/promises.md` and the tests agree: every promise has a test of its name, and no test shows a promise that does
//! not exist.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_promise_has_a_test_and_every_test_a_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/promises.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let promised: BTreeSet<String> = rows
        .filter_map(|row| row.split_once(' '))
        .map(|(first, _)| first.to_lowercase())
        .filter(|first| is_number(first))
        .collect();
    assert!(promised.len() > 20, "{promised:?}");
    let mut shown = BTreeSet::new();
    collect(&root.join("tests"), &mut shown);
    assert_eq!(promised, shown);
}

/// Reports whether the text is a letter and a number, as in `l10`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['l', 's', 'd', 'h', 'm']);
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Collects the promises with which the names of tests begin.
fn collect(directory: &Path, shown: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, shown);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("fn "));
        shown.extend(
            names
                .filter_map(|name| name.split('_').next())
                .filter(|first| is_number(first))
                .map(str::to_owned),
        );
    }
}
