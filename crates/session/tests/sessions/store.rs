//! Sessions that are created, written late, continued, branched, named and forked.

use std::fs;
use std::path::Path;

use crate::support::*;
use pinion_message::{Content, ThinkingLevel};
use pinion_session::{NewEntry, NewSession, Store};
use serde_json::{Value, json};

#[test]
fn nothing_is_written_before_the_first_message_and_then_everything_at_once() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("sessions/--work--");
    let mut store = new_session(&directory);
    let path = store.file().unwrap().to_owned();
    let model = NewEntry::ModelChange {
        provider: "mock".into(),
        model_id: "m1".into(),
    };
    store.append(model).unwrap();
    store
        .append(NewEntry::ThinkingLevelChange(ThinkingLevel::Medium))
        .unwrap();
    assert!(directory.is_dir() && !path.exists() && !store.is_on_disk());
    store.append(user("hello")).unwrap();
    assert_eq!(lines(&path).len(), 4);
    store.append(answer("hi")).unwrap();
    let written = lines(&path);
    let types: Vec<&str> = written
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "session",
            "model_change",
            "thinking_level_change",
            "message",
            "message"
        ]
    );
    assert!(store.is_on_disk());
    for pair in written[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
        assert_eq!(pair[0]["id"].as_str().unwrap().len(), 8);
    }
    assert_eq!(written[1]["parentId"], Value::Null);
    let name = path.file_name().unwrap().to_str().unwrap();
    let stamp = written[0]["timestamp"]
        .as_str()
        .unwrap()
        .replace([':', '.'], "-");
    assert_eq!(name, format!("{stamp}_{}.jsonl", store.id()));

    store.append(user("more")).unwrap();
    assert_eq!(lines(&path).len(), 6);
}

#[test]
fn a_system_message_is_stored_before_the_question_comes() {
    let home = tempfile::tempdir().unwrap();
    let mut store = new_session(home.path());
    let path = store.file().unwrap().to_owned();
    let system =
        json!({"role": "system", "content": "", "sections": {"preamble": "p"}, "timestamp": 1});
    store.append(message(system.clone())).unwrap();
    assert_eq!(lines(&path)[1]["message"], system);
}

#[test]
fn a_new_session_without_messages_can_be_removed() {
    let home = tempfile::tempdir().unwrap();
    let mut named = new_session(home.path());
    let path = named.file().unwrap().to_owned();
    named
        .append(NewEntry::SessionInfo {
            name: "named".into(),
        })
        .unwrap();
    assert!(path.exists() && named.remove_without_messages());
    assert!(!path.exists() && !named.is_on_disk());

    let mut used = new_session(home.path());
    used.append(user("hello")).unwrap();
    assert!(!used.remove_without_messages());

    let mut named = new_session(home.path());
    let path = named.file().unwrap().to_owned();
    named
        .append(NewEntry::SessionInfo {
            name: "named".into(),
        })
        .unwrap();
    drop(named);
    let mut opened = Store::open(&path, home.path()).unwrap().store;
    assert!(!opened.remove_without_messages(), "it existed before");
    assert!(path.exists());
}

#[test]
fn a_session_in_memory_has_no_file_and_works() {
    let mut store = Store::create(NewSession::default()).unwrap();
    let first = store.append(user("one")).unwrap();
    store.append(answer("first")).unwrap();
    assert_eq!((store.file(), store.pending()), (None, 0));
    let (fork, text) = store.fork_before(&first).unwrap();
    let fork = fork.save().unwrap();
    assert_eq!(
        (
            text.as_str(),
            fork.file(),
            fork.header().parent_session.as_ref()
        ),
        ("one", None, None)
    );
}

#[test]
fn what_was_appended_is_there_after_opening_again() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    store
        .append(NewEntry::SessionInfo {
            name: "my work".into(),
        })
        .unwrap();
    let path = store.file().unwrap().to_owned();
    let (id, leaf) = (store.id().to_owned(), store.leaf().unwrap().to_owned());
    drop(store);
    let opened = Store::open(&path, Path::new("/else")).unwrap();
    assert_eq!(opened.notices, []);
    let mut store = opened.store;
    assert_eq!(
        (store.id(), store.leaf(), store.name()),
        (&*id, Some(&*leaf), Some("my work"))
    );
    assert_eq!(store.cwd(), Path::new("/proj/place"));
    assert_eq!(texts(&store), ["one", "first", "two", "second"]);
    assert_eq!(store.context().model, Some(("mock".into(), "m1".into())));
    assert_eq!(store.context().thinking_level, None);
    store.append(user("three")).unwrap();
    assert_eq!(texts(&store), ["one", "first", "two", "second", "three"]);
    let written = lines(&path);
    assert_eq!(written[6]["parentId"], leaf.as_str());
}

#[test]
fn a_missing_path_becomes_a_session_stored_there() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("new/place.jsonl");
    let mut store = Store::open(&path, Path::new("/here")).unwrap().store;
    assert_eq!(
        (store.file(), store.cwd()),
        (Some(&*path), Path::new("/here"))
    );
    assert!(!path.exists());
    store.append(user("x")).unwrap();
    assert_eq!(lines(&path)[0]["cwd"], "/here");
}

#[test]
fn an_empty_file_gets_its_header_at_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("empty.jsonl");
    std::fs::write(&path, "\n").unwrap();
    let mut store = Store::open(&path, Path::new("/here")).unwrap().store;
    assert_eq!(lines(&path)[0]["cwd"], "/here");
    store.append(user("x")).unwrap();
    store.append(answer("y")).unwrap();
    let reopened = {
        drop(store);
        Store::open(&path, Path::new("/")).unwrap()
    };
    assert_eq!(reopened.notices, []);
    assert_eq!(texts(&reopened.store), ["x", "y"]);
}

#[test]
fn branches_share_their_beginning() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let ids: Vec<String> = store
        .entries()
        .map(|entry| entry.id().to_string())
        .collect();
    store.set_leaf(Some(&ids[1])).unwrap();
    store.append(user("other")).unwrap();
    assert_eq!(texts(&store), ["one", "first", "other"]);
    store.set_leaf(None).unwrap();
    assert!(store.context().messages.is_empty());
    store.append(user("fresh")).unwrap();
    assert_eq!(texts(&store), ["fresh"]);
    let unknown = store.set_leaf(Some("nope")).unwrap_err();
    assert_eq!(unknown.to_string(), "Entry nope not found");
    let asked: Vec<String> = store
        .user_messages()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(asked, ["one", "two", "other", "fresh"]);
    let since = store.entries_since(Some(&ids[2])).unwrap();
    assert_eq!(since.len(), 3);
    // File order decides after opening again.
    let path = store.file().unwrap().to_owned();
    drop(store);
    assert_eq!(
        texts(&Store::open(&path, Path::new("/")).unwrap().store),
        ["fresh"]
    );
}

#[test]
fn a_compaction_replaces_what_it_summarises() {
    let mut store = Store::create(NewSession::default()).unwrap();
    store.append(user("one")).unwrap();
    store.append(answer("first")).unwrap();
    let kept = store.append(user("two")).unwrap();
    store.append(answer("second")).unwrap();
    let compaction = |kept: &str, summary: &str| NewEntry::Compaction {
        summary: summary.into(),
        first_kept_entry_id: kept.into(),
        tokens_before: 190_010,
        usage: None,
        details: None,
        from_hook: Some(false),
        system_message: None,
    };
    store.append(compaction(&kept, "sum")).unwrap();
    store.append(user("three")).unwrap();
    assert_eq!(texts(&store), ["[sum]", "two", "second", "three"]);
    let context = store.context();
    assert_eq!(context.entry_ids[1], kept);
    assert_eq!(
        context.messages[0].timestamp(),
        store
            .entry(&context.entry_ids[0])
            .unwrap()
            .timestamp()
            .unwrap()
    );
    // An older compaction inside the kept range has no effect; an unknown id keeps no entry.
    store.append(compaction(&kept, "again")).unwrap();
    assert_eq!(texts(&store), ["[again]", "two", "second", "three"]);
    store.append(compaction("gone", "all")).unwrap();
    store.append(user("four")).unwrap();
    assert_eq!(texts(&store), ["[all]", "four"]);
}

#[test]
fn extension_messages_and_branch_summaries_are_part_of_the_conversation() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let custom =
        json!({"role":"custom","customType":"lab","content":"inj","display":true,"timestamp":5});
    store.append(message(custom)).unwrap();
    store
        .append(NewEntry::Custom {
            custom_type: "state".into(),
            data: Some(json!({"n":1})),
        })
        .unwrap();
    store
        .append(NewEntry::CustomMessage {
            custom_type: "lab".into(),
            content: Content::Text("two".into()),
            display: false,
            details: None,
        })
        .unwrap();
    for summary in ["", "left"] {
        store
            .append(NewEntry::BranchSummary {
                from_id: Some("root".into()),
                summary: summary.into(),
                usage: None,
                details: None,
                from_hook: None,
            })
            .unwrap();
    }
    let expected = ["one", "first", "two", "second", "(inj)", "(two)", "<left>"];
    assert_eq!(texts(&store), expected);
    let path = store.file().unwrap().to_owned();
    assert_eq!(lines(&path)[5]["type"], "custom_message");
    drop(store);
    assert_eq!(
        texts(&Store::open(&path, Path::new("/")).unwrap().store),
        expected
    );
}

#[test]
fn a_fork_keeps_ids_and_names_its_origin() {
    let home = tempfile::tempdir().unwrap();
    let store = two_turns(home.path());
    let ids: Vec<String> = store
        .entries()
        .map(|entry| entry.id().to_string())
        .collect();
    let (fork, text) = store.fork_before(&ids[2]).unwrap();
    let fork = fork.save().unwrap();
    assert_eq!(text, "two");
    assert_eq!(texts(&fork), ["one", "first"]);
    let written = lines(fork.file().unwrap());
    assert_eq!(
        written[0]["parentSession"],
        store.file().unwrap().to_str().unwrap()
    );
    assert_ne!(fork.id(), store.id());
    assert_eq!(
        (&written[1]["id"], &written[2]["id"]),
        (&ids[0].as_str().into(), &ids[1].as_str().into())
    );

    // Before the first question there is no answer, so nothing is written yet.
    let (empty, text) = store.fork_before(&ids[0]).unwrap();
    let mut empty = empty.save().unwrap();
    assert_eq!((text.as_str(), texts(&empty).len()), ("one", 0));
    let path = empty.file().unwrap().to_owned();
    assert!(!path.exists());
    empty.append(user("anew")).unwrap();
    empty.append(answer("yes")).unwrap();
    assert_eq!(lines(&path).len(), 3, "header and entries are written once");

    for wrong in [&*ids[1], "deadbeef"] {
        let refused = store.fork_before(wrong).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid entry ID for forking");
    }
}

#[test]
fn a_clone_holds_everything_up_to_the_leaf() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let clone = store.clone_to_leaf().unwrap().save().unwrap();
    assert_eq!(texts(&clone), texts(&store));
    assert_eq!(lines(clone.file().unwrap()).len(), 5);
    store.set_leaf(None).unwrap();
    let refused = store.clone_to_leaf().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Cannot clone session: no current entry selected"
    );
}

#[test]
fn labels_are_made_again_in_a_fork_and_do_not_cut_the_conversation() {
    let home = tempfile::tempdir().unwrap();
    let mut store = new_session(home.path());
    let label = |target: &str, label: Option<&str>| NewEntry::Label {
        target_id: target.into(),
        label: label.map(str::to_owned),
    };
    let first = store.append(user("one")).unwrap();
    let gone = store.append(answer("first")).unwrap();
    store.append(label(&first, Some("start"))).unwrap();
    store.append(label(&gone, Some("unsure"))).unwrap();
    store.append(label(&gone, None)).unwrap();
    store.append(user("two")).unwrap();
    store.append(answer("second")).unwrap();
    let later = store.append(user("three")).unwrap();
    assert_eq!(
        (store.label(&first), store.label(&gone)),
        (Some("start"), None)
    );
    let unknown = store.append(label("nope", Some("x"))).unwrap_err();
    assert_eq!(unknown.to_string(), "Entry nope not found");

    let (fork, _) = store.fork_before(&later).unwrap();
    let fork = fork.save().unwrap();
    assert_eq!(texts(&fork), ["one", "first", "two", "second"]);
    assert_eq!(fork.labels().len(), 1);
    assert_eq!(fork.label(&first), Some("start"));
    let path = fork.file().unwrap().to_owned();
    let types: Vec<Value> = lines(&path)
        .iter()
        .map(|line| line["type"].clone())
        .collect();
    assert_eq!(
        types,
        [
            "session", "message", "message", "message", "message", "label"
        ]
    );
    drop(fork);
    let again = Store::open(&path, Path::new("/")).unwrap();
    assert_eq!(again.notices, []);
    assert_eq!(texts(&again.store), ["one", "first", "two", "second"]);
}

#[test]
fn a_copy_takes_all_branches_along() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    store.set_leaf(None).unwrap();
    store.append(user("other root")).unwrap();
    let source = store.file().unwrap().to_owned();
    let options = NewSession {
        cwd: "/elsewhere".into(),
        directory: Some(home.path().join("to")),
        ..NewSession::default()
    };
    let copy = Store::copy_of(&source, options).unwrap().store;
    assert_eq!(copy.entries().count(), 5);
    let written = lines(copy.file().unwrap());
    assert_eq!(written[0]["parentSession"], source.to_str().unwrap());
    assert_eq!(written[0]["cwd"], "/elsewhere");
}

#[test]
fn unknown_entries_and_members_survive_copying() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let odd = r#"{"type":"hologram","id":"b","parentId":"a","timestamp":"t","beam":1.50}"#;
    let text = format!(
        "{}\n{}\n{odd}\n{}\n{}\n",
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","mood":"good"}"#,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"assistant","content":[],"flavour":7}}"#,
        r#"{"type":"message","id":"c","parentId":"b","timestamp":"t","message":{"role":"later","content":"s"}}"#,
        r#"{"type":"message","id":"d","parentId":"c","timestamp":"t","message":{"role":"user","content":"q"}}"#,
    );
    std::fs::write(&path, &text).unwrap();
    let Opened { store, notices } = Store::open(&path, Path::new("/")).unwrap();
    assert_eq!(notices, []);
    let context = store.context();
    assert_eq!((context.messages.len(), context.unreadable.len()), (2, 1));
    let fork = store.clone_to_leaf().unwrap().save().unwrap();
    let copied = std::fs::read_to_string(fork.file().unwrap()).unwrap();
    let tail: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(copied.lines().skip(1).collect::<Vec<_>>(), tail);
}

use pinion_session::Opened;

#[test]
fn a_repeated_block_and_later_headers_are_tolerated() {
    let home = tempfile::tempdir().unwrap();
    let store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    drop(store);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.repeat(2)).unwrap();
    let Opened { store, notices } = Store::open(&path, Path::new("/")).unwrap();
    assert_eq!(notices, []);
    assert_eq!(texts(&store), ["one", "first", "two", "second"]);
    assert_eq!(store.user_messages().len(), 2);
}

#[test]
fn a_context_edit_leaves_out_or_replaces_what_the_model_sees() {
    let home = tempfile::tempdir().unwrap();
    let store = two_turns(home.path());
    let file = store.file().unwrap().to_owned();
    let ids: Vec<String> = store
        .entries()
        .map(|entry| entry.id().to_string())
        .collect();
    drop(store);
    let before = fs::read_to_string(&file).unwrap();
    let edit = |id: &str, parent: &str, target: &str, rest: &str| {
        format!(
            r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","timestamp":"2026-01-01T00:00:00.000Z","targetId":"{target}"{rest}}}"#
        )
    };
    let open = |lines: &[String]| {
        fs::write(&file, format!("{before}{}\n", lines.join("\n"))).unwrap();
        Store::open_read_only(&file, Path::new("/")).unwrap().store
    };
    let seen = |lines: &[String]| texts(&open(lines));
    let hidden = edit("e1", &ids[3], &ids[1], r#","replacement":null"#);
    assert_eq!(
        seen(std::slice::from_ref(&hidden)),
        ["one", "two", "second"]
    );
    let replaced = edit(
        "e2",
        "e1",
        &ids[0],
        r#","replacement":{"content":"another"}"#,
    );
    assert_eq!(
        seen(&[hidden.clone(), replaced.clone()]),
        ["another", "two", "second"]
    );
    let blocks = edit(
        "e3",
        "e2",
        &ids[1],
        r#","replacement":{"content":[{"type":"text","text":"new"}]}"#,
    );
    let store = open(&[hidden.clone(), replaced, blocks]);
    assert_eq!(
        texts(&store),
        ["another", "new", "two", "second"],
        "the last edit counts"
    );
    assert_eq!(
        texts_of(&store.context_at(&ids[3])),
        ["one", "first", "two", "second"],
        "an edit belongs to its branch"
    );
    assert_eq!(store.context().entry_ids.len(), 4);
    // An edit that cannot be parsed leaves its target out.
    for odd in [r#","replacement":{"text":"x"}"#, r#","replacement":7"#, ""] {
        assert_eq!(
            seen(&[edit("e1", &ids[3], &ids[1], odd)]),
            ["one", "two", "second"],
            "{odd}"
        );
    }
}

#[test]
fn a_compaction_brings_its_system_message_and_replaces_those_before() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.jsonl");
    let system = |words: &str| {
        format!(
            r#"{{"role":"system","content":"","sections":{{"preamble":"{words}"}},"timestamp":1}}"#
        )
    };
    let text = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#.to_owned(),
        format!(r#"{{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{}}}"#, system("old")),
        r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"q","timestamp":2}}"#.to_owned(),
        format!(r#"{{"type":"compaction","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","summary":"sum","firstKeptEntryId":"a","tokensBefore":9,"systemMessage":{}}}"#, system("new")),
        String::new(),
    ];
    std::fs::write(&path, text.join("\n")).unwrap();
    let Opened { store, notices } = Store::open(&path, Path::new("/")).unwrap();
    assert_eq!(notices, []);
    let context = store.context();
    let roles: Vec<&str> = context.messages.iter().map(|m| m.role()).collect();
    assert_eq!(roles, ["system", "compactionSummary", "user"]);
    let pinion_message::Message::System(first) = &*context.messages[0] else {
        panic!("{context:?}")
    };
    assert_eq!(first.sections["preamble"], "new");
}
