//! Looking again before sleeping.
//!
//! Waking a thread that sleeps takes longer than most calls of a script do. Where one call follows the other, both
//! sides look for what comes next for a moment, and sleep only if nothing does.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long somebody looks before sleeping.
const MOMENT: Duration = Duration::from_micros(50);
/// What took no longer than this, waking included, may well be there within a moment the next time.
const SOON: Duration = Duration::from_micros(250);

/// With a single processor the other side cannot go on while this one looks.
static SEVERAL_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// Whether what one side waits for has been coming quickly.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    is_quick: AtomicBool,
}

impl Pace {
    /// Looks for a moment, if that was worth it the last time.
    pub(crate) fn look<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if !self.is_quick.load(Ordering::Relaxed) || !*SEVERAL_PROCESSORS {
            return None;
        }
        let since = Instant::now();
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            if since.elapsed() >= MOMENT {
                self.is_quick.store(false, Ordering::Relaxed);
                return None;
            }
            // Whoever else has something to do goes first: often it is what is waited for.
            std::thread::yield_now();
        }
    }

    /// Says how long it took until what was waited for came.
    pub(crate) fn took(&self, time: Duration) {
        self.is_quick.store(time <= SOON, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_quickly_is_looked_for() {
        let pace = Pace::default();
        assert_eq!(pace.look(|| Some(())), None, "nothing is known yet");
        pace.took(SOON);
        let found = pace.look(|| Some(()));
        assert_eq!(found.is_some(), *SEVERAL_PROCESSORS);
        pace.took(SOON * 2);
        assert_eq!(pace.look(|| Some(())), None);
    }

    #[test]
    fn a_look_ends_when_nothing_comes() {
        let pace = Pace::default();
        pace.took(Duration::ZERO);
        assert_eq!(pace.look(|| None::<()>), None);
        assert_eq!(pace.look(|| Some(())), None, "once is enough");
    }
}
