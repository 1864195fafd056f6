//! The streaming calls that go on, so that each can be ended although its connection takes nothing from it.
//!
//! A call runs while its connection polls it, which one whose caller does not read never does. So once a second somebody else
//! lets it go on: then its time is up, or the right of its caller gone, whoever reads. That costs a call its place in a list, and
//! the server one timer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use pinion_status::{Code, Failure};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::stream::Work;

/// How often calls go on whose connections do not ask for more.
const EVERY: Duration = Duration::from_secs(1);

/// The streaming calls of a server that runs.
#[derive(Debug, Default)]
pub(crate) struct Going {
    list: Mutex<List>,
    /// Cancelled when all calls are to end, also those that are no streams.
    cut: CancellationToken,
    /// Wakes who looks after them when there was nothing to look after.
    begun: Notify,
}

#[derive(Debug, Default)]
struct List {
    calls: BTreeMap<u64, Weak<Mutex<Work>>>,
    next: u64,
    /// Who looks after the calls sleeps until there is one.
    asleep: bool,
    /// All were ended; there are to be no more.
    over: bool,
}

impl Going {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call on the list; where none may go on, it fails.
    pub(crate) fn add(self: &Arc<Self>, call: &Arc<Mutex<Work>>) -> Listed {
        let mut list = self.lock();
        let number = list.next;
        list.next += 1;
        list.calls.insert(number, Arc::downgrade(call));
        let (wake, over) = (std::mem::take(&mut list.asleep), list.over);
        drop(list);
        if wake {
            self.begun.notify_one();
        }
        if over {
            end(call);
        }
        Listed {
            going: Arc::clone(self),
            number,
        }
    }

    /// Lets every call go on once a second.
    pub(crate) async fn look_after(&self) {
        loop {
            let calls = self.calls();
            if calls.is_empty() {
                self.begun.notified().await;
            }
            for call in calls {
                match call.try_lock() {
                    Ok(mut work) => work.nudge(),
                    Err(TryLockError::Poisoned(work)) => work.into_inner().nudge(),
                    // Its connection is at it.
                    Err(TryLockError::WouldBlock) => {}
                }
                drop(call);
                // What a task may do in one go is little, and one call may use it up.
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn calls(&self) -> Vec<Arc<Mutex<Work>>> {
        let mut list = self.lock();
        list.asleep = list.calls.is_empty();
        list.calls.values().filter_map(Weak::upgrade).collect()
    }

    /// Says to one connection when its calls are to end; one for all would be in everybody's way.
    pub(crate) fn cut(&self) -> CancellationToken {
        self.cut.child_token()
    }

    /// Ends all calls, and those that come too late; their callers are told why.
    pub(crate) fn end_all(&self) {
        self.cut.cancel();
        self.lock().over = true;
        for call in self.calls() {
            end(&call);
        }
    }
}

fn end(call: &Mutex<Work>) {
    let mut work = call.lock().unwrap_or_else(PoisonError::into_inner);
    work.fail(shutting_down());
}

/// Why a call ends that its server does not wait for.
pub(crate) fn shutting_down() -> Failure {
    Failure::new(Code::Unavailable, "the hub is shutting down")
}

/// A place on the list.
#[derive(Debug)]
pub(crate) struct Listed {
    going: Arc<Going>,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.going.lock().calls.remove(&self.number);
    }
}
