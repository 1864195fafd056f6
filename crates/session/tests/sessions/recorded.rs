//! Session files recorded from pi 0.52.12 and 0.73.1 (times and ids replaced).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::*;
use pinion_session::{Entry, EntryKind, NewEntry, NewSession, Store, stats};
use serde_json::Value;

fn vectors() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 40);
    files
}

fn vector(name: &str) -> Store {
    let path = vectors()
        .into_iter()
        .find(|path| path.ends_with(format!("{name}.jsonl")))
        .unwrap();
    Store::open_read_only(&path, Path::new("/")).unwrap().store
}

#[test]
fn every_recorded_file_opens_without_notices() {
    for path in vectors() {
        let opened = Store::open_read_only(&path, Path::new("/")).unwrap();
        assert_eq!(opened.notices, [], "{}", path.display());
        assert!(
            opened.store.context().unreadable.is_empty(),
            "{}",
            path.display()
        );
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(opened.store.entries().count(), lines - 1);
    }
}

/// Returns the members of an entry without the base members, which two kinds put last.
fn own_members(entry: &Entry) -> Vec<u8> {
    let json = String::from_utf8(entry.json().into_owned()).unwrap();
    let (head, rest) = json.split_once(r#""id":""#).unwrap();
    let rest = rest
        .split_once(r#""timestamp":""#)
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .1;
    format!("{head}{rest}").into_bytes()
}

fn as_new(entry: &Entry) -> NewEntry {
    let value = entry.value().unwrap();
    let text = |name: &str| value[name].as_str().unwrap().to_owned();
    let maybe = |name: &str| value.get(name).cloned();
    match entry.kind() {
        EntryKind::Message(_) => NewEntry::Message(entry.message().unwrap()),
        EntryKind::ModelChange => NewEntry::ModelChange {
            provider: text("provider"),
            model_id: text("modelId"),
        },
        EntryKind::ThinkingLevelChange => {
            NewEntry::ThinkingLevelChange(text("thinkingLevel").parse().unwrap())
        }
        EntryKind::Compaction => NewEntry::Compaction {
            summary: text("summary"),
            first_kept_entry_id: text("firstKeptEntryId"),
            tokens_before: value["tokensBefore"].as_u64().unwrap(),
            usage: None,
            details: maybe("details"),
            from_hook: value.get("fromHook").and_then(Value::as_bool),
            system_message: None,
        },
        EntryKind::CustomMessage => NewEntry::CustomMessage {
            custom_type: text("customType"),
            content: serde_json::from_value(value["content"].clone()).unwrap(),
            display: value["display"].as_bool().unwrap(),
            details: maybe("details"),
        },
        EntryKind::SessionInfo => NewEntry::SessionInfo { name: text("name") },
        other => panic!("no vector has {other:?}"),
    }
}

#[test]
fn every_recorded_entry_is_written_byte_for_byte() {
    for path in vectors() {
        let recorded = Store::open_read_only(&path, Path::new("/")).unwrap().store;
        let mut ours = Store::create(NewSession::default()).unwrap();
        for entry in recorded.entries() {
            let id = ours.append(as_new(entry)).unwrap();
            let (theirs, ours) = (own_members(entry), own_members(ours.entry(&id).unwrap()));
            assert_eq!(
                String::from_utf8_lossy(&ours),
                String::from_utf8_lossy(&theirs),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn conversations_are_the_ones_pi_reported() {
    let cases: &[(&str, &[&str])] = &[
        (
            "session-fork-0.52.12-2",
            &["Prompt one", "A1.", "Prompt two, reworded", "A2b."],
        ),
        (
            "session-open-file-0.52.12",
            &[
                "Stored question",
                "Other branch answer",
                "New question",
                "New answer.",
            ],
        ),
        (
            "session-continue-0.73.1",
            &[
                "Remember 7",
                "Noted.",
                "bashExecution",
                "What number?",
                "Seven.",
            ],
        ),
        (
            "ext-send-0.52.12",
            &[
                "said: hi there",
                "Heard.",
                "(injected quietly)",
                "(injected go)",
                "Saw the injection.",
            ],
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(texts(&vector(name)), *expected, "{name}");
    }
    let compacted = texts(&vector("compact-files-0.52.12"));
    assert!(compacted[0].starts_with("[## Goal"), "{compacted:?}");
    assert!(compacted[1].starts_with("More. ") && compacted[2].starts_with("Answer two."));
    assert_eq!(compacted[3..], ["After", "After."]);
    assert_eq!(vector("session-continue-0.52.12").name(), Some("kept-name"));
    let choices = vector("session-continue-0.52.12").choices();
    assert_eq!(
        choices.thinking_level.map(|level| level.as_str()),
        Some("low")
    );
    assert_eq!(
        choices.model,
        Some(("mock".to_owned(), "mock-1".to_owned()))
    );
}

#[test]
fn stats_are_the_ones_pi_reported() {
    let context = vector("session-continue-0.52.12").context();
    let stats = stats(context.messages.iter().map(Arc::as_ref));
    assert_eq!(
        (
            stats.user_messages,
            stats.assistant_messages,
            stats.total_messages
        ),
        (2, 2, 5)
    );
    assert_eq!((stats.tokens.total, stats.cost), (240, 0.0012));
}
