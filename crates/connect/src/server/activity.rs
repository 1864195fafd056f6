//! Records the activity on a connection, so that an idle one can be closed.
//!
//! HTTP's own timers need one timer per request. This needs two readings of the clock per request and one timer per
//! connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::options::Limits;

/// Shared by the socket, the calls and the idle timer of a connection.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    calls: AtomicUsize,
    /// The end of the last call, in microseconds since the start; 0 if no call has ended.
    last_call_end: AtomicU64,
    /// The last write outside a call: the end of an answer, or a ping.
    wrote: AtomicU64,
    /// The arrival of the first bytes that do not belong to a call yet; 0 if there are none.
    unclaimed_since: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            calls: AtomicUsize::new(0),
            last_call_end: AtomicU64::new(0),
            wrote: AtomicU64::new(0),
            unclaimed_since: AtomicU64::new(0),
        }
    }

    /// Records that bytes were read from the socket.
    pub(crate) fn read(&self) {
        if self.calls.load(Relaxed) == 0 && self.unclaimed_since.load(Relaxed) == 0 {
            self.unclaimed_since.store(self.now().max(1), Relaxed);
        }
    }

    /// Records that bytes were written to the socket.
    pub(crate) fn wrote(&self) {
        if self.calls.load(Relaxed) == 0 {
            self.wrote.store(self.now(), Relaxed);
        }
    }

    /// Records the start of a call, which lasts as long as the guard.
    pub(crate) fn call(self: &Arc<Self>) -> CallGuard {
        self.calls.fetch_add(1, Relaxed);
        self.unclaimed_since.store(0, Relaxed);
        CallGuard(Arc::clone(self))
    }

    /// Reports whether a call is in flight.
    pub(crate) fn has_call(&self) -> bool {
        self.calls.load(Relaxed) > 0
    }

    /// Reports whether there was never a call.
    pub(crate) fn is_unused(&self) -> bool {
        !self.has_call() && self.last_call_end.load(Relaxed) == 0
    }

    /// Returns the time until the connection counts as idle; zero if it does already.
    pub(crate) fn left(&self, limits: &Limits, pings: Pings) -> Duration {
        if self.calls.load(Relaxed) > 0 {
            return limits.idle_timeout;
        }
        let last_call_end = self.last_call_end.load(Relaxed);
        match (pings, self.unclaimed_since.load(Relaxed)) {
            // Writes include pings, so only calls count.
            (Pings::Yes, _) if self.is_unused() => self.rest_of(limits.head_timeout, 0),
            (Pings::Yes, _) => self.rest_of(limits.idle_timeout, last_call_end),
            (Pings::No, unclaimed_since) => {
                let last_call_end = last_call_end.max(self.wrote.load(Relaxed));
                let idle = self.rest_of(limits.idle_timeout, last_call_end);
                match unclaimed_since {
                    0 => idle,
                    unclaimed_since => idle.min(self.rest_of(limits.head_timeout, unclaimed_since)),
                }
            }
        }
    }

    /// Returns the rest of `limit` since the last write.
    pub(crate) fn time_left_since_write(&self, limit: Duration) -> Duration {
        self.rest_of(limit, self.wrote.load(Relaxed))
    }

    fn rest_of(&self, limit: Duration, then: u64) -> Duration {
        limit.saturating_sub(Duration::from_micros(self.now().saturating_sub(then)))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// `Yes`, if bytes are read and written outside calls too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pings {
    /// HTTP/2.
    Yes,
    /// HTTP/1.1.
    No,
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct CallGuard(Arc<Activity>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.last_call_end.store(self.0.now().max(1), Relaxed);
        self.0.calls.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_nothing_is_called_and_late_when_a_head_does_not_end() {
        let limits = Limits {
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
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
    fn writes_without_a_call_extend_the_idle_time_only_over_http1() {
        let limits = Limits::default();
        let mut activity = Activity::new();
        activity.start = activity.start.checked_sub(Duration::from_secs(60)).unwrap();
        activity.last_call_end.store(1, Relaxed);
        activity.wrote();
        let left = |pings| activity.left(&limits, pings).as_secs_f64().round();
        assert_eq!(left(Pings::No), 120.0);
        assert_eq!(left(Pings::Yes), 60.0);
        let silence = activity.time_left_since_write(Duration::from_secs(5));
        assert_eq!(silence.as_secs_f64().round(), 5.0);
    }
}
