//! The ends of turns and runs: the events of the handlers, and the entries that they return.

use std::sync::Arc;

use pinion_agent::{Boundary, BoundaryChanges, BoundaryEntry, Event, RunOutcome};
use pinion_message::{Content, CustomMessage, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::extensions::Inner;

/// The answer of the handlers of one boundary.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BoundaryAnswer {
    entries: Vec<EntryDraft>,
    r#continue: bool,
}

/// An entry that a handler returns.
#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum EntryDraft {
    Custom {
        custom_type: String,
        #[serde(default)]
        data: Option<Value>,
    },
    CustomMessage {
        custom_type: String,
        content: Content,
        #[serde(default)]
        display: bool,
        #[serde(default)]
        details: Option<Value>,
    },
    ContextEdit {
        target_id: String,
        #[serde(default)]
        replacement: Option<Value>,
    },
    Compaction {
        summary: String,
        #[serde(default)]
        first_kept_entry_id: Option<String>,
        #[serde(default)]
        usage: Option<Usage>,
        #[serde(default)]
        details: Option<Value>,
    },
}

impl From<EntryDraft> for BoundaryEntry {
    fn from(draft: EntryDraft) -> Self {
        match draft {
            EntryDraft::Custom { custom_type, data } => Self::Custom { custom_type, data },
            EntryDraft::CustomMessage {
                custom_type,
                content,
                display,
                details,
            } => Self::Message(CustomMessage {
                custom_type,
                content,
                display,
                details,
                timestamp: 0,
            }),
            EntryDraft::ContextEdit {
                target_id,
                replacement,
            } => Self::ContextEdit {
                target_id,
                replacement,
            },
            EntryDraft::Compaction {
                summary,
                first_kept_entry_id,
                usage,
                details,
            } => Self::Compaction {
                summary,
                // No entry has an empty id: nothing before the summary is kept.
                first_kept_entry_id: first_kept_entry_id.unwrap_or_default(),
                usage,
                details,
            },
        }
    }
}

impl Inner {
    /// Asks the handlers of a boundary.
    pub(super) async fn ask_at_boundary(
        self: &Arc<Self>,
        boundary: Boundary<'_>,
    ) -> BoundaryChanges {
        let (mut given, outcome) = match boundary {
            Boundary::TurnEnd(event, outcome) => (self.event_of_run(event), outcome),
            Boundary::BeforeSettle(outcome) => {
                (Some(json!({"type": "agent_before_settle"})), outcome)
            }
        };
        let Some(given) = &mut given else {
            return BoundaryChanges::default();
        };
        let name = given["type"].as_str().unwrap_or_default().to_owned();
        if !self.listens(&name) {
            return BoundaryChanges::default();
        }
        given["later"] = json!({"outcome": outcome_name(outcome)});
        let asked = self.dispatch::<BoundaryAnswer>("boundary", &name, vec![given.to_string()]);
        let answer = asked.await.unwrap_or_default();
        BoundaryChanges {
            entries: answer.entries.into_iter().map(Into::into).collect(),
            continues: answer.r#continue,
        }
    }

    /// Sends the end of a turn to handlers after an abort, when their entries are not appended any more.
    pub(super) async fn tell_aborted_turn(self: &Arc<Self>, event: &Event) {
        let boundary = Boundary::TurnEnd(event, RunOutcome::Aborted);
        let changes = self.ask_at_boundary(boundary).await;
        if !changes.entries.is_empty() {
            let error = "entries of turn_end are not appended after an abort".to_owned();
            self.fault("<boundary>", "turn_end", error);
        }
    }
}

fn outcome_name(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed => "completed",
        RunOutcome::Aborted => "aborted",
        RunOutcome::Failed => "error",
    }
}
