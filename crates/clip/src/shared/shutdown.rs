//! The end of processes, and the fate of their calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{FatalError, Retired, SharedClip, Shutdown};
use crate::call::{CallError, ClipCall};
use crate::limits::Limits;
use crate::{ClipError, Code};

/// The way in which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// It exited by itself with code 0.
    Clean,
    /// The owner asked for it.
    Stopped,
    /// It ended in any other way.
    Crashed,
}

/// Counts crashes that follow each other closely.
#[derive(Debug, Default)]
pub(crate) struct Crashes {
    last: Option<Instant>,
    count: u32,
}

impl Crashes {
    pub(crate) fn add(&mut self, now: Instant, window: Duration) {
        let again = self
            .last
            .is_some_and(|last| now.duration_since(last) < window);
        self.count = if again { self.count + 1 } else { 1 };
        self.last = Some(now);
    }

    /// Returns the time at which the next process may start. The first crash causes no delay; from the second on, each
    /// crash doubles it.
    pub(crate) fn next_start(&self, limits: &Limits) -> Option<Instant> {
        let last = self.last.filter(|_| self.count > 1)?;
        let doubled = 2_u32.saturating_pow((self.count - 2).min(16));
        let delay = limits.backoff.saturating_mul(doubled);
        Some(last + delay.min(limits.longest_backoff))
    }
}

impl SharedClip {
    /// Ends the process once it has no work.
    pub(crate) fn renew(&self) {
        if let Some(process) = self.state().stage.process_mut() {
            process.make_stale();
        }
        self.work.notify_one();
    }

    /// Records an error for which the process must end. Only the first error takes effect.
    pub(crate) fn set_fatal(&self, code: Code, shutdown: Shutdown, message: String) {
        if let Some(process) = self.state().stage.process_mut() {
            process.fail(FatalError {
                error: ClipError::new(code, message),
                shutdown,
            });
        }
        self.work.notify_one();
    }

    /// Ends all pending calls, and the calls and probes that wait for a process that never became ready.
    pub(crate) fn fail_all(&self, error: &ClipError) {
        let mut state = self.state();
        state.stage.shut_down();
        let pending = std::mem::take(&mut state.pending);
        let waiting = if state.stage.was_ready() {
            VecDeque::new()
        } else {
            state.fail_probes(error);
            std::mem::take(&mut state.waiting)
        };
        drop(state);
        for call in pending.values().chain(&waiting) {
            call.finish(Err(CallError::Unanswered(error.clone())));
        }
        self.room.notify_one();
    }

    /// Handles the end of a process. After a clean exit, calls that it never answered wait for the next process; all
    /// other calls end.
    pub(crate) fn settle(&self, end: ProcessEnd, error: &ClipError) {
        let mut state = self.state();
        let mut pending: Vec<Arc<ClipCall>> =
            std::mem::take(&mut state.pending).into_values().collect();
        pending.sort_by_key(|call| call.id.parse::<u64>().unwrap_or(u64::MAX));
        for call in pending.into_iter().rev() {
            if end == ProcessEnd::Clean && call.may_resend() {
                state.waiting.push_front(call);
            } else {
                call.finish(Err(CallError::Unanswered(error.clone())));
            }
        }
        if !state.stage.was_ready() && end != ProcessEnd::Stopped {
            state.waiting.retain(|call| {
                let kept = end == ProcessEnd::Clean && (call.resent() || call.may_resend());
                if !kept {
                    call.finish(Err(CallError::Unanswered(error.clone())));
                }
                kept
            });
        }
        state.fail_probes(error);
        state.stage.ended();
        drop(state);
        self.over.notify_waiters();
    }

    /// Reports whether a process is needed. If not, the calling task must end; the next call starts another.
    pub(crate) fn is_wanted(&self) -> bool {
        let mut state = self.state();
        if let Some(error) = state.retired.as_ref().map(|retired| retired.error.clone()) {
            for call in state.waiting.drain(..) {
                call.finish(Err(CallError::Unanswered(error.clone())));
            }
            state.fail_probes(&error);
        }
        state.waiting.retain(|call| !call.is_over());
        state.probes.retain(|probe| !probe.is_closed());
        if state.waiting.is_empty() && state.probes.is_empty() {
            state.stage.sleep();
            state.armed = None;
            drop(state);
            self.over.notify_waiters();
            return false;
        }
        true
    }

    /// Reports whether there is a process, or a task that may start one.
    pub(crate) fn is_alive(&self) -> bool {
        !self.state().stage.is_asleep()
    }

    /// Requests the end of the process. Reports whether there is one; if not, the request is dropped, because it would
    /// end the process that is just being started.
    pub(crate) fn stop(&self, shutdown: Shutdown) -> bool {
        let alive = match self.state().stage.process_mut() {
            Some(process) => {
                process.request(shutdown);
                true
            }
            None => false,
        };
        self.work.notify_one();
        self.room.notify_one();
        alive
    }

    /// Accepts no more calls. Only the first reason and the strongest request take effect.
    pub(crate) fn retire(&self, shutdown: Shutdown, error: ClipError) {
        let (error, waiting) = {
            let mut state = self.state();
            let retired = state.retired.get_or_insert(Retired { error, shutdown });
            retired.shutdown = retired.shutdown.max(shutdown);
            let error = retired.error.clone();
            (error, std::mem::take(&mut state.waiting))
        };
        for call in waiting {
            call.finish(Err(CallError::Unanswered(error.clone())));
        }
        self.work.notify_one();
        self.room.notify_one();
    }

    /// Returns the strongest request to end the process.
    pub(crate) fn shutdown_requested(&self) -> Option<Shutdown> {
        let state = self.state();
        let process = state.stage.process()?;
        let retired = state.retired.as_ref().map(|retired| retired.shutdown);
        process.requested().max(retired)
    }
}
