//! One instance of the extensions: everything loaded for one session, or since the last reload.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::loaded::Summary;
use super::moments;
use crate::Generation;

pub(super) struct Instance {
    /// Counts from 1. JavaScript sends it with every request.
    pub number: u64,
    /// The generation that holds its JavaScript.
    pub generation: Generation,
    pub summary: Summary,
    listens: AtomicU64,
    registered: Mutex<Registered>,
    /// The number of calls in progress, and whether another instance has replaced this one.
    use_count: Mutex<(usize, bool)>,
}

#[derive(Default)]
struct Registered {
    events: HashSet<String>,
    commands: Vec<Value>,
}

impl Instance {
    pub fn new(number: u64, generation: Generation, mut summary: Summary) -> Self {
        let commands = std::mem::take(&mut summary.commands);
        let instance = Self {
            number,
            generation,
            listens: AtomicU64::new(0),
            registered: Mutex::new(Registered {
                commands,
                ..Registered::default()
            }),
            use_count: Mutex::default(),
            summary,
        };
        for event in instance
            .summary
            .extensions
            .iter()
            .flat_map(|card| &card.events)
        {
            instance.listen(event);
        }
        instance
    }

    /// Records a new handler of `event`. Returns the moments that the instance now needs.
    pub fn listen(&self, event: &str) -> u64 {
        self.registered().events.insert(event.to_owned());
        let bits = moments::bits(event);
        self.listens.fetch_or(bits, Ordering::Relaxed) | bits
    }

    /// Returns the moments that the handlers need.
    pub fn moments(&self) -> u64 {
        self.listens.load(Ordering::Relaxed)
    }

    /// Reports whether a handler for `event` exists.
    pub fn listens(&self, event: &str) -> bool {
        self.registered().events.contains(event)
    }

    pub fn set_commands(&self, commands: Vec<Value>) {
        self.registered().commands = commands;
    }

    /// Returns the commands as `get_commands` lists them.
    pub fn commands(&self) -> Vec<Value> {
        self.registered().commands.clone()
    }

    pub fn has_command(&self, name: &str) -> bool {
        let registered = self.registered();
        registered
            .commands
            .iter()
            .any(|command| command["name"] == name)
    }

    /// Counts the start of a call.
    pub fn enter(&self) {
        self.use_count().0 += 1;
    }

    /// Counts the end of a call. Returns whether the instance can be closed.
    pub fn leave(&self) -> bool {
        let mut count = self.use_count();
        count.0 = count.0.saturating_sub(1);
        *count == (0, true)
    }

    /// Marks the instance as replaced. Returns whether it can be closed.
    pub fn retire(&self) -> bool {
        let mut count = self.use_count();
        count.1 = true;
        count.0 == 0
    }

    fn use_count(&self) -> MutexGuard<'_, (usize, bool)> {
        self.use_count
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn registered(&self) -> MutexGuard<'_, Registered> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
