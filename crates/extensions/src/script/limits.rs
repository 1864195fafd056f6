//! The limits of a script: time without returning, memory, and the cancellation of its calls.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::errors::ScriptError;

/// Bytes above the limit at which allocations fail. Scripts are interrupted at the limit itself, which ends them
/// cleanly; a failed allocation is an exception that a script can catch.
const HEADROOM: usize = 64 << 20;

/// Time that a job may run while one of the unfinished calls, which it may work for, is cancelled.
const ABORT_GRACE: Duration = Duration::from_millis(100);

/// The engine checks far more often than this while a script runs. A longer gap is time that the script spent waiting
/// for an operation, which does not count as running time.
const WAIT_GAP: Duration = Duration::from_millis(500);

/// A switch that ends the engine from another thread.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Interrupts the running script and all later ones.
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
    Abandoned,
    Stopped,
}

/// Enforces the limits of one engine, on its own thread.
pub(crate) struct Watch {
    busy_limit: Cell<Duration>,
    memory_limit: Cell<usize>,
    /// The limit of the allocator.
    most: Arc<AtomicUsize>,
    used: Arc<AtomicUsize>,
    stop: Arc<Stop>,
    turn: Cell<Instant>,
    last_check: Cell<Instant>,
    reason: Cell<Option<Reason>>,
    /// The last interruption was for memory.
    was_memory: Cell<bool>,
    running: RefCell<Option<Running>>,
    unfinished: RefCell<HashMap<u64, CancellationToken>>,
}

/// Converts a limit to a number of bytes.
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
            last_check: Cell::new(Instant::now()),
            reason: Cell::new(None),
            was_memory: Cell::new(false),
            running: RefCell::new(None),
            unfinished: RefCell::default(),
        }
    }

    /// Returns the counter of the allocator and its limit.
    pub(crate) fn memory(&self) -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
        (Arc::clone(&self.used), Arc::clone(&self.most))
    }

    /// Replaces the limits.
    pub(crate) fn set_limits(&self, busy_limit: Duration, memory_limit: Option<usize>) {
        let memory_limit = bytes(memory_limit);
        self.busy_limit.set(busy_limit);
        self.memory_limit.set(memory_limit);
        self.most.store(memory_limit + HEADROOM, Ordering::Relaxed);
    }

    /// Starts a new turn of the loop, with the full running time.
    pub(crate) fn begin(&self) {
        let now = Instant::now();
        self.turn.set(now);
        self.last_check.set(now);
    }

    /// Returns the time that the current turn may still take.
    pub(crate) fn time_left(&self) -> Duration {
        let spent = self.turn.get().elapsed();
        self.busy_limit.get().saturating_sub(spent)
    }

    /// Records that the script waited for an operation that is limited by [`Watch::time_left`], so that this time
    /// counts.
    pub(crate) fn waited(&self) {
        self.last_check.set(Instant::now());
    }

    /// Records that the script runs call `id` on behalf of `label` until [`Watch::leave`]. Jobs that the call leaves
    /// behind may continue until [`Watch::ended`].
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

    /// Records that call `id` has ended.
    pub(crate) fn ended(&self, id: u64) {
        self.unfinished.borrow_mut().remove(&id);
    }

    fn has_cancelled_call(&self) -> bool {
        self.unfinished
            .borrow()
            .values()
            .any(CancellationToken::is_cancelled)
    }

    /// Reports whether to interrupt the script. The engine calls it every few thousand steps.
    pub(crate) fn must_stop(&self) -> bool {
        let gap = self.last_check.replace(Instant::now()).elapsed();
        if gap > WAIT_GAP {
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
        } else if self.turn.get().elapsed() > ABORT_GRACE && self.has_cancelled_call() {
            Reason::Abandoned
        } else {
            return false;
        };
        self.reason.set(Some(reason));
        true
    }

    /// Returns the error of all calls after memory stayed over the limit.
    pub(crate) fn memory_error(&self) -> ScriptError {
        ScriptError::Exhausted(format!(
            "The extensions held more than {} MB of memory and were unloaded",
            self.memory_limit.get() >> 20,
        ))
    }

    /// Reports whether memory is still over the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.memory_limit.get()
    }

    /// Reports whether the last interruption was for memory.
    pub(crate) fn was_memory(&self) -> bool {
        self.was_memory.get()
    }

    /// Returns the reason of the last interruption. `location` is the location of the script, from its stack trace.
    pub(crate) fn interruption(&self, location: Option<&str>) -> Option<ScriptError> {
        let reason = self.reason.take()?;
        self.was_memory.set(reason == Reason::Memory);
        let running = self
            .running
            .borrow()
            .as_ref()
            .map(|call| call.label.clone());
        let during = match (location, running) {
            (Some(location), Some(label)) => format!(" ({label}, at {location})"),
            (Some(location), None) => format!(" (at {location})"),
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
            Reason::Abandoned => ScriptError::Interrupted(format!(
                "The script was interrupted: a call it ran for was aborted{during}"
            )),
            Reason::Stopped => ScriptError::Ended,
        })
    }
}
