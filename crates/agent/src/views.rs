//! The answers to commands that read a session.

use pinion_message::{Message, StopReason};
use pinion_session::{ContextUsage, Entry, EntryKind, Role, Stats};

use crate::config::StatsScope;
use crate::core::Core;
use crate::estimate::{context_tokens, has_usage};
use crate::state::Phase;
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
    pub fn stats(&self) -> Stats {
        if self.settings.behaviour.stats_scope == StatsScope::Session {
            let totals = self.state().store.totals();
            return Stats {
                context_usage: self.context_usage(),
                ..totals
            };
        }
        let state = self.state();
        let mut stats = state
            .store
            .stats(state.messages.iter().map(|message| &**message));
        stats.context_usage = state.model.as_ref().map(|model| {
            let tokens = context_tokens(&state.messages).from_usage;
            ContextUsage::new(tokens, model.context_window)
        });
        stats
    }

    /// Returns the size of the context, estimated if no answer has reported it. Unknown right after a compaction.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let state = self.state();
        let model = state.model.as_ref()?;
        let counted = context_tokens(&state.messages);
        let answer = |entry: &&Entry| {
            entry.is_message_of(Role::Assistant)
                && entry.message().is_some_and(|message| has_usage(&message))
        };
        let summary = |entry: &&Entry| entry.kind() == EntryKind::Compaction;
        let path = state.store.path();
        // Usage from before a compaction does not describe the context after it.
        let is_stale = path
            .into_iter()
            .rev()
            .find(|entry| answer(entry) || summary(entry))
            .is_some_and(|entry| summary(&entry));
        let tokens = counted.from_usage.or(Some(counted.tokens));
        let tokens = tokens.filter(|_| !is_stale);
        Some(ContextUsage::new(tokens, model.context_window))
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

    /// Returns the entries of the session file after `since`.
    pub fn entries_view(&self, since: Option<&str>) -> Result<Answer, EngineError> {
        let state = self.state();
        let entries = state
            .store
            .entries_since(since)
            .map_err(|_| EngineError::EntryNotFound(since.unwrap_or_default().to_owned()))?;
        let entries = entries.iter().filter_map(Entry::shown).collect();
        let leaf_id = state.store.leaf().map(str::to_owned);
        Ok(Answer::Entries { entries, leaf_id })
    }

    /// Returns the entries of the session file as a tree.
    pub fn tree_view(&self) -> Answer {
        let state = self.state();
        let leaf_id = state.store.leaf().map(str::to_owned);
        Answer::Tree {
            tree: tree::print(&state.store),
            leaf_id,
        }
    }

    /// Returns a copy of the conversation.
    pub fn messages_view(&self) -> Vec<std::sync::Arc<Message>> {
        self.state().messages.clone()
    }
}
