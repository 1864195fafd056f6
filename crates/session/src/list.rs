//! Lists sessions for a session browser without opening them for writing.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use pinion_message::{Message, Millis};
use serde::{Deserialize, Serialize};

use crate::decode;
use crate::entry::{Entry, EntryKind, Role};
use crate::locate::{header_of, session_files};
use crate::scan::{RecordKind, scan};
use crate::session_file::SIZE_LIMIT;
use crate::tree::Tree;
use crate::{Header, clock};

/// The description of one session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub path: PathBuf,
    pub id: String,
    /// The working directory of the session; may be empty.
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file of the session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// The time of its creation.
    pub created: Millis,
    /// The time of the last message of the user or a model.
    pub modified: Millis,
    /// The number of messages on all branches, without those that hold the system prompt.
    pub message_count: usize,
    /// The text of the user's first message, or `(no messages)`.
    pub first_message: String,
}

#[derive(Deserialize)]
struct Times {
    #[serde(default, deserialize_with = "decode::whole")]
    timestamp: Millis,
    #[serde(default)]
    message: Option<MessageTime>,
}

#[derive(Deserialize)]
struct MessageTime {
    #[serde(default, deserialize_with = "decode::whole")]
    timestamp: Millis,
}

/// Lists the sessions in `directory`, last used first. Files that are not sessions are ignored.
pub fn list(directory: &Path) -> Vec<SessionInfo> {
    let mut sessions: Vec<SessionInfo> = session_files(directory)
        .filter_map(|path| describe(&path))
        .collect();
    sessions.sort_by(|a, b| {
        b.modified
            .cmp(&a.modified)
            .then_with(|| a.path.cmp(&b.path))
    });
    sessions
}

/// Lists the sessions in all directories below `root`, last used first.
pub fn list_all(root: &Path) -> Vec<SessionInfo> {
    let directories = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut sessions: Vec<SessionInfo> =
        directories.flat_map(|entry| list(&entry.path())).collect();
    sessions.sort_by_key(|info| std::cmp::Reverse(info.modified));
    sessions
}

/// Returns the text of all messages of user and models in a session, for searching.
pub fn all_text(path: &Path) -> io::Result<String> {
    let (_, tree) = read(path)?;
    let texts = tree
        .entries()
        .iter()
        .filter_map(spoken_text)
        .filter(|text| !text.is_empty());
    Ok(texts.collect::<Vec<_>>().join(" "))
}

pub(crate) fn describe(path: &Path) -> Option<SessionInfo> {
    let (header, tree) = match read(path) {
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => return describe_by_header(path),
        Err(_) => return None,
    };
    let header = header?;
    let entries = tree.entries();
    let is_message = |entry: &&Entry| match entry.kind {
        EntryKind::Message(role) => role != Role::System,
        _ => false,
    };
    let first = entries
        .iter()
        .filter(|entry| entry.is_message_of(Role::User));
    let created = clock::millis(&header.timestamp);
    let spoken = entries.iter().filter_map(spoken_at).max();
    Some(SessionInfo {
        path: path.to_owned(),
        id: header.id,
        cwd: header.cwd,
        name: tree.name().map(str::to_owned),
        parent_session_path: header.parent_session,
        created: created.unwrap_or_else(|| modified_on_disk(path)),
        modified: spoken.or(created).unwrap_or_else(|| modified_on_disk(path)),
        message_count: entries.iter().filter(is_message).count(),
        first_message: first
            .filter_map(spoken_text)
            .find(|text| !text.is_empty())
            .unwrap_or_else(|| "(no messages)".to_owned()),
    })
}

/// Describes a session that is too large to read for a list.
fn describe_by_header(path: &Path) -> Option<SessionInfo> {
    let header = header_of(path)?;
    let modified = modified_on_disk(path);
    Some(SessionInfo {
        path: path.to_owned(),
        created: clock::millis(&header.timestamp).unwrap_or(modified),
        id: header.id,
        cwd: header.cwd,
        name: None,
        parent_session_path: header.parent_session,
        modified,
        message_count: 0,
        first_message: "(too large to read)".to_owned(),
    })
}

fn read(path: &Path) -> io::Result<(Option<Header>, Tree)> {
    let mut lines = scan(&Bytes::from(pinion_files::read(path, SIZE_LIMIT)?));
    let header = lines
        .records
        .first()
        .filter(|record| record.kind == RecordKind::Header);
    let header = header.and_then(|record| Header::parse(&record.line));
    // Version 1 entries have no ids; a description does not need them.
    for record in &mut lines.records {
        record.id.get_or_insert_with(|| "".into());
    }
    let mut tree = Tree::with_capacity(lines.records.len());
    lines
        .records
        .into_iter()
        .filter_map(|record| record.into_entry())
        .for_each(|e| tree.push(e));
    Ok((header, tree))
}

fn spoken_text(entry: &Entry) -> Option<String> {
    if !matches!(entry.kind, EntryKind::Message(Role::User | Role::Assistant)) {
        return None;
    }
    match &*entry.message()? {
        Message::User(user) => Some(user.content.joined_text(" ")),
        Message::Assistant(answer) => Some(answer.joined_text(" ")),
        _ => None,
    }
}

fn spoken_at(entry: &Entry) -> Option<Millis> {
    if !matches!(entry.kind, EntryKind::Message(Role::User | Role::Assistant)) {
        return None;
    }
    let times: Times = serde_json::from_slice(&entry.json()).ok()?;
    let message = times.message.map_or(0, |message| message.timestamp);
    [message, times.timestamp]
        .into_iter()
        .find(|&time| time > 0)
}

fn modified_on_disk(path: &Path) -> Millis {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as Millis)
}
