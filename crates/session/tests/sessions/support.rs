//! Messages and sessions that the tests share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test support; not every test uses all of it"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinion_message::Message;
use pinion_session::{Context, NewEntry, NewSession, Store};
use serde_json::{Value, json};

pub fn user(text: &str) -> NewEntry {
    message(json!({"role":"user","content":[{"type":"text","text":text}],"timestamp":1}))
}

pub fn answer(text: &str) -> NewEntry {
    message(
        json!({"role":"assistant","content":[{"type":"text","text":text}],"api":"a","provider":"mock","model":"m1",
        "usage":{"input":80,"output":10,"cacheRead":20,"cacheWrite":0,"totalTokens":110,
        "cost":{"input":0.5,"output":0.25,"cacheRead":0.125,"cacheWrite":0.0,"total":0.875}},"stopReason":"stop","timestamp":2}),
    )
}

pub fn message(value: Value) -> NewEntry {
    NewEntry::Message(Arc::new(parse(value)))
}

pub fn parse(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

pub fn new_session(directory: &Path) -> Store {
    Store::create(NewSession {
        cwd: PathBuf::from("/proj/place"),
        directory: Some(directory.to_owned()),
        ..NewSession::default()
    })
    .unwrap()
}

/// A stored session: two questions, two answers.
pub fn two_turns(directory: &Path) -> Store {
    let mut store = new_session(directory);
    for entry in [user("one"), answer("first"), user("two"), answer("second")] {
        store.append(entry).unwrap();
    }
    store
}

pub fn texts(store: &Store) -> Vec<String> {
    texts_of(&store.context())
}

pub fn texts_of(context: &Context) -> Vec<String> {
    context
        .messages
        .iter()
        .map(|message| text_of(message))
        .collect()
}

pub fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.joined_text(""),
        Message::Assistant(answer) => answer.joined_text(""),
        Message::CompactionSummary(summary) => format!("[{}]", summary.summary),
        Message::BranchSummary(summary) => format!("<{}>", summary.summary),
        Message::Custom(custom) => format!("({})", custom.content.joined_text("")),
        other => other.role().to_owned(),
    }
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "a session file ends with a newline");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
