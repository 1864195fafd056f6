//! What is going on on a connection, so that one on which nothing does can be closed.
//!
//! HTTP's own timers cost a timer per request; this costs two looks at the clock, and one timer per connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::options::Limits;

/// Shared by the socket, the calls and the watch over both.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    calls: AtomicUsize,
    /// When a call last ended, in microseconds since the start; 0 if none has.
    last: AtomicU64,
    /// When bytes were last written without a call: the end of an answer, or of a ping.
    wrote: AtomicU64,
    /// When bytes first came that belong to no call yet; 0 if there are none.
    knock: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            calls: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            wrote: AtomicU64::new(0),
            knock: AtomicU64::new(0),
        }
    }

    /// Bytes were read from the socket.
    pub(crate) fn read(&self) {
        if self.calls.load(Relaxed) == 0 && self.knock.load(Relaxed) == 0 {
            self.knock.store(self.now().max(1), Relaxed);
        }
    }

    /// Bytes were written to the socket.
    pub(crate) fn wrote(&self) {
        if self.calls.load(Relaxed) == 0 {
            self.wrote.store(self.now(), Relaxed);
        }
    }

    /// A call has begun; it lasts as long as the guard.
    pub(crate) fn call(self: &Arc<Self>) -> Guard {
        self.calls.fetch_add(1, Relaxed);
        self.knock.store(0, Relaxed);
        Guard(Arc::clone(self))
    }

    /// Whether a call is going on.
    pub(crate) fn has_call(&self) -> bool {
        self.calls.load(Relaxed) > 0
    }

    /// Whether there was never a call.
    pub(crate) fn is_unused(&self) -> bool {
        !self.has_call() && self.last.load(Relaxed) == 0
    }

    /// How long the connection may go on as it is. Zero: it has been idle too long.
    pub(crate) fn left(&self, limits: &Limits, pings: Pings) -> Duration {
        if self.calls.load(Relaxed) > 0 {
            return limits.idle_time;
        }
        let last = self.last.load(Relaxed);
        match (pings, self.knock.load(Relaxed)) {
            // Pings are written too, so that only calls count.
            (Pings::Yes, _) if self.is_unused() => self.left_of(limits.head_time, 0),
            (Pings::Yes, _) => self.left_of(limits.idle_time, last),
            (Pings::No, knock) => {
                let last = last.max(self.wrote.load(Relaxed));
                let idle = self.left_of(limits.idle_time, last);
                match knock {
                    0 => idle,
                    knock => idle.min(self.left_of(limits.head_time, knock)),
                }
            }
        }
    }

    /// What is left of `limit` since bytes were last written.
    pub(crate) fn left_of_silence(&self, limit: Duration) -> Duration {
        self.left_of(limit, self.wrote.load(Relaxed))
    }

    fn left_of(&self, limit: Duration, then: u64) -> Duration {
        limit.saturating_sub(Duration::from_micros(self.now().saturating_sub(then)))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Whether bytes also come and go without calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pings {
    /// HTTP/2.
    Yes,
    /// HTTP/1.1.
    No,
}

/// A call that is going on.
#[derive(Debug)]
pub(crate) struct Guard(Arc<Activity>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.last.store(self.0.now().max(1), Relaxed);
        self.0.calls.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_nothing_is_called_and_late_when_a_head_does_not_end() {
        let limits = Limits {
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(120),
            ..Limits::default()
        };
        let mut activity = Activity::new();
        activity.start = activity.start.checked_sub(Duration::from_secs(60)).unwrap();
        let left = |activity: &Activity, pings| activity.left(&limits, pings).as_secs_f64().round();
        assert_eq!(left(&activity, Pings::No), 60.0);
        activity.read();
        assert_eq!(left(&activity, Pings::No), 10.0);
        assert_eq!(left(&activity, Pings::Yes), 0.0, "the first call is late");
        let activity = Arc::new(activity);
        let guard = activity.call();
        activity.read();
        assert_eq!(left(&activity, Pings::No), 120.0);
        drop(guard);
        assert_eq!(left(&activity, Pings::No), 120.0);
        assert_eq!(left(&activity, Pings::Yes), 120.0);
    }

    #[test]
    fn what_is_written_without_a_call_is_the_end_of_an_answer_or_a_ping() {
        let limits = Limits::default();
        let mut activity = Activity::new();
        activity.start = activity.start.checked_sub(Duration::from_secs(60)).unwrap();
        activity.last.store(1, Relaxed);
        activity.wrote();
        let left = |pings| activity.left(&limits, pings).as_secs_f64().round();
        assert_eq!(left(Pings::No), 120.0);
        assert_eq!(left(Pings::Yes), 60.0);
        let silence = activity.left_of_silence(Duration::from_secs(5));
        assert_eq!(silence.as_secs_f64().round(), 5.0);
    }
}
