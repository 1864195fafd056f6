//! The way from everyone who has something to tell to the chat.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};
use tokio::sync::Notify;

use crate::Incoming;

/// How much may wait before the session is asked to slow down.
const ROOM: usize = 4096;

/// Takes what happens to the chat. A listener of the session; cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Shared>);

/// Where the chat takes what was told.
#[derive(Debug)]
pub struct FeedReader(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<VecDeque<Incoming>>,
    arrived: Notify,
    taken: Notify,
    /// Nobody reads any more.
    closed: AtomicBool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Incoming>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.waiting().len() < ROOM
    }
}

/// A feed and its reader.
pub fn feed() -> (Feed, FeedReader) {
    let shared = Arc::new(Shared::default());
    (Feed(Arc::clone(&shared)), FeedReader(shared))
}

impl Feed {
    /// Tells the chat something; whether it still listens.
    pub fn tell(&self, incoming: Incoming) -> bool {
        if self.0.closed.load(Ordering::Acquire) {
            return false;
        }
        self.0.waiting().push_back(incoming);
        self.0.arrived.notify_one();
        true
    }
}

impl Listener for Feed {
    fn notice(&self, _ordinal: u64, event: &Event) {
        self.tell(Incoming::Event(event.clone()));
    }

    fn has_room(&self) -> bool {
        self.0.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let taken = self.0.taken.notified();
                if self.0.has_room() {
                    return;
                }
                taken.await;
            }
        })
    }
}

impl FeedReader {
    /// Everything that waits, in order.
    pub fn take(&self) -> VecDeque<Incoming> {
        let taken = std::mem::take(&mut *self.0.waiting());
        if !taken.is_empty() {
            self.0.taken.notify_waiters();
        }
        taken
    }

    /// Waits until something was told since the last time it was waited for.
    pub async fn arrived(&self) {
        self.0.arrived.notified().await;
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.waiting().clear();
        self.0.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_feed_has_no_room_until_it_is_read() {
        let (feed, reader) = feed();
        for _ in 0..ROOM {
            assert!(feed.has_room());
            feed.notice(1, &Event::TurnStart);
        }
        assert!(!feed.has_room());
        let waits = tokio::spawn({
            let feed = feed.clone();
            async move { feed.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        reader.arrived().await;
        assert_eq!(reader.take().len(), ROOM);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_for_a_reader_that_is_gone() {
        let (feed, reader) = feed();
        for _ in 0..ROOM {
            feed.tell(Incoming::End(0));
        }
        drop(reader);
        feed.room().await;
        assert!(feed.has_room());
    }
}
