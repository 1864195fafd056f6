//! Calls that timed out or were cancelled before their process answered them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tokio::time::Instant;

/// Number of ended calls that are remembered. The oldest is forgotten first.
const REMEMBERED: usize = 1024;

/// Calls that ended, at their deadline or because they were cancelled, before their process answered them.
#[derive(Debug, Default)]
pub(super) struct TimedOutCalls {
    /// The key in `late` of each call that passed its deadline; `None` for cancelled calls.
    calls: HashMap<Box<str>, Option<u64>>,
    order: VecDeque<Box<str>>,
    /// The deadlines of calls that are still not answered, in the order in which they were added.
    late: BTreeMap<u64, Instant>,
    next: u64,
}

impl TimedOutCalls {
    /// Remembers a call; `expired` is its deadline, if that has passed.
    pub(super) fn add(&mut self, id: &str, expired: Option<Instant>) {
        let key = expired.map(|when| {
            self.next += 1;
            self.late.insert(self.next, when);
            self.next
        });
        self.calls.insert(id.into(), key);
        self.order.push_back(id.into());
        while self.calls.len() > REMEMBERED {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.answered(&oldest);
        }
        // Answered calls leave their ids in the queue.
        if self.order.len() > REMEMBERED * 2 {
            let calls = &self.calls;
            self.order.retain(|id| calls.contains_key(id));
        }
    }

    pub(super) fn answered(&mut self, id: &str) {
        if let Some(Some(key)) = self.calls.remove(id) {
            self.late.remove(&key);
        }
    }

    /// Returns the time since which at least `count` calls are past their deadline without an answer.
    pub(super) fn late_since(&self, count: usize) -> Option<Instant> {
        self.late.values().nth(count.saturating_sub(1)).copied()
    }

    /// Returns the number of calls that are past their deadline without an answer.
    pub(super) fn late(&self) -> usize {
        self.late.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_calls_count_from_their_deadline_until_they_are_answered() {
        let mut timed_out_calls = TimedOutCalls::default();
        let now = Instant::now();
        let after = |seconds| now + std::time::Duration::from_secs(seconds);
        timed_out_calls.add("cancelled", None);
        for (id, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
            timed_out_calls.add(id, Some(after(seconds)));
        }
        assert_eq!(timed_out_calls.late_since(3), Some(after(3)));
        assert_eq!(timed_out_calls.late_since(4), None);
        timed_out_calls.answered("a");
        timed_out_calls.answered("cancelled");
        assert_eq!(
            (timed_out_calls.late(), timed_out_calls.late_since(3)),
            (2, None)
        );
        for number in 0..REMEMBERED * 3 {
            timed_out_calls.add(&number.to_string(), Some(now));
        }
        assert_eq!(
            (timed_out_calls.calls.len(), timed_out_calls.late()),
            (REMEMBERED, REMEMBERED)
        );
    }
}
