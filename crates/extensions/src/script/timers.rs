//! The due times of a generation's timers. The callbacks are in the script.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use rquickjs::{Function, Persistent};

/// The timers of one generation.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeMap<(Instant, u64), u64>,
    keys: HashMap<u64, (Instant, u64)>,
    immediate: VecDeque<u64>,
    started: u64,
    fire: Option<Persistent<Function<'static>>>,
}

impl Timers {
    /// Sets the function that is called with a timer that is due.
    pub(crate) fn set_fire(&mut self, fire: Persistent<Function<'static>>) {
        self.fire = Some(fire);
    }

    pub(crate) fn fire(&self) -> Option<Persistent<Function<'static>>> {
        self.fire.clone()
    }

    /// Starts or restarts `timer`.
    pub(crate) fn start(&mut self, timer: u64, after: Duration) {
        self.stop(timer);
        self.started += 1;
        let key = (Instant::now() + after, self.started);
        self.due.insert(key, timer);
        self.keys.insert(timer, key);
    }

    /// Fires `timer` in the next turn.
    pub(crate) fn soon(&mut self, timer: u64) {
        self.immediate.push_back(timer);
    }

    pub(crate) fn stop(&mut self, timer: u64) {
        if let Some(key) = self.keys.remove(&timer) {
            self.due.remove(&key);
        }
        self.immediate.retain(|waiting| *waiting != timer);
    }

    /// Returns the time at which the next timer is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        if !self.immediate.is_empty() {
            return Some(Instant::now());
        }
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Removes and returns one timer that is due, timers before immediates.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u64> {
        if let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            self.keys.remove(&timer);
            return Some(timer);
        }
        self.immediate.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
