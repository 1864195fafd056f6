//! The answers to commands that read a session.

use pinion_message::{Message, StopReason};
use pinion_session::{ContextUsage, Entry, EntryKind, Role, Stats, Store};
use tokio_util::sync::CancellationToken;

use crate::config::StatsScope;
use crate::core::Core;
use crate::estimate::{context_tokens, has_usage};
use crate::replacement::with_time_limit;
use crate::state::{Phase, SessionState};
use crate::tree;
use crate::{Answer, EngineError, StateView};

impl Core {
    /// Returns the answer to `GetState`.
    pub fn state_view(&self) -> StateView {
        let state = self.state();
        let waits_to_retry = matches!(state.phase, Phase::RetryWait(_));
        StateView {
            model: state.model.clone(),
            thinking_level: state.thinking_level,
            is_streaming: state.is_streaming()
                || (waits_to_retry && self.settings.behaviour.count_retry_wait_as_streaming),
            is_compacting: state.is_compacting(),
            steering_mode: state.steering_mode.clone(),
            follow_up_mode: state.follow_up_mode.clone(),
            session_file: state.store.file().map(|path| path.display().to_string()),
            session_id: state.store.id().to_owned(),
            session_name: state.store.name().map(str::to_owned),
            auto_compaction_enabled: state.auto_compaction,
            message_count: state.messages.len(),
            pending_message_count: state.queued_count(),
        }
    }

    /// Returns counts and costs of the context or of the whole session; see [`StatsScope`].
    pub async fn stats(&self, cancel: &CancellationToken) -> Result<Stats, EngineError> {
        if self.settings.behaviour.stats_scope == StatsScope::Session {
            return self.session_stats(cancel).await;
        }
        let state = self.state();
        let mut stats = state
            .store
            .stats(state.messages.iter().map(|message| &**message));
        stats.context_usage = state.model.as_ref().map(|model| {
            let tokens = context_tokens(&state.messages).from_usage;
            ContextUsage::new(tokens, model.context_window)
        });
        Ok(stats)
    }

    async fn session_stats(&self, cancel: &CancellationToken) -> Result<Stats, EngineError> {
        let mut snapshot = {
            let mut state = self.state();
            if !state.store.is_partly_in_file() {
                let totals = state.store.totals();
                let is_stale = usage_is_stale(&state.store);
                return Ok(Stats {
                    context_usage: context_usage(&state, is_stale),
                    ..totals
                });
            }
            state.store.snapshot()
        };
        let count = move || {
            let totals = snapshot.totals();
            (totals, usage_is_stale(&snapshot), snapshot)
        };
        let counted = with_time_limit(cancel, count).await;
        let (totals, is_stale, snapshot) = counted.map_err(EngineError::NotRead)?;
        let mut state = self.state();
        state.store.remember_totals(snapshot);
        Ok(Stats {
            context_usage: context_usage(&state, is_stale),
            ..totals
        })
    }

    /// Returns the size of the context, estimated if no answer has reported it. Unknown right after a compaction. Blocks.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let is_stale = self.read_session_blocking(usage_is_stale).ok()?;
        context_usage(&self.state(), is_stale)
    }

    /// Returns the text of the last answer, ignoring answers that were aborted while empty.
    pub fn last_assistant_text(&self) -> Option<String> {
        let state = self.state();
        let answer = state
            .messages
            .iter()
            .rev()
            .filter_map(|message| message.as_assistant())
            .find(|answer| {
                answer.stop_reason != StopReason::Aborted || !answer.content.is_empty()
            })?;
        let text = answer.joined_text("");
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a copy of the conversation.
    pub fn messages_view(&self) -> Vec<std::sync::Arc<Message>> {
        self.state().messages.clone()
    }
}

/// Returns the entries of the session after `since`.
pub(crate) fn entries(store: &Store, since: Option<&str>) -> Result<Answer, EngineError> {
    let entries = store
        .entries_since(since)
        .map_err(|_| EngineError::EntryNotFound(since.unwrap_or_default().to_owned()))?;
    Ok(Answer::Entries {
        entries: entries.iter().filter_map(Entry::shown).collect(),
        leaf_id: store.leaf().map(str::to_owned),
    })
}

/// Returns the entries of the session as a tree.
pub(crate) fn tree(store: &Store) -> Answer {
    Answer::Tree {
        tree: tree::print(store),
        leaf_id: store.leaf().map(str::to_owned),
    }
}

/// Returns the user's messages that a client can fork from.
pub(crate) fn fork_messages(store: &Store) -> Answer {
    let messages = store.user_messages().into_iter();
    Answer::ForkMessages(messages.map(|(id, text)| (id.to_string(), text)).collect())
}

/// Reports whether the newest usage on the path is from before a compaction, so that it does not describe the context.
fn usage_is_stale(store: &Store) -> bool {
    let answer = |entry: &&Entry| {
        entry.is_message_of(Role::Assistant)
            && entry.message().is_some_and(|message| has_usage(&message))
    };
    let summary = |entry: &&Entry| entry.kind() == EntryKind::Compaction;
    let mut path = store.path().into_iter().rev();
    path.find(|entry| answer(entry) || summary(entry))
        .is_some_and(|entry| summary(&entry))
}

fn context_usage(state: &SessionState, is_stale: bool) -> Option<ContextUsage> {
    let model = state.model.as_ref()?;
    let counted = context_tokens(&state.messages);
    let tokens = counted.from_usage.or(Some(counted.tokens));
    let tokens = tokens.filter(|_| !is_stale);
    Some(ContextUsage::new(tokens, model.context_window))
}
