//! Entries to append, and the form in which each kind is written.
//!
//! Member order is part of the format: `type`, `id`, `parentId`, `timestamp`, then the rest; only
//! `custom` and `custom_message` put their own members before the id.

use std::sync::Arc;

use bytes::Bytes;
use pinion_message::{Content, Message, Millis, SystemMessage, ThinkingLevel, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::{SessionError, clock, json};

/// An entry to append. The store adds id, parent and time.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum NewEntry {
    /// A message of the conversation. A custom message becomes a `custom_message` entry.
    Message(Arc<Message>),
    /// Selects the model of the following messages.
    ModelChange { provider: String, model_id: String },
    /// Selects the thinking level of the following messages.
    ThinkingLevelChange(ThinkingLevel),
    /// Replaces everything before `first_kept_entry_id` by the summary.
    Compaction {
        summary: String,
        first_kept_entry_id: String,
        tokens_before: u64,
        /// The usage of the requests for the summary.
        usage: Option<Usage>,
        details: Option<Value>,
        /// A hook made it.
        from_hook: Option<bool>,
        /// The system prompt and the tools at this time.
        system_message: Option<Box<SystemMessage>>,
    },
    /// Leaves another entry out of the conversation, or replaces its content there; the entry stays in the file.
    ContextEdit {
        target_id: String,
        /// `{content}`; `None` leaves the entry out.
        replacement: Option<Value>,
    },
    /// The summary of an abandoned branch.
    BranchSummary {
        /// The entry that was left, or from which the conversation continues; `None` for the root.
        from_id: Option<String>,
        summary: String,
        /// The usage of the requests for the summary.
        usage: Option<Usage>,
        details: Option<Value>,
        from_hook: Option<bool>,
    },
    /// Data of an extension; the model does not see it.
    Custom {
        custom_type: String,
        data: Option<Value>,
    },
    /// A message of an extension in the conversation.
    CustomMessage {
        custom_type: String,
        content: Content,
        display: bool,
        details: Option<Value>,
    },
    /// Sets the label of an entry; `None` removes it.
    Label {
        target_id: String,
        label: Option<String>,
    },
    /// Sets the name of the session.
    SessionInfo { name: String },
}

/// The members that every entry has.
#[derive(Clone, Copy)]
pub(crate) struct BaseMembers<'a> {
    pub id: &'a str,
    pub parent: Option<&'a str>,
    pub at: &'a str,
}

/// `type`, `id`, `parentId`, `timestamp`, then the members of `rest`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BaseFirst<'a, T> {
    r#type: &'static str,
    id: &'a str,
    parent_id: Option<&'a str>,
    timestamp: &'a str,
    #[serde(flatten)]
    rest: T,
}

/// `type`, the members of `rest`, then `id`, `parentId`, `timestamp`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BaseLast<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    rest: T,
    id: &'a str,
    parent_id: Option<&'a str>,
    timestamp: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageRecord<'a> {
    r#type: &'static str,
    id: &'a str,
    parent_id: Option<&'a str>,
    timestamp: &'a str,
    message: &'a Message,
}

/// The members of all other entries, in the order in which they are written.
#[derive(Serialize)]
#[serde(untagged)]
enum Rest<'a> {
    #[serde(rename_all = "camelCase")]
    ModelChange {
        provider: &'a str,
        model_id: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    ThinkingLevelChange {
        thinking_level: ThinkingLevel,
    },
    #[serde(rename_all = "camelCase")]
    Compaction {
        summary: &'a str,
        first_kept_entry_id: &'a str,
        tokens_before: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        system_message: Option<WrittenSystemMessage<'a>>,
    },
    #[serde(rename_all = "camelCase")]
    ContextEdit {
        target_id: &'a str,
        replacement: Option<&'a Value>,
    },
    #[serde(rename_all = "camelCase")]
    BranchSummary {
        from_id: Option<&'a str>,
        summary: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    },
    #[serde(rename_all = "camelCase")]
    Custom {
        custom_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    },
    #[serde(rename_all = "camelCase")]
    CustomMessage {
        custom_type: &'a str,
        content: &'a Content,
        display: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
    },
    #[serde(rename_all = "camelCase")]
    Label {
        target_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'a str>,
    },
    SessionInfo {
        name: &'a str,
    },
}

/// A system message as a member of another entry.
#[derive(Serialize)]
struct WrittenSystemMessage<'a> {
    role: &'static str,
    #[serde(flatten)]
    message: &'a SystemMessage,
}

/// Prints the line of a message entry.
pub(crate) fn message_line(base: BaseMembers<'_>, message: &Message) -> Bytes {
    json::line(&MessageRecord {
        r#type: "message",
        id: base.id,
        parent_id: base.parent,
        timestamp: base.at,
        message,
    })
}

impl NewEntry {
    /// Makes the entry with this id and parent.
    pub(crate) fn into_entry(
        self,
        id: EntryId,
        parent: Option<EntryId>,
        at: Millis,
    ) -> Result<Entry, SessionError> {
        let Self::Message(message) = self else {
            let iso = clock::iso(at);
            let base = BaseMembers {
                id: &id,
                parent: parent.as_deref(),
                at: &iso,
            };
            let (kind, line) = self.line(base);
            return Ok(Entry {
                id,
                parent,
                kind,
                body: Body::Line(line),
            });
        };
        let refuse = |entry| {
            Err(SessionError::NotStorable {
                role: message.role(),
                entry,
            })
        };
        let role = match &*message {
            Message::User(_) => Role::User,
            Message::Assistant(_) => Role::Assistant,
            Message::ToolResult(_) => Role::ToolResult,
            Message::BashExecution(_) => Role::BashExecution,
            Message::System(_) => Role::System,
            Message::Custom(custom) => {
                let custom = Self::CustomMessage {
                    custom_type: custom.custom_type.clone(),
                    content: custom.content.clone(),
                    display: custom.display,
                    details: custom.details.clone(),
                };
                return custom.into_entry(id, parent, at);
            }
            Message::CompactionSummary(_) => return refuse("compaction"),
            Message::BranchSummary(_) => return refuse("branch_summary"),
        };
        Ok(Entry {
            id,
            parent,
            kind: EntryKind::Message(role),
            body: Body::Message(message, at),
        })
    }

    fn line(&self, base: BaseMembers<'_>) -> (EntryKind, Bytes) {
        let BaseMembers {
            id,
            parent: parent_id,
            at: timestamp,
        } = base;
        let first = |kind, r#type, rest| {
            (
                kind,
                json::line(&BaseFirst {
                    r#type,
                    id,
                    parent_id,
                    timestamp,
                    rest,
                }),
            )
        };
        let last = |kind, r#type, rest| {
            (
                kind,
                json::line(&BaseLast {
                    r#type,
                    rest,
                    id,
                    parent_id,
                    timestamp,
                }),
            )
        };
        match self {
            Self::Message(message) => {
                (EntryKind::Message(Role::Other), message_line(base, message))
            }
            Self::ModelChange { provider, model_id } => first(
                EntryKind::ModelChange,
                "model_change",
                Rest::ModelChange { provider, model_id },
            ),
            Self::ThinkingLevelChange(level) => first(
                EntryKind::ThinkingLevelChange,
                "thinking_level_change",
                Rest::ThinkingLevelChange {
                    thinking_level: *level,
                },
            ),
            Self::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                usage,
                details,
                from_hook,
                system_message,
            } => {
                let rest = Rest::Compaction {
                    summary,
                    first_kept_entry_id,
                    tokens_before: *tokens_before,
                    usage: *usage,
                    details: details.as_ref(),
                    from_hook: *from_hook,
                    system_message: system_message
                        .as_deref()
                        .map(|message| WrittenSystemMessage {
                            role: "system",
                            message,
                        }),
                };
                first(EntryKind::Compaction, "compaction", rest)
            }
            Self::ContextEdit {
                target_id,
                replacement,
            } => {
                let rest = Rest::ContextEdit {
                    target_id,
                    replacement: replacement.as_ref(),
                };
                first(EntryKind::ContextEdit, "context_edit", rest)
            }
            Self::BranchSummary {
                from_id,
                summary,
                usage,
                details,
                from_hook,
            } => {
                let rest = Rest::BranchSummary {
                    from_id: from_id.as_deref(),
                    summary,
                    usage: *usage,
                    details: details.as_ref(),
                    from_hook: *from_hook,
                };
                first(EntryKind::BranchSummary, "branch_summary", rest)
            }
            Self::Custom { custom_type, data } => last(
                EntryKind::Custom,
                "custom",
                Rest::Custom {
                    custom_type,
                    data: data.as_ref(),
                },
            ),
            Self::CustomMessage {
                custom_type,
                content,
                display,
                details,
            } => {
                let rest = Rest::CustomMessage {
                    custom_type,
                    content,
                    display: *display,
                    details: details.as_ref(),
                };
                last(EntryKind::CustomMessage, "custom_message", rest)
            }
            Self::Label { target_id, label } => first(
                EntryKind::Label,
                "label",
                Rest::Label {
                    target_id,
                    label: label.as_deref(),
                },
            ),
            Self::SessionInfo { name } => first(
                EntryKind::SessionInfo,
                "session_info",
                Rest::SessionInfo { name },
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(entry: NewEntry) -> String {
        let entry = entry
            .into_entry("0000000b".into(), Some("0000000a".into()), 0)
            .unwrap();
        String::from_utf8(entry.json().into_owned()).unwrap()
    }

    #[test]
    fn every_kind_is_written_with_pis_member_order() {
        let base =
            r#""id":"0000000b","parentId":"0000000a","timestamp":"1970-01-01T00:00:00.000Z""#;
        let cases = [
            (
                NewEntry::ModelChange {
                    provider: "p".into(),
                    model_id: "m".into(),
                },
                format!(r#"{{"type":"model_change",{base},"provider":"p","modelId":"m"}}"#),
            ),
            (
                NewEntry::ThinkingLevelChange(ThinkingLevel::High),
                format!(r#"{{"type":"thinking_level_change",{base},"thinkingLevel":"high"}}"#),
            ),
            (
                NewEntry::Compaction {
                    summary: "s".into(),
                    first_kept_entry_id: "x".into(),
                    tokens_before: 7,
                    usage: None,
                    details: Some(json!({"readFiles":[],"modifiedFiles":[]})),
                    from_hook: Some(false),
                    system_message: None,
                },
                format!(
                    r#"{{"type":"compaction",{base},"summary":"s","firstKeptEntryId":"x","tokensBefore":7,"details":{{"readFiles":[],"modifiedFiles":[]}},"fromHook":false}}"#
                ),
            ),
            (
                NewEntry::Compaction {
                    summary: "s".into(),
                    first_kept_entry_id: "x".into(),
                    tokens_before: 7,
                    usage: Some(Usage {
                        input: 3,
                        total_tokens: 3,
                        ..Usage::default()
                    }),
                    details: Some(json!({})),
                    from_hook: Some(false),
                    system_message: Some(Box::new(SystemMessage::of(
                        Default::default(),
                        Vec::new(),
                        4,
                    ))),
                },
                format!(
                    r#"{{"type":"compaction",{base},"summary":"s","firstKeptEntryId":"x","tokensBefore":7,"details":{{}},"usage":{{"input":3,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"fromHook":false,"systemMessage":{{"role":"system","content":"","sections":{{}},"timestamp":4}}}}"#
                ),
            ),
            (
                NewEntry::ContextEdit {
                    target_id: "0000000a".into(),
                    replacement: None,
                },
                format!(
                    r#"{{"type":"context_edit",{base},"targetId":"0000000a","replacement":null}}"#
                ),
            ),
            (
                NewEntry::BranchSummary {
                    from_id: Some("root".into()),
                    summary: "s".into(),
                    usage: None,
                    details: None,
                    from_hook: None,
                },
                format!(r#"{{"type":"branch_summary",{base},"fromId":"root","summary":"s"}}"#),
            ),
            (
                NewEntry::Custom {
                    custom_type: "c".into(),
                    data: Some(json!([1])),
                },
                format!(r#"{{"type":"custom","customType":"c","data":[1],{base}}}"#),
            ),
            (
                NewEntry::CustomMessage {
                    custom_type: "lab".into(),
                    content: Content::Text("t".into()),
                    display: true,
                    details: Some(json!({"n":1})),
                },
                format!(
                    r#"{{"type":"custom_message","customType":"lab","content":"t","display":true,"details":{{"n":1}},{base}}}"#
                ),
            ),
            (
                NewEntry::Label {
                    target_id: "t".into(),
                    label: None,
                },
                format!(r#"{{"type":"label",{base},"targetId":"t"}}"#),
            ),
            (
                NewEntry::ContextEdit {
                    target_id: "t".into(),
                    replacement: None,
                },
                format!(r#"{{"type":"context_edit",{base},"targetId":"t","replacement":null}}"#),
            ),
            (
                NewEntry::ContextEdit {
                    target_id: "t".into(),
                    replacement: Some(json!({"content": "x"})),
                },
                format!(
                    r#"{{"type":"context_edit",{base},"targetId":"t","replacement":{{"content":"x"}}}}"#
                ),
            ),
            (
                NewEntry::SessionInfo { name: "n".into() },
                format!(r#"{{"type":"session_info",{base},"name":"n"}}"#),
            ),
        ];
        for (entry, expected) in cases {
            assert_eq!(written(entry), expected);
        }
    }

    #[test]
    fn messages_are_wrapped_and_summaries_refused() {
        let message: Message =
            serde_json::from_value(json!({"role":"user","content":"hi","timestamp":5})).unwrap();
        assert_eq!(
            written(NewEntry::Message(Arc::new(message))),
            r#"{"type":"message","id":"0000000b","parentId":"0000000a","timestamp":"1970-01-01T00:00:00.000Z","message":{"role":"user","content":"hi","timestamp":5}}"#
        );
        let summary: Message = serde_json::from_value(
            json!({"role":"compactionSummary","summary":"s","tokensBefore":1,"timestamp":5}),
        )
        .unwrap();
        let refused = NewEntry::Message(Arc::new(summary)).into_entry("x".into(), None, 0);
        assert_eq!(refused.unwrap_err().code(), "not_storable");
    }
}
