//! The streaming calls in flight, so that each can be ended even if its connection does not poll it.
//!
//! A call runs while its connection polls it. A connection whose caller does not read never polls its calls, so a task
//! of the server polls each call once a second. So a call notices that its deadline has passed or its caller lost a
//! permission, even if the caller does not read. Each call needs one entry in a list, and the server one timer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use pinion_status::{Code, Failure};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::stream::StreamCall;

/// Interval at which calls are polled although their connections do not ask for more.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The streaming calls of a running server.
#[derive(Debug, Default)]
pub(crate) struct InFlightCalls {
    list: Mutex<CallList>,
    /// Cancelled when all calls must end, including those that are not streams.
    cut: CancellationToken,
    /// Wakes the polling task when the first call arrives.
    call_added: Notify,
}

#[derive(Debug, Default)]
struct CallList {
    calls: BTreeMap<u64, Weak<Mutex<StreamCall>>>,
    next: u64,
    /// The polling task sleeps until there is a call.
    asleep: bool,
    /// All calls were ended, and new ones must end at once.
    closed: bool,
}

impl InFlightCalls {
    fn lock(&self) -> MutexGuard<'_, CallList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call to the list. If the server no longer accepts calls, the call fails.
    pub(crate) fn add(self: &Arc<Self>, call: &Arc<Mutex<StreamCall>>) -> InFlightEntry {
        let mut list = self.lock();
        let number = list.next;
        list.next += 1;
        list.calls.insert(number, Arc::downgrade(call));
        let (wake, closed) = (std::mem::take(&mut list.asleep), list.closed);
        drop(list);
        if wake {
            self.call_added.notify_one();
        }
        if closed {
            end(call);
        }
        InFlightEntry {
            in_flight: Arc::clone(self),
            number,
        }
    }

    /// Polls every call once a second.
    pub(crate) async fn poll_stalled(&self) {
        loop {
            let calls = self.calls();
            if calls.is_empty() {
                self.call_added.notified().await;
            }
            for call in calls {
                match call.try_lock() {
                    Ok(mut work) => work.nudge(),
                    Err(TryLockError::Poisoned(work)) => work.into_inner().nudge(),
                    // The connection is polling it.
                    Err(TryLockError::WouldBlock) => {}
                }
                drop(call);
                // tokio limits the work of a task between two yields, and one call may exhaust that budget.
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn calls(&self) -> Vec<Arc<Mutex<StreamCall>>> {
        let mut list = self.lock();
        list.asleep = list.calls.is_empty();
        list.calls.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns a token for one connection that is cancelled when its calls must end. Each connection has its own,
    /// because all of them would contend for a shared one.
    pub(crate) fn cut(&self) -> CancellationToken {
        self.cut.child_token()
    }

    /// Ends all calls, and those that arrive later, with a failure that names the reason.
    pub(crate) fn end_all(&self) {
        self.cut.cancel();
        self.lock().closed = true;
        for call in self.calls() {
            end(&call);
        }
    }
}

fn end(call: &Mutex<StreamCall>) {
    let mut work = call.lock().unwrap_or_else(PoisonError::into_inner);
    work.fail(shutting_down());
}

/// The failure of a call that outlives the shutdown period of its server.
pub(crate) fn shutting_down() -> Failure {
    Failure::new(Code::Unavailable, "the hub is shutting down")
}

/// An entry of the list, removed on drop.
#[derive(Debug)]
pub(crate) struct InFlightEntry {
    in_flight: Arc<InFlightCalls>,
    number: u64,
}

impl Drop for InFlightEntry {
    fn drop(&mut self) {
        self.in_flight.lock().calls.remove(&self.number);
    }
}
