//! A clock that starts timed work and tracks the work in flight.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use pinion_hub::Hub;
use tokio::sync::{Notify, watch};

/// The longest sleep: the clock may have been set, or the machine may have been suspended.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Work that is done at certain times.
pub trait Timed: Send + Sync + 'static {
    /// Starts the work that is due at `now` and returns the time of the next. The clock waits until
    /// it returns.
    fn tick(self: &Arc<Self>, now: &Zoned) -> Option<Timestamp>;

    /// Returns the notification that wakes the clock after a change.
    fn woken(&self) -> &Arc<Notify>;
}

/// Runs the clock for `timed`, a part of `hub`, while both exist.
///
/// Call it within a runtime.
pub fn run_clock<T: Timed>(hub: &Hub, timed: &Arc<T>) {
    tokio::spawn(run(Arc::downgrade(timed), hub.table().changes()));
}

async fn run<T: Timed>(timed: Weak<T>, mut changes: watch::Receiver<u64>) {
    loop {
        let Some(at_work) = timed.upgrade() else {
            return;
        };
        let now = pinion_text::zone::now();
        let next = at_work.tick(&now);
        let woken = Arc::clone(at_work.woken());
        drop(at_work);
        tokio::select! {
            () = tokio::time::sleep(sleep_time(&now, next)) => {}
            () = woken.notified() => {}
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

/// Returns the time until the next check.
fn sleep_time(now: &Zoned, next: Option<Timestamp>) -> Duration {
    let left = next.map(|next| next.duration_since(now.timestamp()));
    let left = left.map(|left| Duration::try_from(left).unwrap_or_default());
    left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL))
}

/// Work that was started by the clock and is still running, by name.
#[derive(Debug, Default, Clone)]
pub struct InFlight(Arc<Mutex<HashSet<String>>>);

impl InFlight {
    /// Marks work as running until the guard is dropped; `None` if work of this name is already
    /// running.
    pub fn begin(&self, name: &str) -> Option<InFlightGuard> {
        let is_new = self.names().insert(name.to_owned());
        is_new.then(|| InFlightGuard {
            in_flight: self.clone(),
            name: name.to_owned(),
        })
    }

    /// Counts the running work.
    pub fn count(&self) -> usize {
        self.names().len()
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks work as running; dropping it, also after a panic, ends the mark.
#[derive(Debug)]
pub struct InFlightGuard {
    in_flight: InFlight,
    name: String,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.in_flight.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nap_ends_with_the_next_thing_and_is_never_long() {
        let now = Zoned::now();
        let after = |seconds| Some(now.timestamp() + Duration::from_secs(seconds));
        assert_eq!(sleep_time(&now, None), POLL_INTERVAL);
        assert_eq!(sleep_time(&now, after(2)), Duration::from_secs(2));
        assert_eq!(sleep_time(&now, after(86_400)), POLL_INTERVAL);
        let before = now.timestamp() - Duration::from_secs(2);
        assert_eq!(sleep_time(&now, Some(before)), Duration::ZERO);
    }

    #[test]
    fn what_goes_on_is_not_begun_a_second_time() {
        let in_flight = InFlight::default();
        let guard = in_flight.begin("a");
        assert!(guard.is_some() && in_flight.begin("a").is_none());
        let other = in_flight.begin("b");
        assert_eq!(in_flight.count(), 2);
        drop((guard, other));
        assert!(in_flight.count() == 0 && in_flight.begin("a").is_some());
    }
}
