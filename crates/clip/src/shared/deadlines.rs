//! Deadlines: calls end when theirs pass, and a process that leaves its calls unanswered for long is ended.

use std::sync::Arc;

use tokio::time::Instant;

use super::{FatalError, ProcessState, SharedClip, Shutdown};
use crate::call::{CallError, ClipCall};
use crate::codec::{self, DetectedDialect};
use crate::{ClipError, Code};

impl SharedClip {
    /// Ends a call whose answer is not wanted any more; `expired` is when it passed its deadline, if it did.
    pub(super) fn give_up(
        &self,
        state: &mut ProcessState,
        call: &ClipCall,
        expired: Option<Instant>,
        error: ClipError,
    ) {
        if state.pending.remove(&call.id).is_some() {
            state.timed_out_calls.add(&call.id, expired);
            if state.detected_dialect == Some(DetectedDialect::Direct)
                && let Some(outbox) = &state.outbox
                && outbox.bytes() < self.limits.outgoing
            {
                // Words that a program can tell apart, as peers further away get them.
                let reason = if expired.is_some() {
                    Code::DeadlineExceeded
                } else {
                    Code::Canceled
                };
                outbox.push(codec::cancel(&call.id, reason.as_str()).into());
            }
            state.idle_since = Instant::now();
        } else {
            state.waiting.retain(|waiting| waiting.id != call.id);
        }
        call.finish(Err(CallError::Unanswered(error)));
        self.pump(state);
    }

    /// Notes that the process does something, so that it does not count as hung.
    pub(crate) fn progressed(&self) {
        self.state().progress = Instant::now();
    }

    /// Ends every call whose time is over, and a process that hangs. Returns when to look again.
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
        if hung.is_some_and(|hung| hung <= now) && state.fatal.is_none() {
            let message = format!(
                "clip \"{}\" was stopped: {} calls passed their deadline and were never answered",
                self.alias(),
                state.timed_out_calls.late()
            );
            state.fatal = Some(FatalError {
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

    /// When the process counts as hung, if nothing comes from it until then.
    ///
    /// A deadline is the choice of one caller and says nothing about the clip, so calls count long after theirs, and only while
    /// the process does nothing for other callers. Those that still wait for it are given much longer.
    fn hangs_at(&self, state: &ProcessState) -> Option<Instant> {
        let late = state.timed_out_calls.late_since(self.limits.late_calls)?;
        let silence = if state.pending.is_empty() {
            self.limits.late_time
        } else {
            self.limits.hung_time
        };
        Some((late + self.limits.late_time).max(state.progress + silence))
    }
}
