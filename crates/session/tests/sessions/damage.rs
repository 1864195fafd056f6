//! Damaged files: cut, with flipped bits, with joined lines, or not a session at all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::*;
use pinion_session::{Opened, SessionError, Store};

/// The bytes of a small stored session.
fn sample() -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    store
        .append(pinion_session::NewEntry::SessionInfo {
            name: "näme".into(),
        })
        .unwrap();
    store.append(user("zum Schluß \u{1f600}")).unwrap();
    fs::read(store.file().unwrap()).unwrap()
}

/// Returns the offset of each line and of the end.
fn line_starts(bytes: &[u8]) -> Vec<usize> {
    let after = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    std::iter::once(0).chain(after).collect()
}

fn open(path: &Path) -> Opened {
    Store::open(path, Path::new("/fallback")).unwrap()
}

fn codes(opened: &Opened) -> Vec<&'static str> {
    opened.notices.iter().map(|notice| notice.code).collect()
}

/// Lists the files next to `path` whose name starts with its name.
fn beside(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let files = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|file| file != path && file.to_str().unwrap().contains(name))
        .collect()
}

#[test]
fn a_file_cut_anywhere_in_its_last_two_records_loses_only_what_was_cut() {
    let bytes = sample();
    let starts = line_starts(&bytes);
    let lines = starts.len() - 1;
    for cut in starts[lines - 2]..bytes.len() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s.jsonl");
        fs::write(&path, &bytes[..cut]).unwrap();
        // A line is complete once its last brace is there.
        let complete = starts[1..].iter().filter(|&&end| cut + 1 >= end).count();
        let boundary = starts.contains(&cut);
        let closed = starts.contains(&(cut + 1));

        let mut opened = open(&path);
        assert_eq!(opened.store.entries().count(), complete - 1, "cut at {cut}");
        let expected: &[&str] = if boundary || closed {
            &[]
        } else {
            &["session_tail_torn"]
        };
        assert_eq!(codes(&opened), expected, "cut at {cut}");
        assert_eq!(
            fs::read(&path).unwrap(),
            &bytes[..cut],
            "opening changes nothing"
        );

        let parent = opened.store.leaf().map(str::to_owned);
        opened.store.append(user("next")).unwrap();
        drop(opened);
        let written = self::lines(&path);
        assert_eq!(written.len(), complete + 1);
        assert_eq!(written[complete]["parentId"].as_str(), parent.as_deref());
        let aside = beside(&path);
        if boundary || closed {
            assert_eq!(aside, [] as [&Path; 0]);
        } else {
            assert_eq!(fs::read(&aside[0]).unwrap(), &bytes[starts[complete]..cut]);
        }
        assert_eq!(
            codes(&open(&path)),
            [] as [&str; 0],
            "repaired once, cut at {cut}"
        );
    }
}

#[test]
fn a_first_write_cut_anywhere_leaves_a_session_that_opens() {
    let bytes = sample();
    for cut in 0..line_starts(&bytes)[2] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s.jsonl");
        fs::write(&path, &bytes[..cut]).unwrap();
        let mut opened = open(&path);
        opened.store.append(user("q")).unwrap();
        opened.store.append(answer("a")).unwrap();
        drop(opened);
        let reopened = open(&path);
        assert_eq!(codes(&reopened), [] as [&str; 0], "cut at {cut}");
        assert!(
            texts(&reopened.store).ends_with(&["q".into(), "a".into()]),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_flipped_bit_damages_at_most_its_own_line_and_is_reported() {
    let bytes = sample();
    let starts = line_starts(&bytes);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    for at in 0..bytes.len() {
        for bit in [0, 5, 7] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            fs::write(&path, &flipped).unwrap();
            let hit = starts.partition_point(|&start| start <= at) - 1;
            let opened = open(&path);
            let kept: Vec<Vec<u8>> = opened
                .store
                .entries()
                .map(|entry| entry.json().into_owned())
                .collect();
            for entry in opened.store.entries().filter_map(|entry| entry.shown()) {
                let entry: serde_json::Value = serde_json::from_str(entry.get()).unwrap();
                let whole = ["type", "id", "timestamp"]
                    .iter()
                    .all(|name| entry[name].is_string());
                assert!(whole, "byte {at} bit {bit}: {entry}");
            }
            for line in 1..starts.len() - 1 {
                // A flipped newline joins its line with the next one.
                let touched = line == hit || bytes[at] == b'\n' && line == hit + 1;
                let text = &bytes[starts[line]..starts[line + 1] - 1];
                if !touched {
                    assert!(
                        kept.iter().any(|kept| kept == text),
                        "byte {at} bit {bit} line {line}"
                    );
                }
            }
            let unchanged = kept.len() == starts.len() - 2;
            let told = !opened.notices.is_empty();
            assert!(unchanged || told, "byte {at} bit {bit}: silently lost");
            drop(opened);
            assert_eq!(fs::read(&path).unwrap(), flipped, "opening changes nothing");
            for copy in fs::read_dir(home.path()).unwrap() {
                fs::remove_file(copy.unwrap().path()).unwrap();
            }
        }
    }
}

#[test]
fn damage_in_the_middle_keeps_the_rest_of_the_conversation() {
    let bytes = sample();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let text = String::from_utf8(bytes)
        .unwrap()
        .replace(r#""text":"first""#, r#""text":"first"#);
    fs::write(&path, &text).unwrap();
    let mut opened = open(&path);
    assert_eq!(codes(&opened), ["session_damaged"]);
    assert!(
        opened.notices[0].message.contains("line 3"),
        "{}",
        opened.notices[0].message
    );
    assert_eq!(texts(&opened.store)[..3], ["one", "two", "second"]);
    assert_eq!(opened.store.context().unreadable.len(), 1);
    opened.store.append(user("on")).unwrap();
    assert!(
        fs::read_to_string(&path).unwrap().starts_with(&text),
        "the damaged bytes stay"
    );
    // Unreadable lines are not copied, and the copy is intact.
    let copy = opened.store.clone_to_leaf().unwrap().save().unwrap();
    let copy_path = copy.file().unwrap().to_owned();
    drop(copy);
    let reopened = open(&copy_path);
    assert_eq!(codes(&reopened), [] as [&str; 0]);
    assert_eq!(texts(&reopened.store)[..3], ["one", "two", "second"]);
}

#[test]
fn an_entry_glued_to_a_torn_one_is_used() {
    let bytes = sample();
    let starts = line_starts(&bytes);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let mut glued = bytes[..starts[4] + 150].to_vec();
    let orphan = r#"{"type":"message","id":"ffff0001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"after the crash"}}"#;
    glued.extend_from_slice(orphan.as_bytes());
    glued.push(b'\n');
    fs::write(&path, &glued).unwrap();
    let opened = open(&path);
    assert_eq!(codes(&opened), ["session_damaged"]);
    assert_eq!(texts(&opened.store), ["after the crash"]);
}

#[test]
fn a_parent_that_does_not_exist_is_reported() {
    let bytes = String::from_utf8(sample()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let kept: Vec<&str> = bytes
        .lines()
        .enumerate()
        .filter(|(at, _)| *at != 2)
        .map(|(_, l)| l)
        .collect();
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    let opened = open(&path);
    assert_eq!(codes(&opened), ["session_broken_link"]);
    assert_eq!(texts(&opened.store)[..2], ["two", "second"]);
}

#[test]
fn a_file_without_its_header_is_opened_from_a_repaired_copy() {
    let bytes = sample();
    let starts = line_starts(&bytes);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let mut broken = bytes.clone();
    broken[3] = 0;
    fs::write(&path, &broken).unwrap();
    let mut opened = open(&path);
    assert!(
        codes(&opened).contains(&"session_header_repaired"),
        "{:?}",
        opened.notices
    );
    let copy = opened.store.file().unwrap().to_owned();
    assert_ne!(copy, path);
    assert_eq!(copy.parent(), path.parent());
    assert_eq!(
        opened.store.header().parent_session.as_deref(),
        path.to_str()
    );
    assert_eq!(
        opened.store.cwd(),
        Path::new("/proj/place"),
        "read from what is left of the header"
    );
    assert_eq!(texts(&opened.store).len(), 5);
    opened.store.append(user("on")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), broken, "the original is kept");
    assert!(
        fs::read(&copy)
            .unwrap()
            .windows(40)
            .any(|w| w == &bytes[starts[1]..starts[1] + 40])
    );
    drop(opened);
    assert_eq!(codes(&open(&copy)), [] as [&str; 0]);
    assert_eq!(
        codes(&Store::open_read_only(&path, Path::new("/")).unwrap())[0],
        "session_header_repaired"
    );
}

#[test]
fn a_file_that_is_not_a_session_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notes.jsonl");
    for text in [
        "hello",
        "{\"a\":1}\n",
        "\0\0\0\0",
        "# notes\n\nmore\n",
        "[1]\n",
        "{\"type\":\"event\",\"id\":\"x\"}\n",
    ] {
        fs::write(&path, text).unwrap();
        let refused = Store::open(&path, Path::new("/")).unwrap_err();
        assert!(
            matches!(refused, SessionError::NotASession { .. }),
            "{text:?}"
        );
        assert_eq!(refused.code(), "not_a_session");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn old_versions_are_rewritten_once_and_damage_in_them_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("v1.jsonl");
    let text = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w","provider":"p","modelId":"m","thinkingLevel":"low"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one","timestamp":1}}"#,
        "\nbroken line\n",
        r#"{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"first"}],"provider":"p","model":"m","usage":{"cost":{"total":0.000002}},"stopReason":"stop","timestamp":2}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-01T00:00:03.000Z","message":{"role":"hookMessage","customType":"h","content":"hook","display":true,"timestamp":3}}"#,
        "\n",
        r#"{"type":"compaction","timestamp":"2025-01-01T00:00:04.000Z","summary":"sum","firstKeptEntryIndex":2,"tokensBefore":5}"#,
        "\n",
        r#"{"type":"mess"#,
    );
    fs::write(&path, text).unwrap();
    let expected = ["[sum]", "first", "(hook)"];
    let read_only = Store::open_read_only(&path, Path::new("/")).unwrap();
    assert_eq!(texts(&read_only.store), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let mut opened = open(&path);
    assert_eq!(codes(&opened), ["session_damaged", "session_tail_torn"]);
    assert_eq!(texts(&opened.store), expected);
    assert_eq!(opened.store.header().version, 3);
    let leaf = opened.store.leaf().unwrap().to_owned();
    let refused = Store::open(&path, Path::new("/")).unwrap_err();
    assert_eq!(
        refused.code(),
        "session_locked",
        "the rewritten file is held as well"
    );
    opened.store.append(user("on")).unwrap();
    drop(opened);
    let migrated = fs::read_to_string(&path).unwrap();
    assert!(migrated.contains("\nbroken line\n") && migrated.contains(r#""total":0.000002"#));
    assert!(migrated.lines().next().unwrap().contains(r#""version":3"#));
    let reopened = open(&path);
    assert_eq!(codes(&reopened), ["session_damaged"]);
    assert_eq!(
        reopened.store.path()[3].id().as_str(),
        leaf,
        "ids are stable from now on"
    );
    assert_eq!(beside(&path).len(), 1, "only the torn tail lies beside it");
}

#[test]
fn a_version_that_does_not_match_the_entries_is_reported_and_nothing_is_rewritten() {
    let bytes = String::from_utf8(sample()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    for (version, notices) in [
        (r#""versioo":3"#, 1),
        (r#""version":1"#, 1),
        (r#""version":0"#, 1),
        (r#""version":-3"#, 1),
        (r#""version":3.5"#, 1),
        (r#""version":"3""#, 1),
        (r#""version":null"#, 1),
        (r#""version":2"#, 0),
    ] {
        let text = bytes.replace(r#""version":3"#, version);
        fs::write(&path, &text).unwrap();
        let mut opened = open(&path);
        assert_eq!(
            codes(&opened),
            vec!["session_version_unclear"; notices],
            "{version}"
        );
        assert_eq!(texts(&opened.store).len(), 5, "{version}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{version}");
        opened.store.append(user("more")).unwrap();
        drop(opened);
        assert!(fs::read_to_string(&path).unwrap().starts_with(&text));
        assert_eq!(texts(&open(&path).store).len(), 6, "{version}");
    }
}

#[test]
fn later_versions_are_left_as_they_are() {
    let bytes = String::from_utf8(sample())
        .unwrap()
        .replace(r#""version":3"#, r#""version":7"#);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    fs::write(&path, &bytes).unwrap();
    let opened = open(&path);
    assert_eq!(
        (opened.store.header().version, codes(&opened).len()),
        (7, 0)
    );
    drop(opened);
    assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
}
