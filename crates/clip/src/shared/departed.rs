//! Calls that ended before their process was done with them.

use std::collections::{HashMap, VecDeque};

/// How many ended calls are remembered, so that late lines for them are told from nonsense.
const REMEMBERED: usize = 1024;

/// Calls that ended without their process being done with them.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// Whether each passed its deadline.
    calls: HashMap<Box<str>, bool>,
    order: VecDeque<Box<str>>,
    pub(super) zombies: usize,
}

impl Departed {
    pub(super) fn add(&mut self, id: &str, expired: bool) {
        self.calls.insert(id.into(), expired);
        self.order.push_back(id.into());
        self.zombies += usize::from(expired);
        while self.calls.len() > REMEMBERED {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.calls.remove(&oldest);
        }
        // Answered ones leave holes.
        if self.order.len() > REMEMBERED * 2 {
            let calls = &self.calls;
            self.order.retain(|id| calls.contains_key(id));
        }
    }

    pub(super) fn answered(&mut self, id: &str) {
        let expired = self.calls.remove(id).unwrap_or(false);
        self.zombies -= usize::from(expired).min(self.zombies);
    }
}
