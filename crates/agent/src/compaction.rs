//! Compaction: replaces the older part of a conversation by a summary so that the rest fits into the context.

mod branch;
mod cut;
mod files;
mod instructions;
mod serialise;
mod summariser;

use std::sync::Arc;

use pinion_message::{Message, StopReason, Usage};
use pinion_session::{Entry, NewEntry, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::cut::CutPlan;
use self::summariser::{Summariser, SummaryPart};
use crate::core::Core;
use crate::estimate::{context_tokens, message_tokens};
use crate::hooks::{Compacted, CompactionChoice, CompactionPlan, FailedCompaction, Moment};
use crate::state::Phase;
use crate::{
    CompactionReason, CompactionResult, EngineError, Event, SavedCompaction, SummaryPurpose,
};

/// The reason why a compaction or branch summary failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompactionFailure {
    #[error("No model selected")]
    NoModel,
    #[error("{0}")]
    NoKey(String),
    #[error("Already compacted")]
    AlreadyCompacted,
    #[error("Nothing to compact (session too small)")]
    TooSmall,
    #[error("Compaction cancelled")]
    Cancelled,
    #[error("Summarization failed: {0}")]
    Summary(String),
    #[error("Turn prefix summarization failed: {0}")]
    Prefix(String),
    #[error("{0}")]
    NotRead(String),
}

impl CompactionFailure {
    /// Reports whether an automatic compaction that failed in this way had begun.
    fn has_begun(&self) -> bool {
        !matches!(
            self,
            Self::AlreadyCompacted | Self::TooSmall | Self::NoModel | Self::NoKey(_)
        )
    }
}

/// A session that cannot be read.
impl From<EngineError> for CompactionFailure {
    fn from(error: EngineError) -> Self {
        Self::NotRead(error.to_string())
    }
}

impl Core {
    /// Compacts automatically and emits its events. Returns true if it succeeded.
    pub async fn auto_compact(&self, reason: CompactionReason, cancel: &CancellationToken) -> bool {
        let overflow = reason == CompactionReason::Overflow;
        if overflow {
            self.omit_last_answer(cancel).await;
        }
        self.set_phase(Phase::AutoCompacting);
        self.emit(Event::CompactionStart { reason });
        let result = self.compact(reason, None, cancel).await;
        if overflow && result.is_ok() {
            self.drop_trailing_error();
        }
        self.set_phase(Phase::Between);
        let succeeded = result.is_ok();
        let (result, aborted, error) = match result {
            Ok(result) => (Some(Arc::new(result)), false, None),
            Err(CompactionFailure::Cancelled) => (None, true, None),
            Err(
                CompactionFailure::AlreadyCompacted
                | CompactionFailure::TooSmall
                | CompactionFailure::NoModel
                | CompactionFailure::NoKey(_),
            ) => (None, false, None),
            Err(failure) => {
                let what = if overflow {
                    "Context overflow recovery failed"
                } else {
                    "Auto-compaction failed"
                };
                (None, false, Some(format!("{what}: {failure}")))
            }
        };
        let will_retry = succeeded && overflow;
        self.emit(Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error,
        });
        succeeded
    }

    fn drop_trailing_error(&self) {
        let mut state = self.state();
        let failed = |message: &Arc<Message>| {
            message
                .as_assistant()
                .is_some_and(|answer| answer.stop_reason == StopReason::Error)
        };
        if state.messages.last().is_some_and(failed) {
            state.messages.pop();
        }
    }

    /// Replaces the older part of the conversation by a summary.
    pub async fn compact(
        &self,
        reason: CompactionReason,
        instructions: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CompactionResult, CompactionFailure> {
        debug!(?reason, "compaction started");
        let mut by_hook = false;
        let result = self
            .replace_older_part(reason, instructions, cancel, &mut by_hook)
            .await;
        if let Err(failure) = &result
            && (reason == CompactionReason::Manual || failure.has_begun())
        {
            let error = match failure {
                CompactionFailure::Cancelled => None,
                failure => Some(failure.to_string()),
            };
            self.tell_hook(Moment::CompactionFailed, cancel, |hooks| {
                hooks.compaction_failed(FailedCompaction {
                    reason,
                    error,
                    by_hook,
                })
            })
            .await;
        }
        let tokens_before = result.as_ref().map_or(0, |result| result.tokens_before);
        debug!(
            succeeded = result.is_ok(),
            tokens_before, "compaction ended"
        );
        result
    }

    async fn replace_older_part(
        &self,
        reason: CompactionReason,
        instructions: Option<&str>,
        cancel: &CancellationToken,
        by_hook: &mut bool,
    ) -> Result<CompactionResult, CompactionFailure> {
        let model = self
            .state()
            .model
            .clone()
            .ok_or(CompactionFailure::NoModel)?;
        let (plan, tokens_before) = self.plan(reason, cancel).await?;
        self.models
            .check_credentials(&model)
            .map_err(CompactionFailure::NoKey)?;
        let branch = match self.hook(Moment::BeforeCompaction) {
            Some(_) => self.read_session(cancel, branch).await?,
            None => Vec::new(),
        };
        let choice = self
            .ask_hook(Moment::BeforeCompaction, cancel, |hooks| {
                let plan = self.plan_for_hooks(reason, &plan, branch, tokens_before, instructions);
                hooks.before_compaction(plan, cancel.clone())
            })
            .await;
        let mut result = match choice.unwrap_or(CompactionChoice::Go) {
            CompactionChoice::Cancel => return Err(CompactionFailure::Cancelled),
            CompactionChoice::Use(result) => {
                *by_hook = true;
                *result
            }
            CompactionChoice::Go => {
                let purpose = SummaryPurpose::Compaction(reason);
                let mut summariser = Summariser::new(self, model, purpose, cancel);
                let summary = summarise(&plan, instructions, &mut summariser).await?;
                CompactionResult {
                    summary,
                    first_kept_entry_id: plan.first_kept.clone(),
                    tokens_before,
                    estimated_tokens_after: 0,
                    usage: Some(summariser.usage),
                    details: Some(plan.files.details()),
                    saved: SavedCompaction::default(),
                }
            }
        };
        if cancel.is_cancelled() {
            return Err(CompactionFailure::Cancelled);
        }
        let entry = NewEntry::Compaction {
            summary: result.summary.clone(),
            first_kept_entry_id: result.first_kept_entry_id.clone(),
            tokens_before: result.tokens_before,
            usage: self.usage_to_store(result.usage),
            details: result.details.clone(),
            from_hook: Some(*by_hook),
            system_message: self.system_message().map(Box::new),
        };
        self.log(entry, cancel).await;
        self.rebuild_messages(cancel).await;
        result.estimated_tokens_after = {
            let state = self.state();
            let sizes = state.messages.iter().map(|message| message_tokens(message));
            sizes.sum()
        };
        result.saved = self.saved(&result.first_kept_entry_id);
        self.ask_hook(Moment::Compacted, cancel, |hooks| {
            hooks.compacted(Compacted {
                reason,
                entry: self.leaf_entry(),
                by_hook: *by_hook,
            })
        })
        .await;
        Ok(result)
    }

    /// Returns the position and time of the compaction that was just written to the session file.
    fn saved(&self, first_kept: &str) -> SavedCompaction {
        let timestamp = self.leaf_entry()["timestamp"].as_str().map(str::to_owned);
        let state = self.state();
        let path = state.store.path();
        let kept = path
            .iter()
            .position(|entry| entry.id().as_str() == first_kept);
        SavedCompaction {
            timestamp: timestamp.unwrap_or_default(),
            first_kept_index: kept.map_or(0, |position| position + 1),
        }
    }

    /// Returns the plan in the form that hooks receive.
    fn plan_for_hooks(
        &self,
        reason: CompactionReason,
        plan: &CutPlan,
        branch: Vec<Value>,
        tokens_before: u64,
        instructions: Option<&str>,
    ) -> CompactionPlan {
        let state = self.state();
        CompactionPlan {
            reason,
            first_kept_entry_id: plan.first_kept.clone(),
            messages_to_summarise: plan.history.clone(),
            turn_prefix: plan.turn_prefix.clone(),
            is_split_turn: plan.is_split(),
            tokens_before,
            previous_summary: plan.previous_summary.clone(),
            files: plan.files.operations(),
            settings: json!({
                "enabled": state.auto_compaction,
                "reserveTokens": self.settings.reserve_tokens,
                "keepRecentTokens": self.settings.keep_recent_tokens,
            }),
            branch,
            instructions: instructions.map(str::to_owned),
        }
    }

    /// Returns the newest entry of the branch, which was just appended, as it is in the session file.
    pub(super) fn leaf_entry(&self) -> Value {
        let state = self.state();
        let entry = state.store.leaf().and_then(|leaf| state.store.entry(leaf));
        entry.and_then(Entry::value).unwrap_or_default()
    }

    /// Divides the conversation into a part to summarise and a part to keep. Also returns its size in tokens.
    async fn plan(
        &self,
        reason: CompactionReason,
        cancel: &CancellationToken,
    ) -> Result<(CutPlan, u64), CompactionFailure> {
        let keeps_nothing = reason == CompactionReason::Overflow
            && self.settings.behaviour.summarise_all_on_overflow;
        let keep_recent = if keeps_nothing {
            0
        } else {
            self.settings.keep_recent_tokens
        };
        let reject_empty = self.settings.behaviour.reject_empty_compaction;
        let plan = move |store: &Store| {
            let plan = cut::plan(&store.path(), keep_recent)?;
            if reject_empty && plan.is_empty() {
                return Err(CompactionFailure::TooSmall);
            }
            let tokens_before = context_tokens(&store.context().messages).tokens;
            Ok((plan, tokens_before))
        };
        self.read_session(cancel, plan).await?
    }

    /// The usage to store with a summary: `None` unless the settings ask for it.
    fn usage_to_store(&self, usage: Option<Usage>) -> Option<Usage> {
        usage.filter(|_| self.settings.behaviour.store_summary_usage)
    }
}

/// Returns the entries of the current branch as they are in the session file.
fn branch(store: &Store) -> Vec<Value> {
    store.path().into_iter().filter_map(Entry::value).collect()
}

async fn summarise(
    plan: &CutPlan,
    instructions: Option<&str>,
    summariser: &mut Summariser<'_>,
) -> Result<String, CompactionFailure> {
    let mut summary = if plan.is_split() && plan.history.is_empty() {
        "No prior history.".to_owned()
    } else {
        let prompt = instructions::history(
            &serialise::conversation(&plan.history),
            plan.previous_summary.as_deref(),
            instructions,
        );
        summariser.ask(prompt, SummaryPart::History).await?
    };
    if plan.is_split() {
        let prompt = instructions::turn_prefix(&serialise::conversation(&plan.turn_prefix));
        let prefix = summariser.ask(prompt, SummaryPart::TurnPrefix).await?;
        summary.push_str("\n\n---\n\n**Turn Context (split turn):**\n\n");
        summary.push_str(&prefix);
    }
    summary.push_str(&plan.files.listing());
    Ok(summary)
}
