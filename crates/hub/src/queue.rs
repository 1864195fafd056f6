//! Messages on their way to one peer: bounded, in order, with one taker.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::Limits;

/// A line of messages. Whoever puts one in waits while it is full; what must be said without waiting may be pushed.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Notify,
    room: Notify,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    finished: bool,
    /// When the line last moved, or stopped being empty.
    moved: Instant,
}

/// What becomes of the messages that wait when a line is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// They are still sent.
    Send,
    /// They are dropped.
    Drop,
}

impl<T> Queue<T> {
    pub(crate) fn new(limits: &Limits) -> Self {
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            finished: false,
            moved: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
            ready: Notify::new(),
            room: Notify::new(),
            most: limits.outgoing,
            most_bytes: limits.outgoing_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message of about `size` bytes at the end if there is room; gives it back if not. `Ok(false)`: the line is closed.
    pub(crate) fn offer(&self, item: T, size: usize) -> Result<bool, T> {
        let mut state = self.state();
        if state.finished {
            return Ok(false);
        }
        let full = state.items.len() >= self.most
            || !state.items.is_empty() && state.bytes + size > self.most_bytes;
        if full {
            return Err(item);
        }
        state.push(item, size);
        let more = state.items.len() < self.most && state.bytes < self.most_bytes;
        drop(state);
        self.ready.notify_one();
        if more {
            self.room.notify_one();
        }
        Ok(true)
    }

    /// Puts a message at the end as soon as there is room. Whether the line is still open.
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

    /// Whether there is room also for what can be left out: less than half of it is taken.
    pub(crate) fn has_room_to_spare(&self) -> bool {
        let state = self.state();
        state.items.len() < self.most / 2 && state.bytes < self.most_bytes / 2
    }

    /// Puts a short message at the end without waiting.
    pub(crate) fn push(&self, item: T) {
        let mut state = self.state();
        if !state.finished {
            state.push(item, 0);
            drop(state);
            self.ready.notify_one();
        }
    }

    /// The next message; `None` when the line is closed. For one taker.
    pub(crate) async fn take(&self) -> Option<T> {
        loop {
            {
                let mut state = self.state();
                if let Some((item, size)) = state.items.pop_front() {
                    state.bytes -= size;
                    state.moved = Instant::now();
                    drop(state);
                    self.room.notify_one();
                    return Some(item);
                }
                if state.finished {
                    return None;
                }
            }
            self.ready.notified().await;
        }
    }

    /// Takes no more messages.
    pub(crate) fn finish(&self, rest: Rest) {
        let mut state = self.state();
        state.finished = true;
        if rest == Rest::Drop {
            state.items.clear();
            state.bytes = 0;
        }
        drop(state);
        self.ready.notify_one();
        self.room.notify_waiters();
        self.room.notify_one();
    }

    /// Waits until nobody has taken anything for so long although something waits.
    pub(crate) async fn abandoned(&self, limit: Duration) {
        loop {
            match limit.saturating_sub(self.stalled()) {
                Duration::ZERO => return,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    /// For how long nobody has taken what waits.
    pub(crate) fn stalled(&self) -> Duration {
        let state = self.state();
        match state.items.is_empty() {
            true => Duration::ZERO,
            false => state.moved.elapsed(),
        }
    }
}

impl<T> State<T> {
    fn push(&mut self, item: T, size: usize) {
        if self.items.is_empty() {
            self.moved = Instant::now();
        }
        self.bytes += size;
        self.items.push_back((item, size));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn queue(most: usize, most_bytes: usize) -> Arc<Queue<u32>> {
        Arc::new(Queue::new(&Limits {
            outgoing: most,
            outgoing_bytes: most_bytes,
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
            sender.finish(Rest::Send);
        });
        for item in 0..1000 {
            assert_eq!(queue.take().await, Some(item));
        }
        assert_eq!(queue.take().await, None);
        sending.await.unwrap();
        assert_eq!(queue.offer(1, 1), Ok(false));
    }

    #[tokio::test]
    async fn what_can_be_left_out_leaves_half_of_the_room() {
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
    async fn a_line_is_abandoned_when_it_does_not_move() {
        let queue = queue(4, 100);
        let limit = Duration::from_secs(90);
        let late = Duration::from_secs(1000);
        // Where nothing waits nobody is missed.
        let waiting = tokio::time::timeout(late, queue.abandoned(limit));
        assert!(waiting.await.is_err());
        queue.push(0);
        queue.push(1);
        tokio::time::sleep(limit / 2).await;
        queue.take().await;
        let since = Instant::now();
        queue.abandoned(limit).await;
        assert_eq!(since.elapsed().as_secs(), limit.as_secs());
    }

    #[tokio::test]
    async fn closing_wakes_everybody_who_waits() {
        let queue = queue(1, 100);
        assert_eq!(queue.offer(0, 1), Ok(true));
        let waiting: Vec<_> = (0..3)
            .map(|item| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.put(item, 1).await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.finish(Rest::Drop);
        for waiting in waiting {
            assert!(!waiting.await.unwrap());
        }
        assert_eq!(queue.take().await, None);
    }
}
