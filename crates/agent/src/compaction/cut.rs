//! Finds the entry at which a compaction cuts a conversation: everything before it is summarised.

use std::sync::Arc;

use pinion_message::Message;
use pinion_session::{Edits, Entry, EntryKind, Role};

use super::CompactionFailure;
use super::files::TouchedFiles;
use crate::estimate::message_tokens;
use crate::system_message::is_system;

/// The messages to summarise and the first entry to keep.
#[derive(Debug)]
pub(super) struct CutPlan {
    /// Whole turns to summarise.
    pub history: Vec<Arc<Message>>,
    /// The beginning of the turn that the cut divides; empty if the cut is between two turns.
    pub turn_prefix: Vec<Arc<Message>>,
    /// The id of the first entry to keep.
    pub first_kept: String,
    /// The summary that replaced everything before the history.
    pub previous_summary: Option<String>,
    /// Files read and changed in the part to summarise.
    pub files: TouchedFiles,
}

impl CutPlan {
    /// Reports whether there is nothing to summarise.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty() && self.turn_prefix.is_empty()
    }

    /// Reports whether the cut is inside a turn.
    pub fn is_split(&self) -> bool {
        !self.turn_prefix.is_empty()
    }
}

/// Plans a compaction of `path`, keeping about `keep_recent` tokens.
pub(super) fn plan(path: &[&Entry], keep_recent: u64) -> Result<CutPlan, CompactionFailure> {
    let last = path
        .last()
        .ok_or(CompactionFailure::Summary("the session is empty".into()))?;
    if last.kind() == EntryKind::Compaction {
        return Err(CompactionFailure::AlreadyCompacted);
    }
    let previous = path
        .iter()
        .rposition(|entry| entry.kind() == EntryKind::Compaction);
    let previous_entry = previous.and_then(|at| path[at].compaction());
    let start = previous.map_or(0, |at| {
        let kept = previous_entry
            .as_ref()
            .and_then(|entry| entry.first_kept_entry_id.as_deref());
        kept.and_then(|id| path.iter().position(|entry| entry.id() == id))
            .unwrap_or(at + 1)
    });

    let edits = Edits::of(path);
    let cut = find_cut(path, start, keep_recent, &edits);
    let turn_start = match path[cut].kind() {
        EntryKind::Message(Role::User) => None,
        _ => (start..=cut).rev().find(|&at| starts_turn(path[at])),
    };
    let turn_start = turn_start.filter(|&at| at < cut);
    let history = messages(&path[start..turn_start.unwrap_or(cut)], &edits);
    let turn_prefix = turn_start.map_or_else(Vec::new, |at| messages(&path[at..cut], &edits));

    let mut files = TouchedFiles::default();
    if let Some(entry) = &previous_entry
        && entry.from_hook != Some(true)
    {
        files.add_details(entry.details.as_ref());
    }
    files.add_messages(&history);
    files.add_messages(&turn_prefix);
    Ok(CutPlan {
        history,
        turn_prefix,
        first_kept: path[cut].id().to_string(),
        previous_summary: previous_entry.map(|entry| entry.summary),
        files,
    })
}

/// Returns the index of the first entry to keep.
fn find_cut(path: &[&Entry], start: usize, keep_recent: u64, edits: &Edits) -> usize {
    let valid = |at: usize| is_cut_point(path[at]);
    let Some(first_valid) = (start..path.len()).find(|&at| valid(at)) else {
        return start.min(path.len() - 1);
    };
    let mut cut = first_valid;
    let mut tokens = 0;
    for at in (start..path.len()).rev() {
        let EntryKind::Message(_) = path[at].kind() else {
            continue;
        };
        tokens += edits
            .message_of(path[at])
            .map_or(0, |message| message_tokens(&message));
        if tokens >= keep_recent {
            cut = (at..path.len())
                .find(|&at| valid(at))
                .unwrap_or(first_valid);
            break;
        }
    }
    while cut > start && !stops_backing_up(path[cut - 1]) {
        cut -= 1;
    }
    cut
}

fn is_cut_point(entry: &Entry) -> bool {
    matches!(
        entry.kind(),
        EntryKind::Message(Role::User | Role::Assistant | Role::BashExecution | Role::Custom)
            | EntryKind::BranchSummary
            | EntryKind::CustomMessage
    )
}

fn starts_turn(entry: &Entry) -> bool {
    matches!(
        entry.kind(),
        EntryKind::Message(Role::User | Role::BashExecution)
            | EntryKind::BranchSummary
            | EntryKind::CustomMessage
    )
}

fn stops_backing_up(entry: &Entry) -> bool {
    matches!(entry.kind(), EntryKind::Message(_) | EntryKind::Compaction)
}

fn messages(entries: &[&Entry], edits: &Edits) -> Vec<Arc<Message>> {
    let messages = entries.iter().filter_map(|entry| edits.message_of(entry));
    messages.filter(|message| !is_system(message)).collect()
}
