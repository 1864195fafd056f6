//! The queue of everything that reaches the chat: events, dialogs, printed lines and replies.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};
use tokio::sync::Notify;

use crate::Incoming;
use crate::chat::Turn;

/// Queued messages above which the session is asked to slow down.
const QUEUE_LIMIT: usize = 4096;

/// The sending side, a listener of the session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed(Arc<FeedQueue>);

/// The receiving side, held by the chat.
#[derive(Debug)]
pub struct FeedReader(Arc<FeedQueue>);

/// A queued message, or a reply in the form of a function to run. Both share one queue so that a
/// reply never overtakes an event that happened before it.
pub(crate) enum FeedItem {
    Incoming(Incoming),
    Reply(Turn),
}

/// Sends replies to the chat, in order with all other messages.
#[derive(Debug, Clone)]
pub(crate) struct ReplySender(Arc<FeedQueue>);

impl ReplySender {
    /// Queues a function to run on the chat. Returns false if the chat has ended.
    pub fn send(&self, turn: Turn) -> bool {
        self.0.push(FeedItem::Reply(turn))
    }

    /// Reports whether the reader was dropped.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct FeedQueue {
    queue: Mutex<VecDeque<FeedItem>>,
    arrived: Notify,
    taken: Notify,
    /// The reader was dropped.
    closed: AtomicBool,
}

impl FeedQueue {
    fn queue(&self) -> MutexGuard<'_, VecDeque<FeedItem>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, items: FeedItem) -> bool {
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        self.queue().push_back(items);
        self.arrived.notify_one();
        true
    }

    fn has_room(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.queue().len() < QUEUE_LIMIT
    }
}

/// Creates a feed and its reader.
pub fn feed() -> (Feed, FeedReader) {
    let queue = Arc::new(FeedQueue::default());
    (Feed(Arc::clone(&queue)), FeedReader(queue))
}

impl Feed {
    /// Sends a message to the chat. Returns false if the chat has ended.
    pub fn send(&self, incoming: Incoming) -> bool {
        self.0.push(FeedItem::Incoming(incoming))
    }
}

impl Listener for Feed {
    fn notice(&self, _ordinal: u64, event: &Event) {
        self.send(Incoming::Event(event.clone()));
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
    /// Takes all queued messages, in order, and drops the replies.
    pub fn take(&self) -> Vec<Incoming> {
        let items = self.take_all().into_iter();
        let incoming = items.filter_map(|items| match items {
            FeedItem::Incoming(incoming) => Some(incoming),
            FeedItem::Reply(_) => None,
        });
        incoming.collect()
    }

    /// Returns a sender of replies to this reader.
    pub(crate) fn answers(&self) -> ReplySender {
        ReplySender(Arc::clone(&self.0))
    }

    /// Takes everything in the queue, in order.
    pub(crate) fn take_all(&self) -> VecDeque<FeedItem> {
        let taken = std::mem::take(&mut *self.0.queue());
        if !taken.is_empty() {
            self.0.taken.notify_waiters();
        }
        taken
    }

    /// Waits until something was queued since the last call.
    pub async fn arrived(&self) {
        self.0.arrived.notified().await;
    }
}

impl std::fmt::Debug for FeedQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Feed")
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        // Dropped outside of the lock, because dropping a message may send another one.
        drop(std::mem::take(&mut *self.0.queue()));
        self.0.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_feed_has_no_room_until_it_is_read() {
        let (feed, reader) = feed();
        for _ in 0..QUEUE_LIMIT {
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
        assert_eq!(reader.take().len(), QUEUE_LIMIT);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_reader_does_not_block_the_feed() {
        let (feed, reader) = feed();
        for _ in 0..QUEUE_LIMIT {
            feed.send(Incoming::End(0));
        }
        drop(reader);
        feed.room().await;
        assert!(feed.has_room());
    }
}
