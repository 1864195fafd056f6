//! The conversation a model would see from one entry of the tree.

use std::sync::Arc;

use pinion_message::{CompactionSummaryMessage, Message, ThinkingLevel};
use serde::Deserialize;

use crate::decode;
use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::json;

/// What the path from the root to a leaf adds up to.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The messages, compaction applied.
    pub messages: Vec<Arc<Message>>,
    /// For each message, the entry it comes from.
    pub entry_ids: Vec<EntryId>,
    /// The last thinking level on the path; `None` if there was none.
    pub thinking_level: Option<ThinkingLevel>,
    /// Provider and model id of the last model change or answer on the path.
    pub model: Option<(String, String)>,
    /// Messages on the path that this version cannot read; they are not in `messages`.
    pub unreadable: Vec<EntryId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelLine {
    provider: String,
    model_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LevelLine {
    thinking_level: String,
}

#[derive(Deserialize)]
struct AnswerLine {
    message: AnswerModel,
}

#[derive(Deserialize)]
struct AnswerModel {
    provider: String,
    model: String,
}

impl Context {
    /// Adds up a path from root to leaf.
    pub(crate) fn of(path: &[&Entry]) -> Self {
        let mut context = Self {
            thinking_level: path.iter().rev().find_map(|entry| level(entry)),
            model: path.iter().rev().find_map(|entry| model(entry)),
            ..Self::default()
        };
        let compacted = path
            .iter()
            .rposition(|entry| entry.kind == EntryKind::Compaction);
        let compaction = compacted.and_then(|at| Some((at, path[at].compaction()?)));
        let Some((at, compaction)) = compaction else {
            context.extend(path);
            return context;
        };
        let summary = Message::CompactionSummary(CompactionSummaryMessage {
            summary: compaction.summary,
            tokens_before: compaction.tokens_before.max(0) as u64,
            timestamp: path[at].timestamp().unwrap_or(0),
        });
        context.push(path[at], Arc::new(summary));
        let first_kept = compaction.first_kept_entry_id.as_deref();
        let kept = path[..at]
            .iter()
            .position(|entry| Some(&*entry.id) == first_kept);
        context.extend(&path[kept.unwrap_or(at)..at]);
        context.extend(&path[at + 1..]);
        context
    }

    fn extend(&mut self, entries: &[&Entry]) {
        for entry in entries {
            match entry.context_message() {
                Some(message) => self.push(entry, message),
                None if entry.should_have_message() => self.unreadable.push(entry.id.clone()),
                None => {}
            }
        }
    }

    fn push(&mut self, entry: &Entry, message: Arc<Message>) {
        self.messages.push(message);
        self.entry_ids.push(entry.id.clone());
    }
}

impl Entry {
    /// The message this entry puts into the conversation, if it does and can be read.
    pub fn context_message(&self) -> Option<Arc<Message>> {
        match (&self.body, self.kind) {
            (_, EntryKind::Message(_)) => self.message(),
            (Body::Line(line), EntryKind::CustomMessage) => {
                decode::custom_message(line).map(Arc::new)
            }
            (Body::Line(line), EntryKind::BranchSummary) => {
                decode::branch_summary(line).map(Arc::new)
            }
            _ => None,
        }
    }

    fn should_have_message(&self) -> bool {
        matches!(
            self.kind,
            EntryKind::Message(_) | EntryKind::CustomMessage | EntryKind::Damaged
        )
    }
}

fn level(entry: &Entry) -> Option<ThinkingLevel> {
    match (&entry.body, entry.kind) {
        (Body::Line(line), EntryKind::ThinkingLevelChange) => json::from_slice::<LevelLine>(line)?
            .thinking_level
            .parse()
            .ok(),
        _ => None,
    }
}

fn model(entry: &Entry) -> Option<(String, String)> {
    match (&entry.body, entry.kind) {
        (Body::Line(line), EntryKind::ModelChange) => {
            let line: ModelLine = json::from_slice(line)?;
            Some((line.provider, line.model_id))
        }
        (Body::Line(line), EntryKind::Message(Role::Assistant)) => {
            let AnswerLine { message } = json::from_slice(line)?;
            Some((message.provider, message.model))
        }
        (Body::Message(message, _), _) => {
            let answer = message.as_assistant()?;
            Some((answer.provider.clone(), answer.model.clone()))
        }
        _ => None,
    }
}
