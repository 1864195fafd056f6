//! What a script may not exceed: time without returning, memory, and the patience of its caller.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::errors::ScriptError;

/// How far above the limit memory may go before it is refused. An interrupted script ends cleanly; a
/// refused allocation is an exception at a place of the script's choosing.
const HEADROOM: usize = 64 << 20;

/// How long a script that waited may go on after a call it may work for was given up.
const GRACE: Duration = Duration::from_millis(100);

/// The engine asks far more often than this while a script runs. A longer gap is time the script
/// spent waiting for an operation, which is not held against it.
const GAP: Duration = Duration::from_millis(500);

/// Ends the engine from outside.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Interrupts whatever runs, now and from now on.
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Busy,
    Memory,
    Aborted,
    /// Like `Aborted`, in a job that may belong to any of the unfinished calls.
    GivenUp,
    Stopped,
}

/// Watches one engine from its own thread.
pub(crate) struct Watch {
    busy_limit: Cell<Duration>,
    memory_limit: Cell<usize>,
    /// What the allocator never exceeds.
    most: Arc<AtomicUsize>,
    used: Arc<AtomicUsize>,
    stop: Arc<Stop>,
    turn: Cell<Instant>,
    asked: Cell<Instant>,
    reason: Cell<Option<Reason>>,
    running: RefCell<Option<Running>>,
    unfinished: RefCell<HashMap<u64, CancellationToken>>,
}

/// A limit as a number.
fn bytes(memory_limit: Option<usize>) -> usize {
    memory_limit.map_or(isize::MAX as usize - HEADROOM, |limit| {
        limit.min(isize::MAX as usize - HEADROOM)
    })
}

#[derive(Clone)]
struct Running {
    label: String,
    cancel: CancellationToken,
}

impl Watch {
    pub(crate) fn new(busy_limit: Duration, memory_limit: Option<usize>, stop: Arc<Stop>) -> Self {
        let memory_limit = bytes(memory_limit);
        Self {
            busy_limit: Cell::new(busy_limit),
            memory_limit: Cell::new(memory_limit),
            most: Arc::new(AtomicUsize::new(memory_limit + HEADROOM)),
            used: Arc::default(),
            stop,
            turn: Cell::new(Instant::now()),
            asked: Cell::new(Instant::now()),
            reason: Cell::new(None),
            running: RefCell::new(None),
            unfinished: RefCell::default(),
        }
    }

    /// Where the allocator counts, and what it must not exceed.
    pub(crate) fn memory(&self) -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
        (Arc::clone(&self.used), Arc::clone(&self.most))
    }

    /// From here on these limits hold.
    pub(crate) fn set_limits(&self, busy_limit: Duration, memory_limit: Option<usize>) {
        let memory_limit = bytes(memory_limit);
        self.busy_limit.set(busy_limit);
        self.memory_limit.set(memory_limit);
        self.most.store(memory_limit + HEADROOM, Ordering::Relaxed);
    }

    /// A new turn of the loop begins: the script starts with all its time.
    pub(crate) fn begin(&self) {
        let now = Instant::now();
        self.turn.set(now);
        self.asked.set(now);
    }

    /// How long the current turn may still take.
    pub(crate) fn time_left(&self) -> Duration {
        let spent = self.turn.get().elapsed();
        self.busy_limit.get().saturating_sub(spent)
    }

    /// The script has waited for an operation that is bounded by [`Watch::time_left`]: the gap is not excused.
    pub(crate) fn waited(&self) {
        self.asked.set(Instant::now());
    }

    /// The script runs call `id` on behalf of `label` until [`Watch::leave`]; what it leaves behind
    /// may go on until [`Watch::ended`].
    pub(crate) fn enter(&self, id: u64, label: &str, cancel: &CancellationToken) {
        self.begin();
        self.unfinished.borrow_mut().insert(id, cancel.clone());
        *self.running.borrow_mut() = Some(Running {
            label: label.to_owned(),
            cancel: cancel.clone(),
        });
    }

    pub(crate) fn leave(&self) {
        *self.running.borrow_mut() = None;
    }

    /// Call `id` is settled.
    pub(crate) fn ended(&self, id: u64) {
        self.unfinished.borrow_mut().remove(&id);
    }

    fn one_was_given_up(&self) -> bool {
        self.unfinished
            .borrow()
            .values()
            .any(CancellationToken::is_cancelled)
    }

    /// Asked by the engine every few thousand steps: whether to interrupt.
    pub(crate) fn must_stop(&self) -> bool {
        let gap = self.asked.replace(Instant::now()).elapsed();
        if gap > GAP {
            self.turn.set(self.turn.get() + gap);
        }
        let reason = if self.stop.is_set() {
            Reason::Stopped
        } else if self.turn.get().elapsed() > self.busy_limit.get() {
            Reason::Busy
        } else if self.used.load(Ordering::Relaxed) > self.memory_limit.get() {
            Reason::Memory
        } else if self
            .running
            .borrow()
            .as_ref()
            .is_some_and(|call| call.cancel.is_cancelled())
        {
            Reason::Aborted
        } else if self.turn.get().elapsed() > GRACE && self.one_was_given_up() {
            Reason::GivenUp
        } else {
            return false;
        };
        self.reason.set(Some(reason));
        true
    }

    /// The error of all calls when memory stays over the limit.
    pub(crate) fn exhaustion(&self) -> ScriptError {
        ScriptError::Exhausted(format!(
            "The extensions held more than {} MB of memory and were unloaded",
            self.memory_limit.get() >> 20,
        ))
    }

    /// Whether memory is still over the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.memory_limit.get()
    }

    /// Why the script was interrupted a moment ago. `place` is where it was, as its stack tells.
    pub(crate) fn interruption(&self, place: Option<&str>) -> Option<ScriptError> {
        let reason = self.reason.take()?;
        let running = self
            .running
            .borrow()
            .as_ref()
            .map(|call| call.label.clone());
        let during = match (place, running) {
            (Some(place), Some(label)) => format!(" ({label}, at {place})"),
            (Some(place), None) => format!(" (at {place})"),
            (None, Some(label)) => format!(" ({label})"),
            (None, None) => String::new(),
        };
        Some(match reason {
            Reason::Busy => ScriptError::Interrupted(format!(
                "The script was interrupted: it ran for more than {} s without returning{during}",
                self.busy_limit.get().as_secs_f64(),
            )),
            Reason::Memory => ScriptError::Interrupted(format!(
                "The script was interrupted: it holds more than {} MB of memory{during}",
                self.memory_limit.get() >> 20,
            )),
            Reason::Aborted => ScriptError::Aborted,
            Reason::GivenUp => ScriptError::Interrupted(format!(
                "The script was interrupted: a call it ran for was aborted{during}"
            )),
            Reason::Stopped => ScriptError::Ended,
        })
    }
}
