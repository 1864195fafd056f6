//! Processes a prompt: a run, retries after failures, compaction when the context is too long, and runs for queued
//! messages, until the session is idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_llm::{is_overflow, is_retryable};
use pinion_message::{AssistantMessage, Message, Model, StopReason};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::boundary::RunOutcome;
use crate::core::Core;
use crate::estimate::context_tokens;
use crate::run::{Run, RunEnd};
use crate::state::Phase;
use crate::{CompactionReason, Delivery, Event, Reply};

/// The pause between a compaction and the run that follows it.
const PAUSE_AFTER_COMPACTION: Duration = Duration::from_millis(100);

/// The step after a run.
enum NextStep {
    /// Repeat the failed request after a pause.
    Retry {
        attempt: u32,
        delay: Duration,
        error: String,
    },
    /// Report that the retries are used up, then do the step `then`.
    GiveUp { error: String, then: Box<NextStep> },
    /// Compact, then run again after an overflow or if messages are queued.
    Compact(CompactionReason),
    /// Report that the context is too long in spite of a compaction.
    StillTooLong,
    /// End the prompt.
    Settle,
}

impl Core {
    /// Runs `prompts` and everything that follows: retries, compactions and queued messages.
    pub async fn process_prompt(&self, prompts: Vec<Arc<Message>>, cancel: CancellationToken) {
        if let Some(hooks) = &self.hooks {
            hooks.running(cancel.clone());
        }
        if let Some(gate) = &self.gate {
            gate.begin();
        }
        self.emitter.set_cancel(cancel.clone());
        self.report_new_notices();
        if let Some(supply) = &self.tool_supply {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = supply.ready() => {}
            }
        }
        if let Some(reason) = self.compaction_due_before_prompt() {
            self.auto_compact(reason, &cancel).await;
        }
        let mut prompts = prompts;
        let mut aborted = false;
        let mut failed = false;
        let begun = Instant::now();
        info!("run started");
        while let Some(model) = self.current_model() {
            let run = Run::new(self, Arc::clone(&model), cancel.clone());
            let end = run.execute(std::mem::take(&mut prompts)).await;
            aborted = ended_with(&end, StopReason::Aborted);
            failed = ended_with(&end, StopReason::Error);
            // An abort before the request fails the answer; no other run follows it.
            let next = if failed && cancel.is_cancelled() {
                NextStep::Settle
            } else {
                self.next_step(&end, &model)
            };
            self.end_run(end, &next);
            match self.follow(next, &cancel).await {
                Some(more) => prompts = more,
                None => {
                    // An abort may also end the wait for a retry, or a compaction.
                    aborted |= cancel.is_cancelled();
                    let outcome = if failed {
                        RunOutcome::Failed
                    } else {
                        RunOutcome::Completed
                    };
                    if aborted || !self.ask_before_settling(outcome, &cancel).await {
                        aborted |= cancel.is_cancelled();
                        break;
                    }
                }
            }
        }
        self.omit_cut_off_answer(&cancel).await;
        // Queued events belong to this run; hooks receive them also after an abort.
        self.emitter.drained(&CancellationToken::new()).await;
        if let Some(hooks) = &self.hooks {
            hooks.settled();
        }
        if let Some(gate) = &self.gate {
            gate.settled();
        }
        self.state().store.sync();
        self.report_new_notices();
        self.set_phase(Phase::Idle);
        {
            let mut state = self.state();
            state.run_prompt = None;
            state.hidden_tools.clear();
        }
        self.emit(Event::Settled { aborted });
        // The next prompt waits for the hooks.
        self.emitter.drained(&CancellationToken::new()).await;
        let outcome = match (aborted, failed) {
            (true, _) => "aborted",
            (false, true) => "failed",
            (false, false) => "done",
        };
        let duration_ms = begun.elapsed().as_millis() as u64;
        info!(outcome, duration_ms, "run ended");
    }

    /// Emits the notices of the session file since the last call.
    fn report_new_notices(&self) {
        let notices = self.state().store.take_notices();
        self.report(notices);
    }

    /// Emits the end of a run whose code panicked or was dropped, so that no client waits for it.
    pub fn close_broken_run(&self, error: &str) {
        error!(reason = error, "run broken");
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

    fn end_run(&self, end: RunEnd, next: &NextStep) {
        let will_retry = match next {
            NextStep::Retry { .. } => true,
            NextStep::Compact(CompactionReason::Overflow) => {
                !self.settings.behaviour.hide_run_after_overflow
            }
            _ => false,
        };
        let mut state = self.state();
        state.phase = Phase::Between;
        state.store.sync();
        drop(state);
        self.emit(Event::AgentEnd {
            messages: end.messages,
            will_retry,
        });
    }

    /// Decides the step after a run.
    fn next_step(&self, end: &RunEnd, model: &Model) -> NextStep {
        let Some(answer) = end.last.as_deref().and_then(Message::as_assistant) else {
            return NextStep::Settle;
        };
        if answer.stop_reason == StopReason::Aborted {
            return NextStep::Settle;
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
                    return NextStep::Retry {
                        attempt,
                        delay,
                        error,
                    };
                }
                let then = Box::new(self.compaction_step(answer, model));
                return NextStep::GiveUp { error, then };
            }
        }
        self.compaction_step(answer, model)
    }

    /// Returns the pause before a retry; it doubles with each attempt.
    pub fn retry_delay(&self, attempt: u32) -> Duration {
        let factor = 1u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        self.settings.retry_base_delay.saturating_mul(factor)
    }

    fn compaction_step(&self, answer: &AssistantMessage, model: &Model) -> NextStep {
        match self.compaction_due(answer, model) {
            CompactionDue::No => NextStep::Settle,
            CompactionDue::Yes(reason) => NextStep::Compact(reason),
            CompactionDue::AlreadyTried => NextStep::StillTooLong,
        }
    }

    /// Does the step after a run. Returns the prompts of another run, or `None` if no run follows.
    async fn follow(
        &self,
        next: NextStep,
        cancel: &CancellationToken,
    ) -> Option<Vec<Arc<Message>>> {
        match next {
            NextStep::Settle => None,
            NextStep::Retry {
                attempt,
                delay,
                error,
            } => self
                .wait_for_retry(attempt, delay, error, cancel)
                .await
                .then(Vec::new),
            NextStep::GiveUp { error, then } => {
                let attempt = std::mem::take(&mut self.state().retry_attempt);
                self.emit(Event::RetryEnd {
                    success: false,
                    attempt,
                    final_error: Some(error),
                });
                Box::pin(self.follow(*then, cancel)).await
            }
            NextStep::StillTooLong => {
                self.emit(Event::CompactionEnd {
                    reason: CompactionReason::Overflow,
                    result: None,
                    aborted: false,
                    will_retry: false,
                    error: Some("Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model.".into()),
                });
                None
            }
            NextStep::Compact(reason) => {
                let compacted = self.auto_compact(reason, cancel).await;
                let overflow = reason == CompactionReason::Overflow;
                let again = compacted && (overflow || self.state().has_queued());
                if !again {
                    return None;
                }
                tokio::select! {
                    () = cancel.cancelled() => return None,
                    () = tokio::time::sleep(PAUSE_AFTER_COMPACTION) => {}
                }
                self.continuation()
            }
        }
    }

    /// Returns the prompts of a run after a compaction: none if the conversation waits for an answer, otherwise the
    /// queued messages. `None` if everything is answered and nothing is queued.
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

    /// Waits before a retry. Returns false if the wait was cancelled.
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
            state.phase = Phase::RetryWait(wait.clone());
        }
        let max_attempts = self.settings.max_retries;
        info!(
            attempt,
            delay_ms = delay.as_millis() as u64,
            "waiting before a retry"
        );
        self.emit(Event::RetryStart {
            attempt,
            max_attempts,
            delay,
            error,
        });
        self.omit_last_answer(cancel).await;
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
            let replies = std::mem::take(&mut self.state().retry_aborts);
            replies.into_iter().for_each(Reply::done);
        }
        !cancelled
    }
}

impl Core {
    /// Leaves an answer without tool calls that the output limit cut off out of the conversation.
    async fn omit_cut_off_answer(&self, cancel: &CancellationToken) {
        let is_cut_off = |message: &Arc<Message>| {
            message.as_assistant().is_some_and(|answer| {
                answer.stop_reason == StopReason::Length && answer.tool_calls().next().is_none()
            })
        };
        let cut_off = self.state().messages.last().is_some_and(is_cut_off);
        if cut_off && self.settings.behaviour.record_omitted_answers {
            self.omit_last_answer(cancel).await;
        }
    }

    /// Compacts between two turns of a run if that is due after `answer`.
    pub async fn compact_between_turns(
        &self,
        answer: &AssistantMessage,
        model: &Model,
        cancel: &CancellationToken,
    ) {
        if !self.settings.behaviour.compact_between_turns {
            return;
        }
        if let CompactionDue::Yes(reason @ CompactionReason::Threshold) =
            self.compaction_due(answer, model)
        {
            self.auto_compact(reason, cancel).await;
            self.set_phase(Phase::Running);
        }
    }
}

fn ended_with(end: &RunEnd, reason: StopReason) -> bool {
    end.last
        .as_deref()
        .and_then(Message::as_assistant)
        .is_some_and(|answer| answer.stop_reason == reason)
}

/// The need for a compaction.
pub(crate) enum CompactionDue {
    No,
    Yes(CompactionReason),
    /// The context was compacted after an overflow and is still too long.
    AlreadyTried,
}

impl Core {
    /// Decides whether a compaction is due after `answer`.
    pub fn compaction_due(&self, answer: &AssistantMessage, model: &Model) -> CompactionDue {
        let mut state = self.state();
        if !state.auto_compaction || self.predates_compaction(&state.store, answer) {
            return CompactionDue::No;
        }
        let same_model = answer.provider == model.provider && answer.model == model.id;
        if same_model && is_overflow(answer, model.context_window) {
            if std::mem::replace(&mut state.overflow_handled, true) {
                return CompactionDue::AlreadyTried;
            }
            return CompactionDue::Yes(CompactionReason::Overflow);
        }
        let tokens = if answer.stop_reason == StopReason::Error {
            context_tokens(&state.messages).from_usage
        } else {
            Some(answer.usage.context_tokens())
        };
        if model.context_window == 0 {
            // The size of the window is not known.
            return CompactionDue::No;
        }
        let limit = model
            .context_window
            .saturating_sub(self.settings.reserve_tokens);
        match tokens {
            Some(tokens) if tokens > limit => CompactionDue::Yes(CompactionReason::Threshold),
            _ => CompactionDue::No,
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
            CompactionDue::Yes(reason) => Some(reason),
            CompactionDue::No | CompactionDue::AlreadyTried => None,
        }
    }

    /// Reports whether `answer` is older than the newest compaction, so that its token count does not describe the
    /// context.
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
