//! Looks at the clock for whoever does something by it, and remembers what of it still goes on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use pinion_hub::Hub;
use tokio::sync::{Notify, watch};

/// The clock is looked at again after this time at the latest: it may have been set, or the machine have slept.
const NAP: Duration = Duration::from_secs(30);

/// Something that is done by the clock.
pub trait Timed: Send + Sync + 'static {
    /// Begins what is due at `now`, and says when the next thing is. Whoever looks at the clock waits for it.
    fn tick(self: &Arc<Self>, now: &Zoned) -> Option<Timestamp>;

    /// Told when there is something new to look at.
    fn woken(&self) -> &Arc<Notify>;
}

/// Looks at the clock for `timed`, which is a part of `hub`, as long as there are both.
///
/// Must be called within a runtime.
pub fn keep_time<T: Timed>(hub: &Hub, timed: &Arc<T>) {
    tokio::spawn(run(Arc::downgrade(timed), hub.table().changes()));
}

async fn run<T: Timed>(timed: Weak<T>, mut changes: watch::Receiver<u64>) {
    loop {
        let Some(at_work) = timed.upgrade() else {
            return;
        };
        let now = pinion_zones::now();
        let next = at_work.tick(&now);
        let woken = Arc::clone(at_work.woken());
        drop(at_work);
        tokio::select! {
            () = tokio::time::sleep(nap(&now, next)) => {}
            () = woken.notified() => {}
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

/// How long nothing is to be done.
fn nap(now: &Zoned, next: Option<Timestamp>) -> Duration {
    let left = next.map(|next| next.duration_since(now.timestamp()));
    let left = left.map(|left| Duration::try_from(left).unwrap_or_default());
    left.map_or(NAP, |left| left.min(NAP))
}

/// What was begun by the clock and still goes on, by name.
#[derive(Debug, Default, Clone)]
pub struct Going(Arc<Mutex<HashSet<String>>>);

impl Going {
    /// Says that this goes on, until the mark is dropped; `None` if it already does.
    pub fn begin(&self, name: &str) -> Option<Mark> {
        let is_new = self.names().insert(name.to_owned());
        is_new.then(|| Mark {
            going: self.clone(),
            name: name.to_owned(),
        })
    }

    /// How much goes on.
    pub fn count(&self) -> usize {
        self.names().len()
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That something goes on. Ends when it is dropped, however that comes.
#[derive(Debug)]
pub struct Mark {
    going: Going,
    name: String,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.going.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nap_ends_with_the_next_thing_and_is_never_long() {
        let now = Zoned::now();
        let after = |seconds| Some(now.timestamp() + Duration::from_secs(seconds));
        assert_eq!(nap(&now, None), NAP);
        assert_eq!(nap(&now, after(2)), Duration::from_secs(2));
        assert_eq!(nap(&now, after(86_400)), NAP);
        let before = now.timestamp() - Duration::from_secs(2);
        assert_eq!(nap(&now, Some(before)), Duration::ZERO);
    }

    #[test]
    fn what_goes_on_is_not_begun_a_second_time() {
        let going = Going::default();
        let mark = going.begin("a");
        assert!(mark.is_some() && going.begin("a").is_none());
        let other = going.begin("b");
        assert_eq!(going.count(), 2);
        drop((mark, other));
        assert!(going.count() == 0 && going.begin("a").is_some());
    }
}
