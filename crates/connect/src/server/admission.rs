//! Which connections there is room for when many come.
//!
//! A connection counts as a stranger until the service vouches for it, which a hub does with the first call of a caller that
//! it knows. When there is no room for another connection, the oldest stranger is closed: connections without such a call never
//! keep out a caller that has one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a stranger has in any case to become known: enough for a TLS handshake and a request from far away. It bounds how
/// many connections a flood gets through per second.
const GRACE: Duration = Duration::from_millis(250);

/// The connections of a server, as far as they compete for room.
#[derive(Debug)]
pub(crate) struct Admission {
    room: Arc<Semaphore>,
    strangers: Mutex<Strangers>,
}

#[derive(Debug, Default)]
struct Strangers {
    /// By age, oldest first.
    list: BTreeMap<u64, Stranger>,
    next: u64,
    /// Strangers that were told to leave and have not left yet.
    leaving: usize,
}

#[derive(Debug)]
struct Stranger {
    since: Instant,
    leave: CancellationToken,
}

impl Admission {
    pub(crate) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            room: Arc::new(Semaphore::new(connections)),
            strangers: Mutex::default(),
        })
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more connection, which a stranger may have to make. May be dropped and asked again.
    pub(crate) async fn place(self: &Arc<Self>) -> Option<Place> {
        let room = loop {
            if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
                break room;
            }
            let acquire = Arc::clone(&self.room).acquire_owned();
            match self.show_out() {
                None => break acquire.await.ok()?,
                Some(later) => tokio::select! {
                    room = acquire => break room.ok()?,
                    () = tokio::time::sleep_until(later) => {}
                },
            }
        };
        let leave = CancellationToken::new();
        let mut strangers = self.strangers();
        let number = strangers.next;
        strangers.next += 1;
        let stranger = Stranger {
            since: Instant::now(),
            leave: leave.clone(),
        };
        strangers.list.insert(number, stranger);
        drop(strangers);
        Some(Place {
            admission: Arc::clone(self),
            number,
            leave,
            _room: room,
        })
    }

    /// Closes the oldest stranger; returns when to try again if it is too early for that.
    fn show_out(&self) -> Option<Instant> {
        let mut strangers = self.strangers();
        if strangers.leaving > 0 {
            return None;
        }
        let oldest = strangers.list.first_entry()?;
        let due = oldest.get().since + GRACE;
        if due > Instant::now() {
            return Some(due);
        }
        oldest.remove().leave.cancel();
        strangers.leaving += 1;
        None
    }
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    number: u64,
    leave: CancellationToken,
    _room: OwnedSemaphorePermit,
}

impl Place {
    /// Done when the connection must make room for another.
    pub(crate) async fn taken(&self) {
        self.leave.cancelled().await;
    }

    /// What the service vouches with.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            admission: Arc::downgrade(&self.admission),
            number: self.number,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut strangers = self.admission.strangers();
        strangers.list.remove(&self.number);
        if self.leave.is_cancelled() {
            strangers.leaving -= 1;
        }
    }
}

/// Whether the server knows who is at the other end of a connection.
#[derive(Clone, Default)]
pub(crate) struct Standing {
    admission: Weak<Admission>,
    number: u64,
}

impl Standing {
    /// From now on the connection does not have to make room for others.
    pub(crate) fn vouch(&self) {
        if let Some(admission) = self.admission.upgrade() {
            admission.strangers().list.remove(&self.number);
        }
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Standing")
            .field(&self.number)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_taken(place: &Place) -> bool {
        tokio::time::timeout(Duration::from_millis(1), place.taken())
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_known_connections_stay() {
        let admission = Admission::new(3);
        let known = admission.place().await.unwrap();
        known.standing().vouch();
        let first = admission.place().await.unwrap();
        let second = admission.place().await.unwrap();
        let asked = Instant::now();
        let (third, ()) = tokio::join!(admission.place(), async {
            first.taken().await;
            assert!(
                asked.elapsed() >= GRACE,
                "a stranger has time to become known"
            );
            drop(first);
        });
        third.unwrap().standing().vouch();
        assert!(!is_taken(&known).await);
        drop(second);
    }

    #[tokio::test]
    async fn who_asks_again_shows_out_no_second_one() {
        let admission = Admission::new(2);
        let first = admission.place().await.unwrap();
        let second = admission.place().await.unwrap();
        for _ in 0..3 {
            let asked = tokio::time::timeout(Duration::from_millis(400), admission.place()).await;
            assert!(asked.is_err());
        }
        assert!(is_taken(&first).await);
        assert!(!is_taken(&second).await);
        drop(first);
        assert!(admission.place().await.is_some());
    }

    #[tokio::test]
    async fn where_all_are_known_others_wait() {
        let admission = Admission::new(1);
        let known = admission.place().await.unwrap();
        known.standing().vouch();
        let asked = tokio::time::timeout(Duration::from_millis(400), admission.place()).await;
        assert!(asked.is_err());
        drop(known);
        assert!(admission.place().await.is_some());
    }
}
