//! Deadlines: ends calls when theirs pass, and processes that leave calls unanswered for long.

use std::sync::Arc;

use tokio::time::Instant;

use super::{FatalError, SharedClip, SharedState, Shutdown};
use crate::call::{CallError, ClipCall};
use crate::codec::{self, DetectedDialect};
use crate::{ClipError, Code};

impl SharedClip {
    /// Ends a call whose answer is no longer needed; `expired` is its deadline, if that has passed.
    pub(super) fn give_up(
        &self,
        state: &mut SharedState,
        call: &ClipCall,
        expired: Option<Instant>,
        error: ClipError,
    ) {
        if state.pending.remove(&call.id).is_some() {
            let dialect = state.detected_dialect;
            if let Some(process) = state.stage.process_mut() {
                process.timed_out_calls.add(&call.id, expired);
            }
            if dialect == Some(DetectedDialect::Direct)
                && let Some(process) = state.stage.process()
                && process.outbox.bytes() < self.limits.outgoing
            {
                // The reason is a status code that programs can compare, the same that remote providers receive.
                let reason = if expired.is_some() {
                    Code::DeadlineExceeded
                } else {
                    Code::Canceled
                };
                process
                    .outbox
                    .push(codec::cancel(&call.id, reason.as_str()).into());
            }
            state.idle_since = Instant::now();
        } else {
            state.waiting.retain(|waiting| waiting.id != call.id);
        }
        call.finish(Err(CallError::Unanswered(error)));
        self.pump(state);
    }

    /// Notes that the process did something, so that it does not count as hung.
    pub(crate) fn progressed(&self) {
        self.state().progressed();
    }

    /// Ends every call whose deadline has passed, and a process that hangs. Returns the time of the next check.
    pub(crate) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let calls = || state.pending.values().chain(&state.waiting);
        let late: Vec<(Arc<ClipCall>, Instant)> = calls()
            .filter_map(|call| Some((call.clone(), call.deadline.filter(|at| *at <= now)?)))
            .collect();
        for (call, deadline) in &late {
            let message = format!("clip \"{}\" did not answer in time", self.alias());
            let error = ClipError::new(Code::DeadlineExceeded, message);
            self.give_up(&mut state, call, Some(*deadline), error);
        }
        if !late.is_empty() {
            self.room.notify_one();
        }
        let hung = self.hangs_at(&state);
        if hung.is_some_and(|hung| hung <= now)
            && let Some(process) = state.stage.process_mut()
        {
            let message = format!(
                "clip \"{}\" was stopped: {} calls passed their deadline and were never answered",
                self.alias(),
                process.timed_out_calls.late()
            );
            process.fail(FatalError {
                error: ClipError::new(Code::Unavailable, message),
                shutdown: Shutdown::Immediate,
            });
        }
        let calls = state.pending.values().chain(&state.waiting);
        state.armed = calls.filter_map(|call| call.deadline).min();
        state
            .armed
            .into_iter()
            .chain(hung.filter(|hung| *hung > now))
            .min()
    }

    /// Returns the time at which the process counts as hung if it sends nothing until then.
    ///
    /// One caller chooses a deadline, so a missed one does not prove a fault of the clip: a call counts only long after
    /// its deadline, and only while the process does nothing for other callers. While other calls are pending, the
    /// process has much longer.
    fn hangs_at(&self, state: &SharedState) -> Option<Instant> {
        let process = state.stage.process()?;
        let late = process.timed_out_calls.late_since(self.limits.late_calls)?;
        let silence = if state.pending.is_empty() {
            self.limits.late_time
        } else {
            self.limits.hung_time
        };
        Some((late + self.limits.late_time).max(process.progress + silence))
    }
}
