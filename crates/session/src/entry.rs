//! One entry of the tree.
//!
//! An entry read from a file holds its line; the message in it is parsed on demand. An entry created in this process
//! holds the message, which it shares with the caller.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pinion_message::{Message, Millis, SystemMessage, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::Text;
use crate::new_entry::{self, BaseMembers};
use crate::stored_line::StoredLine;
use crate::{clock, decode, json};

/// The id of an entry: eight hexadecimal digits, or any string of another writer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(Arc<str>);

/// The `type` of an entry, and for messages the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum EntryKind {
    Message(Role),
    ModelChange,
    ThinkingLevelChange,
    Compaction,
    BranchSummary,
    Custom,
    CustomMessage,
    Label,
    SessionInfo,
    /// Leaves another entry out of the conversation, or replaces its content there; see [`crate::Edits`].
    ContextEdit,
    /// A type that this version does not know. The entry stays in the tree.
    Unknown,
    /// An unreadable line of which only the links are known.
    Damaged,
}

/// The role of a stored message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Role {
    User,
    Assistant,
    ToolResult,
    BashExecution,
    Custom,
    System,
    Other,
}

/// One entry of the session tree.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) id: EntryId,
    pub(crate) parent: Option<EntryId>,
    pub(crate) kind: EntryKind,
    pub(crate) body: Body,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// The JSON of the line.
    Line(Bytes),
    /// The position of the JSON in the file.
    Stored(StoredLine),
    /// A message and the time of its append, from which the line can be made.
    Message(Arc<Message>, Millis),
}

/// The members of a compaction entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionEntry {
    /// The text that replaces everything before the first kept entry.
    #[serde(default)]
    pub summary: String,
    /// The id of the first entry that is not summarised.
    #[serde(default)]
    pub first_kept_entry_id: Option<String>,
    /// Size of the context before the compaction, in tokens.
    #[serde(default, deserialize_with = "decode::whole")]
    pub tokens_before: i64,
    /// Data of the hook that made it; otherwise the files read and modified.
    #[serde(default)]
    pub details: Option<Value>,
    /// A hook made it.
    #[serde(default)]
    pub from_hook: Option<bool>,
    /// The system prompt and the tools at the time of the compaction.
    #[serde(default, deserialize_with = "decode::optional_system_message")]
    pub system_message: Option<SystemMessage>,
}

/// The members that every entry has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only their types are checked")]
struct Members<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    parent_id: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Text<'a>,
}

impl Entry {
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Returns the id of the entry before it; `None` for a root.
    pub fn parent_id(&self) -> Option<&EntryId> {
        self.parent.as_ref()
    }

    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Reports whether it is a message with this role.
    pub fn is_message_of(&self, role: Role) -> bool {
        self.kind == EntryKind::Message(role)
    }

    /// Returns the JSON of its line, without the newline; `null` if the file can no longer be read. A damaged line may
    /// not be JSON; see [`Entry::shown`].
    pub fn json(&self) -> Cow<'_, [u8]> {
        match &self.body {
            Body::Line(line) => Cow::Borrowed(line),
            _ => Cow::Owned(self.line().map_or_else(|_| b"null".to_vec(), Vec::from)),
        }
    }

    /// Returns the line as shared bytes. Reads it from the file or makes it from the message if it is not in memory.
    pub(crate) fn line(&self) -> io::Result<Bytes> {
        match &self.body {
            Body::Line(line) => Ok(line.clone()),
            Body::Stored(stored) => stored.read(),
            Body::Message(message, at) => {
                let timestamp = clock::iso(*at);
                let parent = self.parent.as_deref();
                let base = BaseMembers {
                    id: &self.id,
                    parent,
                    at: &timestamp,
                };
                Ok(new_entry::message_line(base, message))
            }
        }
    }

    /// Returns the number of bytes to parse.
    pub(crate) fn line_length(&self) -> usize {
        match &self.body {
            Body::Line(line) => line.len(),
            Body::Stored(stored) => stored.length as usize,
            Body::Message(..) => 0,
        }
    }

    /// Returns the JSON of its line for other programs. `None` if the line is damaged: if it is not a JSON object, or
    /// lacks one of the members that every entry has.
    pub fn shown(&self) -> Option<Box<RawValue>> {
        if self.kind == EntryKind::Damaged {
            return None;
        }
        let line = self.line().ok()?;
        if serde_json::from_slice::<Members<'_>>(&line).is_ok() {
            let text = String::from_utf8(line.into()).ok()?;
            return RawValue::from_string(text).ok();
        }
        // Half a surrogate pair, or a duplicate member.
        let value: Value = json::from_slice(&line)?;
        Members::deserialize(&value).ok()?;
        serde_json::value::to_raw_value(&value).ok()
    }

    /// Returns [`Entry::shown`] as a value; `None` also for a line that is nested too deeply.
    pub fn value(&self) -> Option<Value> {
        json::from_slice(self.shown()?.get().as_bytes())
    }

    /// Returns the time of its append.
    pub fn timestamp(&self) -> Option<Millis> {
        match &self.body {
            Body::Message(_, at) => Some(*at),
            _ => decode::timestamp(&self.json()),
        }
    }

    /// Returns the message of a `message` entry; `None` for other types and for messages that this version cannot read.
    pub fn message(&self) -> Option<Arc<Message>> {
        match (&self.body, self.kind) {
            (Body::Message(message, _), _) => Some(Arc::clone(message)),
            (_, EntryKind::Message(_)) => decode::message(&self.json()).map(Arc::new),
            _ => None,
        }
    }

    /// Returns the usage in an entry that is not a message: a summary, or a type of a later version.
    pub(crate) fn usage(&self) -> Option<Usage> {
        #[derive(Deserialize)]
        struct Used {
            usage: Option<Usage>,
        }
        json::from_slice::<Used>(&self.json())?.usage
    }

    /// Returns the members of a compaction entry; `None` for other types.
    pub fn compaction(&self) -> Option<CompactionEntry> {
        match (&self.body, self.kind) {
            (Body::Line(line), EntryKind::Compaction) => json::from_slice(line),
            _ => None,
        }
    }
}

impl EntryId {
    pub(crate) fn random() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        Self(id[..8].into())
    }

    pub(crate) fn random_long() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EntryId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Deref for EntryId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for EntryId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl PartialEq<str> for EntryId {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for EntryId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Serialize for EntryId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl EntryKind {
    /// Returns the kind for a `type`, and for a role if it is a message.
    pub(crate) fn of(r#type: &str, role: Option<&str>) -> Self {
        match r#type {
            "message" => Self::Message(role.map_or(Role::Other, Role::of)),
            "model_change" => Self::ModelChange,
            "thinking_level_change" => Self::ThinkingLevelChange,
            "compaction" => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "custom" => Self::Custom,
            "custom_message" => Self::CustomMessage,
            "label" => Self::Label,
            "session_info" => Self::SessionInfo,
            "context_edit" => Self::ContextEdit,
            _ => Self::Unknown,
        }
    }
}

impl Role {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            "bashExecution" => Self::BashExecution,
            "custom" => Self::Custom,
            "system" => Self::System,
            _ => Self::Other,
        }
    }
}
