//! Short busy waiting before a thread sleeps.
//!
//! Waking a sleeping thread takes longer than most calls of a script. While calls follow each other quickly, both sides
//! poll for the next one for a short time and sleep only if none arrives.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that a side polls before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// An item that took no longer than this, waking included, is likely to arrive within [`SPIN_TIME`] the next time.
const QUICK_TIME: Duration = Duration::from_micros(250);

/// With a single processor the other side cannot continue while this one polls.
static SEVERAL_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// Records whether items have been arriving quickly.
#[derive(Debug, Default)]
pub(crate) struct SpinWait {
    is_quick: AtomicBool,
}

impl SpinWait {
    /// Polls for up to [`SPIN_TIME`], if the last item arrived quickly.
    pub(crate) fn poll<T>(&self, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
        if !self.is_quick.load(Ordering::Relaxed) || !*SEVERAL_PROCESSORS {
            return None;
        }
        let since = Instant::now();
        loop {
            if let Some(found) = poll() {
                return Some(found);
            }
            if since.elapsed() >= SPIN_TIME {
                self.is_quick.store(false, Ordering::Relaxed);
                return None;
            }
            // Other threads run first: often one of them produces the awaited item.
            std::thread::yield_now();
        }
    }

    /// Records the time until the awaited item arrived.
    pub(crate) fn took(&self, time: Duration) {
        self.is_quick.store(time <= QUICK_TIME, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_happens_only_after_a_quick_arrival() {
        let spin_wait = SpinWait::default();
        assert_eq!(spin_wait.poll(|| Some(())), None, "nothing is known yet");
        spin_wait.took(QUICK_TIME);
        let found = spin_wait.poll(|| Some(()));
        assert_eq!(found.is_some(), *SEVERAL_PROCESSORS);
        spin_wait.took(QUICK_TIME * 2);
        assert_eq!(spin_wait.poll(|| Some(())), None);
    }

    #[test]
    fn polling_ends_when_nothing_arrives() {
        let spin_wait = SpinWait::default();
        spin_wait.took(Duration::ZERO);
        assert_eq!(spin_wait.poll(|| None::<()>), None);
        assert_eq!(spin_wait.poll(|| Some(())), None, "once is enough");
    }
}
