//! Summarises the older part of a conversation so that the rest fits.

mod branch;
mod cut;
mod files;
mod instructions;
mod serialise;

use std::sync::Arc;

use futures_util::StreamExt;
use pinion_llm::{Request, RequestOptions, StreamEvent};
use pinion_message::{Block, Message, Model, StopReason, ThinkingLevel, UserMessage};
use pinion_session::{Entry, NewEntry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::cut::Plan;
use crate::core::Core;
use crate::estimate::context_tokens;
use crate::hooks::{CompactionChoice, CompactionPlan, Moment};
use crate::state::Phase;
use crate::{CompactionReason, CompactionResult, Event, SavedCompaction};

/// Why nothing was summarised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("No model selected")]
    NoModel,
    #[error("{0}")]
    NoKey(String),
    #[error("Already compacted")]
    AlreadyCompacted,
    #[error("Compaction cancelled")]
    Cancelled,
    #[error("Summarization failed: {0}")]
    Summary(String),
    #[error("Turn prefix summarization failed: {0}")]
    Prefix(String),
}

/// How long the summary of a branch may be.
const BRANCH_SUMMARY_TOKENS: u64 = 2048;

/// Which summary a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    History,
    TurnPrefix,
    Branch,
}

impl Core {
    /// Summarises because it is due, and tells everyone; says whether it worked.
    pub async fn auto_compact(&self, reason: CompactionReason, cancel: &CancellationToken) -> bool {
        self.set_phase(Phase::AutoCompacting);
        self.emit(Event::CompactionStart { reason });
        let overflow = reason == CompactionReason::Overflow;
        if overflow {
            self.drop_trailing_answer();
        }
        let result = self.compact(None, cancel).await;
        if overflow && result.is_ok() {
            self.drop_trailing_error();
        }
        self.set_phase(Phase::Between);
        let worked = result.is_ok();
        let (result, aborted, error) = match result {
            Ok(result) => (Some(Arc::new(result)), false, None),
            Err(Failure::Cancelled) => (None, true, None),
            Err(Failure::AlreadyCompacted | Failure::NoModel | Failure::NoKey(_)) => {
                (None, false, None)
            }
            Err(failure) => {
                let what = if overflow {
                    "Context overflow recovery failed"
                } else {
                    "Auto-compaction failed"
                };
                (None, false, Some(format!("{what}: {failure}")))
            }
        };
        let will_retry = worked && overflow;
        self.emit(Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error,
        });
        worked
    }

    fn drop_trailing_answer(&self) {
        let mut state = self.state();
        if state
            .messages
            .last()
            .is_some_and(|message| message.as_assistant().is_some())
        {
            state.messages.pop();
        }
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

    /// Summarises the older part of the conversation and replaces it by the summary.
    pub async fn compact(
        &self,
        instructions: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CompactionResult, Failure> {
        let model = self.state().model.clone().ok_or(Failure::NoModel)?;
        let (plan, tokens_before) = self.plan()?;
        self.models
            .check_credentials(&model)
            .map_err(Failure::NoKey)?;
        let choice = self
            .ask_hook(Moment::BeforeCompaction, cancel, |hooks| {
                let plan = self.shown_plan(&plan, tokens_before, instructions);
                hooks.before_compaction(plan, cancel.clone())
            })
            .await;
        let (mut result, by_hook) = match choice.unwrap_or(CompactionChoice::Go) {
            CompactionChoice::Cancel => return Err(Failure::Cancelled),
            CompactionChoice::Use(result) => (*result, true),
            CompactionChoice::Go => {
                let summary = self.summarise(&plan, &model, instructions, cancel).await?;
                let result = CompactionResult {
                    summary,
                    first_kept_entry_id: plan.first_kept.clone(),
                    tokens_before,
                    details: Some(plan.files.details()),
                    saved: SavedCompaction::default(),
                };
                (result, false)
            }
        };
        if cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        self.log(NewEntry::Compaction {
            summary: result.summary.clone(),
            first_kept_entry_id: result.first_kept_entry_id.clone(),
            tokens_before: result.tokens_before,
            details: result.details.clone(),
            from_hook: Some(by_hook),
        });
        self.state().rebuild_messages();
        result.saved = self.saved(&result.first_kept_entry_id);
        self.ask_hook(Moment::Compacted, cancel, |hooks| {
            hooks.compacted(self.leaf_entry(), by_hook)
        })
        .await;
        Ok(result)
    }

    /// How the compaction that was just saved stands in the session file.
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

    /// The plan as who takes part sees it.
    fn shown_plan(
        &self,
        plan: &Plan,
        tokens_before: u64,
        instructions: Option<&str>,
    ) -> CompactionPlan {
        let state = self.state();
        CompactionPlan {
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
            branch: state.store.path().into_iter().map(Entry::value).collect(),
            instructions: instructions.map(str::to_owned),
        }
    }

    /// The newest entry of the branch, as the session file says.
    pub(super) fn leaf_entry(&self) -> Value {
        let state = self.state();
        let entry = state.store.leaf().and_then(|leaf| state.store.entry(leaf));
        entry.map_or(Value::Null, Entry::value)
    }

    /// What to summarise and what to keep.
    fn plan(&self) -> Result<(Plan, u64), Failure> {
        let state = self.state();
        let path = state.store.path();
        let plan = cut::plan(&path, self.settings.keep_recent_tokens)?;
        let tokens_before = context_tokens(&state.store.context().messages).tokens;
        Ok((plan, tokens_before))
    }

    async fn summarise(
        &self,
        plan: &Plan,
        model: &Arc<Model>,
        instructions: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let mut summary = if plan.is_split() && plan.history.is_empty() {
            "No prior history.".to_owned()
        } else {
            let prompt = instructions::history(
                &serialise::conversation(&plan.history),
                plan.previous_summary.as_deref(),
                instructions,
            );
            self.ask_for_summary(prompt, Part::History, model, cancel)
                .await?
        };
        if plan.is_split() {
            let prompt = instructions::turn_prefix(&serialise::conversation(&plan.turn_prefix));
            let prefix = self
                .ask_for_summary(prompt, Part::TurnPrefix, model, cancel)
                .await?;
            summary.push_str("\n\n---\n\n**Turn Context (split turn):**\n\n");
            summary.push_str(&prefix);
        }
        summary.push_str(&plan.files.listing());
        Ok(summary)
    }

    async fn ask_for_summary(
        &self,
        prompt: String,
        part: Part,
        model: &Arc<Model>,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let authorization = tokio::select! {
            () = cancel.cancelled() => return Err(Failure::Cancelled),
            authorization = self.models.access(model) => authorization.map_err(Failure::NoKey)?,
        };
        let reserve = self.settings.reserve_tokens as f64;
        let mut options = RequestOptions {
            retry: self.settings.http_retry,
            timeouts: self.settings.timeouts,
            ..RequestOptions::default()
        };
        match part {
            Part::History => {
                options.max_tokens = Some((reserve * 0.8) as u64);
                options.reasoning = model.reasoning.then_some(ThinkingLevel::High);
            }
            Part::TurnPrefix => options.max_tokens = Some((reserve * 0.5) as u64),
            Part::Branch => options.max_tokens = Some(BRANCH_SUMMARY_TOKENS),
        }
        authorization.apply(&mut options);
        let request = Request {
            model: Arc::clone(model),
            system_prompt: Some(instructions::ROLE.into()),
            messages: vec![Arc::new(Message::User(UserMessage::now(vec![
                Block::text(prompt),
            ])))],
            tools: Arc::new([]),
            options,
            cancel: cancel.clone(),
        };
        let mut stream = self.models.provider(model).stream(request);
        while let Some(event) = stream.next().await {
            let StreamEvent::End(answer) = event else {
                continue;
            };
            let error = || {
                answer
                    .error_message
                    .clone()
                    .unwrap_or_else(|| "unknown error".into())
            };
            return match (answer.stop_reason, part) {
                (StopReason::Aborted, _) => Err(Failure::Cancelled),
                (StopReason::Error, Part::History | Part::Branch) => Err(Failure::Summary(error())),
                (StopReason::Error, Part::TurnPrefix) => Err(Failure::Prefix(error())),
                _ => Ok(answer.joined_text("\n")),
            };
        }
        Err(Failure::Summary(
            "the provider's stream ended without a result".into(),
        ))
    }
}
