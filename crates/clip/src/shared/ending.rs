//! How processes end, and what becomes of their calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::departed::Departed;
use super::{Doom, Shared, Stage, Wish};
use crate::call::{Call, CallError};
use crate::limits::Limits;
use crate::{ClipError, Code};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with code 0.
    InPeace,
    /// Because we wished it to.
    Stopped,
    /// In any other way.
    Crashed,
}

/// Crashes close to each other.
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

    /// When the next process may start: the first crash costs nothing, from the second on each doubles the delay.
    pub(crate) fn next_start(&self, limits: &Limits) -> Option<Instant> {
        let last = self.last.filter(|_| self.count > 1)?;
        let doubled = 2_u32.saturating_pow((self.count - 2).min(16));
        let delay = limits.backoff.saturating_mul(doubled);
        Some(last + delay.min(limits.longest_backoff))
    }
}

impl Shared {
    /// The process shall end once it has nothing to do.
    pub(crate) fn renew(&self) {
        let mut state = self.state();
        state.stale = state.stage != Stage::Asleep;
        drop(state);
        self.work.notify_one();
    }

    /// The process must end. The first reason counts.
    pub(crate) fn condemn(&self, code: Code, manner: Wish, message: String) {
        self.state().doom.get_or_insert(Doom {
            error: ClipError::new(code, message),
            manner,
        });
        self.work.notify_one();
    }

    /// Ends all pending calls, and those that wait for a process that never got ready.
    pub(crate) fn fail_all(&self, error: &ClipError) {
        let mut state = self.state();
        let ready = state.was_ready;
        state.stage = Stage::Ending;
        let pending = std::mem::take(&mut state.pending);
        let waiting = if ready {
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

    /// The process is gone: calls it never touched are kept for the next one if it left in peace, the rest end.
    pub(crate) fn settle(&self, end: End, error: &ClipError) {
        let mut state = self.state();
        let mut pending: Vec<Arc<Call>> =
            std::mem::take(&mut state.pending).into_values().collect();
        pending.sort_by_key(|call| call.id.parse::<u64>().unwrap_or(u64::MAX));
        for call in pending.into_iter().rev() {
            if end == End::InPeace && call.may_resend() {
                state.waiting.push_front(call);
            } else {
                call.finish(Err(CallError::Unanswered(error.clone())));
            }
        }
        if !state.was_ready && end != End::Stopped {
            state.waiting.retain(|call| {
                let kept = end == End::InPeace && (call.resent() || call.may_resend());
                if !kept {
                    call.finish(Err(CallError::Unanswered(error.clone())));
                }
                kept
            });
        }
        state.fail_probes(error);
        state.stage = Stage::Asleep;
        state.outbox = None;
        state.exited = false;
        state.heard = false;
        state.was_ready = false;
        state.registered = false;
        state.doom = None;
        state.deaf = false;
        state.stale = false;
        state.departed = Departed::default();
        if state.retired.is_none() {
            state.wish = Wish::None;
        }
        drop(state);
        self.over.notify_waiters();
    }

    /// Whether a process is wanted. If not, the task that asks must end: the next call starts another.
    pub(crate) fn is_wanted(&self) -> bool {
        let mut state = self.state();
        if let Some(error) = state.retired.clone() {
            for call in state.waiting.drain(..) {
                call.finish(Err(CallError::Unanswered(error.clone())));
            }
            state.fail_probes(&error);
        }
        state.waiting.retain(|call| !call.is_over());
        state.probes.retain(|probe| !probe.is_closed());
        state.supervised = !state.waiting.is_empty() || !state.probes.is_empty();
        if !state.supervised {
            state.armed = None;
            drop(state);
            self.over.notify_waiters();
            return false;
        }
        true
    }

    /// Whether there is a process, or a task that may start one.
    pub(crate) fn is_alive(&self) -> bool {
        let state = self.state();
        state.stage != Stage::Asleep || state.supervised
    }

    /// Wishes for the end of the process; whether there is one.
    pub(crate) fn stop(&self, wish: Wish) -> bool {
        let mut state = self.state();
        state.wish = state.wish.max(wish);
        let alive = state.stage != Stage::Asleep;
        // Nobody would take back a wish about a process that is just being started.
        if !alive && state.retired.is_none() {
            state.wish = Wish::None;
        }
        drop(state);
        self.work.notify_one();
        self.room.notify_one();
        alive
    }

    /// No more calls, ever. The first reason counts.
    pub(crate) fn retire(&self, wish: Wish, why: ClipError) -> bool {
        let (error, waiting) = {
            let mut state = self.state();
            let error = state.retired.get_or_insert(why).clone();
            (error, std::mem::take(&mut state.waiting))
        };
        for call in waiting {
            call.finish(Err(CallError::Unanswered(error.clone())));
        }
        self.stop(wish)
    }
}
