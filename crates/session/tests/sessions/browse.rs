//! Finding and listing sessions.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::*;
use pinion_session::{FoundSession, NewEntry, all_text, find, find_id, list, most_recent};
use serde_json::json;

fn session(directory: &Path, id: &str, message_time: &str, cwd: &str) -> std::path::PathBuf {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(format!("{id}.jsonl"));
    let text = format!(
        concat!(
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{cwd}"}}"#,
            "\n",
            r#"{{"type":"message","id":"a","parentId":null,"timestamp":"{at}","message":{{"role":"user","content":"hello {id}"}}}}"#,
            "\n"
        ),
        id = id,
        cwd = cwd,
        at = message_time
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn most_recent_returns_the_session_written_last_and_ignores_other_files() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(most_recent(&home.path().join("missing")), None);
    let old = session(home.path(), "old", "t", "/");
    let new = session(home.path(), "new", "t", "/");
    let hour = Duration::from_secs(3600);
    let set = |path: &Path, time| fs::File::open(path).unwrap().set_modified(time).unwrap();
    set(&old, SystemTime::now() - hour);
    set(&new, SystemTime::now());
    fs::write(home.path().join("other.jsonl"), "not a session\n").unwrap();
    fs::write(home.path().join("x.torn-1"), "{}").unwrap();
    assert_eq!(most_recent(home.path()), Some(new));
    set(&old, SystemTime::now() + hour);
    assert_eq!(most_recent(home.path()), Some(old));
}

#[test]
fn a_long_header_is_read() {
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path(), "long", "t", &format!("/{}", "x".repeat(2000)));
    assert_eq!(most_recent(home.path()), Some(path));
}

#[test]
fn sessions_are_found_by_path_and_by_the_beginning_of_their_id() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("--here--");
    let first = session(&project, "abc1", "2026-01-02T00:00:00.000Z", "/here");
    let later = session(&project, "abc2", "2026-01-03T00:00:00.000Z", "/here");
    session(
        &home.path().join("--there--"),
        "xyz",
        "2026-01-03T00:00:00.000Z",
        "/there",
    );
    let found = |argument| find(home.path(), &project, argument);
    assert_eq!(found("abc1").unwrap(), FoundSession::Id(first.clone()));
    assert_eq!(found("abc").unwrap(), FoundSession::Id(later));
    assert_eq!(found("./x").unwrap(), FoundSession::Path("./x".into()));
    assert_eq!(found("x.jsonl").unwrap().into_path(), Path::new("x.jsonl"));
    assert_eq!(
        found("nope").unwrap_err().to_string(),
        "No session found matching 'nope'"
    );
    let elsewhere = found("xy").unwrap_err();
    assert_eq!(elsewhere.code(), "session_other_project");
    assert!(elsewhere.to_string().contains("/there"));
    assert_eq!(find_id(&project, "abc1"), Some(first));
    assert_eq!(find_id(&project, "abc"), None);
}

#[test]
fn a_list_has_name_count_first_message_and_time() {
    let home = tempfile::tempdir().unwrap();
    session(home.path(), "older", "2026-01-02T00:00:00.000Z", "/w");
    let mut store = two_turns(home.path());
    store
        .append(NewEntry::SessionInfo {
            name: " kept ".into(),
        })
        .unwrap();
    // The system prompt is not a message to a person.
    let prompt =
        json!({"role": "system", "content": "", "sections": {"rules": "r"}, "timestamp": 1});
    store.append(message(prompt)).unwrap();
    let mut empty = new_session(home.path());
    empty.append(answer("unasked")).unwrap();
    let sessions = list(home.path());
    let firsts: Vec<&str> = sessions
        .iter()
        .map(|info| info.first_message.as_str())
        .collect();
    // The messages of the tests carry timestamps near the epoch.
    assert_eq!(firsts[0], "hello older");
    let info = sessions.iter().find(|info| info.id == store.id()).unwrap();
    assert_eq!(
        (info.name.as_deref(), info.message_count),
        (Some("kept"), 4)
    );
    assert_eq!((info.first_message.as_str(), info.modified), ("one", 2));
    let info = sessions.iter().find(|info| info.id == empty.id()).unwrap();
    assert_eq!(
        (info.first_message.as_str(), info.name.as_ref()),
        ("(no messages)", None)
    );
    assert_eq!(
        all_text(store.file().unwrap()).unwrap(),
        "one first two second"
    );
}
