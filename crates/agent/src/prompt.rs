//! The life of a prompt: a run, retries when it fails, compaction when it is too long, and what
//! waits in the queues, until nothing more happens by itself.

use std::sync::Arc;
use std::time::Duration;

use pinion_llm::{is_overflow, is_retryable};
use pinion_message::{AssistantMessage, Message, Model, StopReason};
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::estimate::context_tokens;
use crate::run::{Run, RunEnd};
use crate::state::Phase;
use crate::{CompactionReason, Delivery, Event};

/// The pause before a run that follows a compaction.
const AFTER_COMPACTION: Duration = Duration::from_millis(100);

/// What to do when a run is over.
enum Next {
    /// Make the failed request again after a pause.
    Retry {
        attempt: u32,
        delay: Duration,
        error: String,
    },
    /// The retries are used up; then go on with the second.
    GiveUp { error: String, then: Box<Next> },
    /// Summarise, then perhaps run again.
    Compact(CompactionReason),
    /// Summarising did not help; say so.
    StillTooLong,
    /// Nothing.
    Settle,
}

impl Core {
    /// Runs `prompts` and everything that follows from them.
    pub async fn live(&self, prompts: Vec<Arc<Message>>, cancel: CancellationToken) {
        if let Some(hooks) = &self.hooks {
            hooks.running(cancel.clone());
        }
        if let Some(gate) = &self.gate {
            gate.begin();
        }
        self.outlet.guard(cancel.clone());
        self.tell_notices();
        if let Some(reason) = self.compaction_due_before_prompt() {
            self.auto_compact(reason, &cancel).await;
        }
        let mut prompts = prompts;
        let mut aborted = false;
        while let Some(model) = self.current_model() {
            let run = Run::new(self, Arc::clone(&model), cancel.clone());
            let end = run.execute(std::mem::take(&mut prompts)).await;
            aborted = stopped(&end);
            let next = self.next_step(&end, &model);
            self.end_run(end, &next);
            match self.follow(next, &cancel).await {
                Some(more) => prompts = more,
                None => {
                    // An abort may also end the wait for a retry, or a compaction.
                    aborted |= cancel.is_cancelled();
                    break;
                }
            }
        }
        // What is left in line belongs to this run; an abort does not make it be skipped.
        self.outlet.drained(&CancellationToken::new()).await;
        if let Some(hooks) = &self.hooks {
            hooks.settled();
        }
        if let Some(gate) = &self.gate {
            gate.settled();
        }
        self.state().store.sync();
        self.tell_notices();
        self.set_phase(Phase::Idle);
        self.state().run_prompt = None;
        self.emit(Event::Settled { aborted });
    }

    /// Tells what was found out about the session file since the last time.
    fn tell_notices(&self) {
        let notices = self.state().store.take_notices();
        self.report(notices);
    }

    /// Ends a run that broke in our own code, so that no client waits for its end.
    pub fn close_broken_run(&self, error: &str) {
        let was_running = self.state().is_streaming();
        self.set_phase(Phase::Idle);
        self.emit(Event::Fault {
            source: "engine".into(),
            during: "run".into(),
            error: error.to_owned(),
        });
        if was_running {
            self.emit(Event::AgentEnd {
                messages: Arc::new([]),
                will_retry: false,
            });
        }
        self.emit(Event::Settled { aborted: false });
    }

    fn current_model(&self) -> Option<Arc<Model>> {
        self.state().model.clone()
    }

    fn end_run(&self, end: RunEnd, next: &Next) {
        let will_retry = matches!(
            next,
            Next::Retry { .. } | Next::Compact(CompactionReason::Overflow)
        );
        let mut state = self.state();
        state.phase = Phase::Between;
        state.store.sync();
        drop(state);
        self.emit(Event::AgentEnd {
            messages: end.messages,
            will_retry,
        });
    }

    /// Decides what follows a run.
    fn next_step(&self, end: &RunEnd, model: &Model) -> Next {
        let Some(answer) = end.last.as_deref().and_then(Message::as_assistant) else {
            return Next::Settle;
        };
        if answer.stop_reason == StopReason::Aborted {
            return Next::Settle;
        }
        let overflow = is_overflow(answer, model.context_window);
        if answer.stop_reason == StopReason::Error && !overflow && is_retryable(answer) {
            let state = self.state();
            if state.auto_retry {
                let attempt = state.retry_attempt + 1;
                drop(state);
                let error = answer.error_message.clone().unwrap_or_default();
                if attempt <= self.settings.max_retries {
                    let delay = self.retry_delay(attempt);
                    return Next::Retry {
                        attempt,
                        delay,
                        error,
                    };
                }
                let then = Box::new(self.compaction_step(answer, model));
                return Next::GiveUp { error, then };
            }
        }
        self.compaction_step(answer, model)
    }

    /// The pause before a retry: it doubles each time.
    pub fn retry_delay(&self, attempt: u32) -> Duration {
        let factor = 1u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        self.settings.retry_base_delay.saturating_mul(factor)
    }

    fn compaction_step(&self, answer: &AssistantMessage, model: &Model) -> Next {
        match self.compaction_due(answer, model) {
            Due::No => Next::Settle,
            Due::Yes(reason) => Next::Compact(reason),
            Due::AlreadyTried => Next::StillTooLong,
        }
    }

    /// Does what follows a run; `Some` prompts mean that another run follows.
    async fn follow(&self, next: Next, cancel: &CancellationToken) -> Option<Vec<Arc<Message>>> {
        match next {
            Next::Settle => None,
            Next::Retry {
                attempt,
                delay,
                error,
            } => self
                .wait_for_retry(attempt, delay, error, cancel)
                .await
                .then(Vec::new),
            Next::GiveUp { error, then } => {
                let attempt = std::mem::take(&mut self.state().retry_attempt);
                self.emit(Event::RetryEnd {
                    success: false,
                    attempt,
                    final_error: Some(error),
                });
                Box::pin(self.follow(*then, cancel)).await
            }
            Next::StillTooLong => {
                self.emit(Event::CompactionEnd {
                    reason: CompactionReason::Overflow,
                    result: None,
                    aborted: false,
                    will_retry: false,
                    error: Some("Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model.".into()),
                });
                None
            }
            Next::Compact(reason) => {
                let compacted = self.auto_compact(reason, cancel).await;
                let overflow = reason == CompactionReason::Overflow;
                let again = compacted && (overflow || self.state().has_queued());
                if !again {
                    return None;
                }
                tokio::select! {
                    () = cancel.cancelled() => return None,
                    () = tokio::time::sleep(AFTER_COMPACTION) => {}
                }
                self.continuation()
            }
        }
    }

    /// The prompts of a run that continues: none where the conversation waits for an answer, else what is queued.
    /// `None` where everything is answered and nobody asked for more.
    fn continuation(&self) -> Option<Vec<Arc<Message>>> {
        let answered = matches!(
            self.state().messages.last().map(|message| &**message),
            Some(Message::Assistant(_))
        );
        if !answered {
            return Some(Vec::new());
        }
        let mut queued = self.state().take_queued(Delivery::Steer);
        if queued.is_empty() {
            queued = self.state().take_queued(Delivery::FollowUp);
        }
        if queued.is_empty() {
            return None;
        }
        self.emit(self.queue_update(&[], Delivery::Steer));
        Some(queued)
    }

    /// Waits before a retry; says whether to go on.
    async fn wait_for_retry(
        &self,
        attempt: u32,
        delay: Duration,
        error: String,
        cancel: &CancellationToken,
    ) -> bool {
        let wait = cancel.child_token();
        {
            let mut state = self.state();
            state.retry_attempt = attempt;
            // The failed answer stays in the file but the model does not see it again.
            if state
                .messages
                .last()
                .is_some_and(|message| message.as_assistant().is_some())
            {
                state.messages.pop();
            }
            state.phase = Phase::RetryWait(wait.clone());
        }
        let max_attempts = self.settings.max_retries;
        self.emit(Event::RetryStart {
            attempt,
            max_attempts,
            delay,
            error,
        });
        let cancelled = tokio::select! {
            biased;
            () = wait.cancelled() => true,
            () = tokio::time::sleep(delay) => false,
        };
        self.set_phase(Phase::Between);
        if cancelled {
            self.state().retry_attempt = 0;
            let final_error = Some("Retry cancelled".to_owned());
            self.emit(Event::RetryEnd {
                success: false,
                attempt,
                final_error,
            });
        }
        !cancelled
    }
}

fn stopped(end: &RunEnd) -> bool {
    end.last
        .as_deref()
        .and_then(Message::as_assistant)
        .is_some_and(|answer| answer.stop_reason == StopReason::Aborted)
}

/// Whether the conversation must be summarised.
pub(crate) enum Due {
    No,
    Yes(CompactionReason),
    /// It was too long, was summarised, and is still too long.
    AlreadyTried,
}

impl Core {
    /// Whether the conversation must be summarised after `answer`.
    pub fn compaction_due(&self, answer: &AssistantMessage, model: &Model) -> Due {
        let mut state = self.state();
        if !state.auto_compaction || self.predates_compaction(&state.store, answer) {
            return Due::No;
        }
        let same_model = answer.provider == model.provider && answer.model == model.id;
        if same_model && is_overflow(answer, model.context_window) {
            if std::mem::replace(&mut state.overflow_handled, true) {
                return Due::AlreadyTried;
            }
            return Due::Yes(CompactionReason::Overflow);
        }
        let tokens = if answer.stop_reason == StopReason::Error {
            context_tokens(&state.messages).from_usage
        } else {
            Some(answer.usage.context_tokens())
        };
        let limit = model
            .context_window
            .saturating_sub(self.settings.reserve_tokens);
        match tokens {
            Some(tokens) if tokens > limit => Due::Yes(CompactionReason::Threshold),
            _ => Due::No,
        }
    }

    fn compaction_due_before_prompt(&self) -> Option<CompactionReason> {
        let (answer, model) = {
            let state = self.state();
            let answer = state
                .messages
                .iter()
                .rev()
                .find(|message| message.as_assistant().is_some())?;
            (Arc::clone(answer), state.model.clone()?)
        };
        match self.compaction_due(answer.as_assistant()?, &model) {
            Due::Yes(reason) => Some(reason),
            Due::No | Due::AlreadyTried => None,
        }
    }

    /// Whether `answer` was made before the newest compaction: its token count means nothing now.
    fn predates_compaction(
        &self,
        store: &pinion_session::Store,
        answer: &AssistantMessage,
    ) -> bool {
        let newest = store
            .path()
            .into_iter()
            .rev()
            .find(|entry| entry.kind() == pinion_session::EntryKind::Compaction);
        newest
            .and_then(pinion_session::Entry::timestamp)
            .is_some_and(|compacted| answer.timestamp <= compacted)
    }
}
