//! Limits the number of connections and decides which ones to close when there are too many.
//!
//! A connection is unauthenticated until the service marks it; a hub does that at the first call of a caller it knows.
//! When there is no room for another connection, the oldest unauthenticated one is closed. So connections without a
//! known caller can never keep out one that has one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The least time that a connection has to authenticate: enough for a TLS handshake and a request over a slow network.
/// It also bounds how many connections per second a flood can open.
const AUTHENTICATION_GRACE: Duration = Duration::from_millis(250);

/// The connections of a server that compete for slots.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    unauthenticated: Mutex<UnauthenticatedConnections>,
}

#[derive(Debug, Default)]
struct UnauthenticatedConnections {
    /// By age, oldest first.
    list: BTreeMap<u64, UnauthenticatedConnection>,
    next: u64,
    /// Connections that must close and have not closed yet.
    closing: usize,
}

#[derive(Debug)]
struct UnauthenticatedConnection {
    since: Instant,
    close: CancellationToken,
}

impl Admission {
    pub(crate) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(connections)),
            unauthenticated: Mutex::default(),
        })
    }

    fn unauthenticated(&self) -> MutexGuard<'_, UnauthenticatedConnections> {
        self.unauthenticated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot for one more connection, closing an unauthenticated connection if necessary. The future may be
    /// dropped and created again.
    pub(crate) async fn acquire_slot(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let slot = loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                break slot;
            }
            let acquire = Arc::clone(&self.slots).acquire_owned();
            match self.evict_oldest() {
                None => break acquire.await.ok()?,
                Some(later) => tokio::select! {
                    slot = acquire => break slot.ok()?,
                    () = tokio::time::sleep_until(later) => {}
                },
            }
        };
        let close = CancellationToken::new();
        let mut unauthenticated = self.unauthenticated();
        let number = unauthenticated.next;
        unauthenticated.next += 1;
        let connection = UnauthenticatedConnection {
            since: Instant::now(),
            close: close.clone(),
        };
        unauthenticated.list.insert(number, connection);
        drop(unauthenticated);
        Some(ConnectionSlot {
            admission: Arc::clone(self),
            number,
            close,
            _slot: slot,
        })
    }

    /// Closes the oldest unauthenticated connection. If its grace period still runs, returns the time to try again.
    fn evict_oldest(&self) -> Option<Instant> {
        let mut unauthenticated = self.unauthenticated();
        if unauthenticated.closing > 0 {
            return None;
        }
        let oldest = unauthenticated.list.first_entry()?;
        let due = oldest.get().since + AUTHENTICATION_GRACE;
        if due > Instant::now() {
            return Some(due);
        }
        oldest.remove().close.cancel();
        unauthenticated.closing += 1;
        None
    }
}

/// The slot of one connection, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    admission: Arc<Admission>,
    number: u64,
    close: CancellationToken,
    _slot: OwnedSemaphorePermit,
}

impl ConnectionSlot {
    /// Returns when the connection must close to admit another.
    pub(crate) async fn evicted(&self) {
        self.close.cancelled().await;
    }

    /// Returns the handle with which the service marks the connection as authenticated.
    pub(crate) fn authentication(&self) -> AuthenticationMark {
        AuthenticationMark {
            admission: Arc::downgrade(&self.admission),
            number: self.number,
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut unauthenticated = self.admission.unauthenticated();
        unauthenticated.list.remove(&self.number);
        if self.close.is_cancelled() {
            unauthenticated.closing -= 1;
        }
    }
}

/// Marks a connection as authenticated.
#[derive(Clone, Default)]
pub(crate) struct AuthenticationMark {
    admission: Weak<Admission>,
    number: u64,
}

impl AuthenticationMark {
    /// Exempts the connection from being closed to admit others.
    pub(crate) fn mark_authenticated(&self) {
        if let Some(admission) = self.admission.upgrade() {
            admission.unauthenticated().list.remove(&self.number);
        }
    }
}

impl fmt::Debug for AuthenticationMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("AuthenticationMark")
            .field(&self.number)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_evicted(slot: &ConnectionSlot) -> bool {
        tokio::time::timeout(Duration::from_millis(1), slot.evicted())
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn the_oldest_unauthenticated_connection_is_closed_and_known_ones_stay() {
        let admission = Admission::new(3);
        let known = admission.acquire_slot().await.unwrap();
        known.authentication().mark_authenticated();
        let first = admission.acquire_slot().await.unwrap();
        let second = admission.acquire_slot().await.unwrap();
        let asked = Instant::now();
        let (third, ()) = tokio::join!(admission.acquire_slot(), async {
            first.evicted().await;
            assert!(
                asked.elapsed() >= AUTHENTICATION_GRACE,
                "a connection has time to authenticate"
            );
            drop(first);
        });
        third.unwrap().authentication().mark_authenticated();
        assert!(!is_evicted(&known).await);
        drop(second);
    }

    #[tokio::test]
    async fn waiting_again_evicts_only_one_connection() {
        let admission = Admission::new(2);
        let first = admission.acquire_slot().await.unwrap();
        let second = admission.acquire_slot().await.unwrap();
        for _ in 0..3 {
            let asked =
                tokio::time::timeout(Duration::from_millis(400), admission.acquire_slot()).await;
            assert!(asked.is_err());
        }
        assert!(is_evicted(&first).await);
        assert!(!is_evicted(&second).await);
        drop(first);
        assert!(admission.acquire_slot().await.is_some());
    }

    #[tokio::test]
    async fn new_connections_wait_while_all_are_authenticated() {
        let admission = Admission::new(1);
        let known = admission.acquire_slot().await.unwrap();
        known.authentication().mark_authenticated();
        let asked =
            tokio::time::timeout(Duration::from_millis(400), admission.acquire_slot()).await;
        assert!(asked.is_err());
        drop(known);
        assert!(admission.acquire_slot().await.is_some());
    }
}
