//! The conversation that a model sees at one entry of the tree.

use std::sync::Arc;

use pinion_message::{CompactionSummaryMessage, Message, SystemMessage, ThinkingLevel};
use serde::Deserialize;

use crate::edits::Edits;
use crate::entry::{Body, Entry, EntryId, EntryKind, Role};
use crate::stored_line::{LineSource, for_each_line};
use crate::{decode, json};

/// The conversation and the choices on the path from the root to a leaf.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The messages, with compactions and edits applied.
    pub messages: Vec<Arc<Message>>,
    /// The id of the entry of each message.
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

/// Model and thinking level at a leaf. Reading them does not read the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChoices {
    /// The last thinking level on the path; `None` if there was none.
    pub thinking_level: Option<ThinkingLevel>,
    /// Provider and model id of the last model change or answer on the path.
    pub model: Option<(String, String)>,
}

impl SessionChoices {
    pub(crate) fn of(path: &[&Entry]) -> Self {
        Self {
            thinking_level: path.iter().rev().find_map(|entry| level(entry)),
            model: path.iter().rev().find_map(|entry| model(entry)),
        }
    }
}

impl Context {
    /// Reads a path from root to leaf.
    pub(crate) fn of(path: &[&Entry]) -> Self {
        let SessionChoices {
            thinking_level,
            model,
        } = SessionChoices::of(path);
        let mut context = Self {
            thinking_level,
            model,
            ..Self::default()
        };
        let edits = Edits::of(path);
        let compacted = path
            .iter()
            .rposition(|entry| entry.kind == EntryKind::Compaction);
        let compaction = compacted.and_then(|at| Some((at, path[at].compaction()?)));
        let Some((at, compaction)) = compaction else {
            context.extend(path, &edits);
            return context;
        };
        let has_system_message = compaction.system_message.is_some();
        if let Some(message) = compaction.system_message {
            let timestamp = path[at].timestamp().unwrap_or(message.timestamp);
            let message = SystemMessage {
                timestamp,
                ..message
            };
            context.push(path[at], Arc::new(Message::System(message)), &edits);
        }
        let summary = Message::CompactionSummary(CompactionSummaryMessage {
            summary: compaction.summary,
            tokens_before: compaction.tokens_before.max(0) as u64,
            timestamp: path[at].timestamp().unwrap_or(0),
        });
        context.push(path[at], Arc::new(summary), &edits);
        let first_kept = compaction.first_kept_entry_id.as_deref();
        let kept = path[..at]
            .iter()
            .position(|entry| Some(&*entry.id) == first_kept);
        let kept = path[kept.unwrap_or(at)..at].iter().copied();
        // The system message of the compaction replaces those before it.
        let is_replaced = |entry: &&Entry| has_system_message && entry.is_message_of(Role::System);
        let kept: Vec<&Entry> = kept.filter(|entry| !is_replaced(entry)).collect();
        context.extend(&kept, &edits);
        context.extend(&path[at + 1..], &edits);
        context
    }

    fn extend(&mut self, entries: &[&Entry], edits: &Edits) {
        for (entry, part) in entries.iter().zip(parts(entries)) {
            match part {
                ContextPart::Message(message) => self.push(entry, message, edits),
                ContextPart::Unreadable => self.unreadable.push(entry.id.clone()),
                ContextPart::Nothing => {}
            }
        }
    }

    fn push(&mut self, entry: &Entry, message: Arc<Message>, edits: &Edits) {
        if let Some(message) = edits.apply(entry, message) {
            self.messages.push(message);
            self.entry_ids.push(entry.id.clone());
        }
    }
}

impl Entry {
    /// Returns the message that this entry adds to the conversation, before edits; see [`Edits::message_of`]. `None` if
    /// it adds none or cannot be read.
    pub fn context_message(&self) -> Option<Arc<Message>> {
        match part(self) {
            ContextPart::Message(message) => Some(message),
            ContextPart::Unreadable | ContextPart::Nothing => None,
        }
    }
}

/// The contribution of one entry to a conversation.
enum ContextPart {
    Message(Arc<Message>),
    Unreadable,
    Nothing,
}

impl From<Message> for ContextPart {
    fn from(message: Message) -> Self {
        Self::Message(Arc::new(message))
    }
}

/// Reads the entries of a path, on several threads if they are large.
fn parts(entries: &[&Entry]) -> Vec<ContextPart> {
    /// Bytes of lines per thread.
    const PARALLEL_BYTES: usize = 1 << 20;
    let bytes: usize = entries.iter().map(|entry| entry.line_length()).sum();
    if bytes < PARALLEL_BYTES {
        return parts_of(entries);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(4).min(bytes / PARALLEL_BYTES + 1);
    let share = entries.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let mut shares = entries.chunks(share);
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| {
                let thread = std::thread::Builder::new();
                (share, thread.spawn_scoped(scope, move || parts_of(share)))
            })
            .collect();
        let mut parts = parts_of(own);
        for (share, thread) in others {
            let done = thread.ok().and_then(|thread| thread.join().ok());
            parts.extend(done.unwrap_or_else(|| parts_of(share)));
        }
        parts
    })
}

fn parts_of(entries: &[&Entry]) -> Vec<ContextPart> {
    let mut parts = Vec::with_capacity(entries.len());
    for_each_line(entries.iter().copied(), |entry, source| {
        parts.push(match source {
            LineSource::InMemory => part(entry),
            LineSource::Read(line) => {
                decode::message(line).map_or(ContextPart::Unreadable, ContextPart::from)
            }
            LineSource::Lost => ContextPart::Unreadable,
        });
    });
    parts
}

fn part(entry: &Entry) -> ContextPart {
    let message = match (&entry.body, entry.kind) {
        (_, EntryKind::Message(_)) => {
            return entry
                .message()
                .map_or(ContextPart::Unreadable, ContextPart::Message);
        }
        (Body::Line(line), EntryKind::CustomMessage) => decode::custom_message(line),
        (Body::Line(line), EntryKind::BranchSummary) => {
            return decode::branch_summary(line).map_or(ContextPart::Nothing, ContextPart::from);
        }
        (_, EntryKind::Damaged) => None,
        _ => return ContextPart::Nothing,
    };
    message.map_or(ContextPart::Unreadable, ContextPart::from)
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
        (Body::Line(_) | Body::Stored(_), EntryKind::Message(Role::Assistant)) => {
            let AnswerLine { message } = json::from_slice(&entry.json())?;
            Some((message.provider, message.model))
        }
        (Body::Message(message, _), _) => {
            let answer = message.as_assistant()?;
            Some((answer.provider.clone(), answer.model.clone()))
        }
        _ => None,
    }
}
