//! Calls that ended before their process was done with them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tokio::time::Instant;

/// How many ended calls are remembered, so that late lines for them are told from nonsense.
const REMEMBERED: usize = 1024;

/// Calls that ended without their process being done with them.
#[derive(Debug, Default)]
pub(super) struct TimedOutCalls {
    /// The key in `late` of each call, for those that passed their deadline.
    calls: HashMap<Box<str>, Option<u64>>,
    order: VecDeque<Box<str>>,
    /// When each call that is still not answered passed its deadline, oldest first.
    late: BTreeMap<u64, Instant>,
    next: u64,
}

impl TimedOutCalls {
    /// Remembers a call; `expired` is when it passed its deadline, if it did.
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
        // Answered ones leave holes.
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

    /// Since when at least `count` calls are past their deadline without an answer.
    pub(super) fn late_since(&self, count: usize) -> Option<Instant> {
        self.late.values().nth(count.saturating_sub(1)).copied()
    }

    /// How many calls are past their deadline without an answer.
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
