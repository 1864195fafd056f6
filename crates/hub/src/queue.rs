//! A bounded queue of messages for one peer, in order, with one receiver.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::Limits;

/// A queue of messages. [`Self::put`] waits while the queue is full; [`Self::push`] adds short messages without
/// waiting.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    ready: Notify,
    room: Notify,
    max_items: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
    /// The time at which a message was last taken, or at which the queue stopped being empty.
    last_progress: Instant,
}

/// The treatment of queued messages when the queue is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnClose {
    Send,
    Drop,
}

impl<T> Queue<T> {
    pub(crate) fn new(limits: &Limits) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            closed: false,
            last_progress: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
            ready: Notify::new(),
            room: Notify::new(),
            max_items: limits.outgoing,
            max_bytes: limits.outgoing_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message of about `size` bytes if there is room, and returns it otherwise. `Ok(false)` if the queue is
    /// closed.
    pub(crate) fn offer(&self, item: T, size: usize) -> Result<bool, T> {
        let mut state = self.state();
        if state.closed {
            return Ok(false);
        }
        let full = state.items.len() >= self.max_items
            || !state.items.is_empty() && state.bytes + size > self.max_bytes;
        if full {
            return Err(item);
        }
        state.push(item, size);
        let more = state.items.len() < self.max_items && state.bytes < self.max_bytes;
        drop(state);
        self.ready.notify_one();
        if more {
            self.room.notify_one();
        }
        Ok(true)
    }

    /// Adds a message as soon as there is room. Returns `false` if the queue is closed.
    pub(crate) async fn put(&self, mut item: T, size: usize) -> bool {
        loop {
            let room = self.room.notified();
            match self.offer(item, size) {
                Ok(open) => return open,
                Err(back) => item = back,
            }
            room.await;
        }
    }

    /// Reports whether there is room for messages that may be dropped: less than half of the queue is used.
    pub(crate) fn has_room_to_spare(&self) -> bool {
        let state = self.state();
        state.items.len() < self.max_items / 2 && state.bytes < self.max_bytes / 2
    }

    /// Adds a short message without waiting, even if the queue is full.
    pub(crate) fn push(&self, item: T) {
        let mut state = self.state();
        if !state.closed {
            state.push(item, 0);
            drop(state);
            self.ready.notify_one();
        }
    }

    /// Waits for the next message; `None` once the queue is closed and empty. Only one task may call it.
    pub(crate) async fn take(&self) -> Option<T> {
        loop {
            {
                let mut state = self.state();
                if let Some((item, size)) = state.items.pop_front() {
                    state.bytes -= size;
                    state.last_progress = Instant::now();
                    drop(state);
                    self.room.notify_one();
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            self.ready.notified().await;
        }
    }

    /// Closes the queue: it accepts no more messages.
    pub(crate) fn close(&self, on_close: OnClose) {
        let mut state = self.state();
        state.closed = true;
        if on_close == OnClose::Drop {
            state.items.clear();
            state.bytes = 0;
        }
        drop(state);
        self.ready.notify_one();
        self.room.notify_waiters();
        self.room.notify_one();
    }

    /// Waits until messages have been queued for `limit` without any being taken.
    pub(crate) async fn wait_until_stalled(&self, limit: Duration) {
        loop {
            match limit.saturating_sub(self.stalled()) {
                Duration::ZERO => return,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    /// The time that messages have been queued without any being taken; zero if the queue is empty.
    pub(crate) fn stalled(&self) -> Duration {
        let state = self.state();
        if state.items.is_empty() {
            Duration::ZERO
        } else {
            state.last_progress.elapsed()
        }
    }
}

impl<T> QueueState<T> {
    fn push(&mut self, item: T, size: usize) {
        if self.items.is_empty() {
            self.last_progress = Instant::now();
        }
        self.bytes += size;
        self.items.push_back((item, size));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn queue(max_items: usize, max_bytes: usize) -> Arc<Queue<u32>> {
        Arc::new(Queue::new(&Limits {
            outgoing: max_items,
            outgoing_bytes: max_bytes,
            ..Limits::default()
        }))
    }

    #[tokio::test]
    async fn messages_wait_for_room_and_keep_their_order() {
        let queue = queue(2, 100);
        let sender = queue.clone();
        let sending = tokio::spawn(async move {
            for item in 0..1000 {
                assert!(sender.put(item, 60).await);
            }
            sender.close(OnClose::Send);
        });
        for item in 0..1000 {
            assert_eq!(queue.take().await, Some(item));
        }
        assert_eq!(queue.take().await, None);
        sending.await.unwrap();
        assert_eq!(queue.offer(1, 1), Ok(false));
    }

    #[tokio::test]
    async fn optional_messages_leave_half_of_the_queue_free() {
        let queue = queue(8, 100);
        for item in 0..4 {
            assert!(queue.has_room_to_spare());
            assert_eq!(queue.offer(item, 1), Ok(true));
        }
        assert!(!queue.has_room_to_spare());
        assert_eq!(queue.take().await, Some(0));
        assert_eq!(queue.offer(4, 50), Ok(true));
        queue.take().await;
        assert!(!queue.has_room_to_spare());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_without_progress_is_stalled() {
        let queue = queue(4, 100);
        let limit = Duration::from_secs(90);
        let late = Duration::from_secs(1000);
        // An empty queue never counts as stalled.
        let waiting = tokio::time::timeout(late, queue.wait_until_stalled(limit));
        assert!(waiting.await.is_err());
        queue.push(0);
        queue.push(1);
        tokio::time::sleep(limit / 2).await;
        queue.take().await;
        let since = Instant::now();
        queue.wait_until_stalled(limit).await;
        assert_eq!(since.elapsed().as_secs(), limit.as_secs());
    }

    #[tokio::test]
    async fn closing_wakes_all_waiting_senders() {
        let queue = queue(1, 100);
        assert_eq!(queue.offer(0, 1), Ok(true));
        let waiting: Vec<_> = (0..3)
            .map(|item| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.put(item, 1).await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close(OnClose::Drop);
        for waiting in waiting {
            assert!(!waiting.await.unwrap());
        }
        assert_eq!(queue.take().await, None);
    }
}
