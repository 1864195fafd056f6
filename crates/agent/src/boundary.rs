//! Boundaries: the end of a turn and the end of a run. Hooks may append entries to the session there, and request
//! another turn.

use std::sync::Arc;

use pinion_message::{CustomMessage, Usage};
use pinion_session::{Entry, NewEntry};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Event;
use crate::core::Core;
use crate::estimate::context_tokens;
use crate::hooks::Moment;

/// A boundary that the run has reached.
#[derive(Debug, Clone, Copy)]
pub enum Boundary<'a> {
    /// A turn ended; the event is [`Event::TurnEnd`].
    TurnEnd(&'a Event, RunOutcome),
    /// The last run ended, and no retry, compaction or queued message follows.
    BeforeSettle(RunOutcome),
}

/// The outcome of the last answer of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunOutcome {
    Completed,
    Aborted,
    Failed,
}

/// The requests of hooks at a boundary.
#[derive(Debug, Default)]
pub struct BoundaryChanges {
    /// Entries to append, in this order.
    pub entries: Vec<BoundaryEntry>,
    /// Request another turn, if none follows by itself.
    pub continues: bool,
}

/// An entry that a hook appends at a boundary.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum BoundaryEntry {
    /// Data that the model does not see.
    Custom {
        custom_type: String,
        data: Option<Value>,
    },
    /// A message for the model.
    Message(CustomMessage),
    /// Leaves an entry out of the context, or replaces its content there.
    ContextEdit {
        target_id: String,
        replacement: Option<Value>,
    },
    /// A summary that replaces everything before the entry `first_kept_entry_id`.
    Compaction {
        summary: String,
        first_kept_entry_id: String,
        usage: Option<Usage>,
        details: Option<Value>,
    },
}

impl Core {
    /// Asks the hooks before the session becomes idle, and appends their entries. Returns true if they request another
    /// run.
    pub async fn ask_before_settling(
        &self,
        outcome: RunOutcome,
        cancel: &CancellationToken,
    ) -> bool {
        let changes = self
            .tell_hook(Moment::BeforeSettle, cancel, |hooks| {
                hooks.boundary(Boundary::BeforeSettle(outcome))
            })
            .await;
        let Some(changes) = changes else {
            return false;
        };
        self.append_boundary_entries(changes.entries, cancel).await;
        changes.continues && !cancel.is_cancelled()
    }

    /// Appends entries of hooks to the session and updates the conversation.
    pub async fn append_boundary_entries(
        &self,
        entries: Vec<BoundaryEntry>,
        cancel: &CancellationToken,
    ) {
        let mut rebuilds = false;
        for entry in entries {
            let id = match entry {
                BoundaryEntry::Custom { custom_type, data } => {
                    self.push(NewEntry::Custom { custom_type, data })
                }
                BoundaryEntry::Message(message) => self.push_message(&self.stamped(message)),
                BoundaryEntry::ContextEdit {
                    target_id,
                    replacement,
                } => {
                    rebuilds = true;
                    self.push(NewEntry::ContextEdit {
                        target_id,
                        replacement,
                    })
                }
                BoundaryEntry::Compaction {
                    summary,
                    first_kept_entry_id,
                    usage,
                    details,
                } => {
                    rebuilds = true;
                    let tokens_before = context_tokens(&self.state().messages).tokens;
                    self.push(NewEntry::Compaction {
                        summary,
                        first_kept_entry_id,
                        tokens_before,
                        usage,
                        details,
                        from_hook: Some(true),
                        system_message: self.system_message().map(Box::new),
                    })
                }
            };
            self.save(id.clone(), cancel).await;
            let entry = id.and_then(|id| self.state().store.entry(&id).and_then(Entry::value));
            if let Some(entry) = entry {
                self.emit(Event::EntryAppended(Arc::new(entry)));
            }
        }
        if rebuilds {
            self.rebuild_messages(cancel).await;
        }
    }
}
