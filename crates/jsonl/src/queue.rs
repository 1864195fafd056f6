//! A queue between a producer that must not block and a consumer that may be slow.
//!
//! Pushing always succeeds, so nothing is ever dropped; producers of progress wait for
//! [`Queue::room`] between pushes, so the queue stays small; and while the consumer is behind,
//! an item may absorb the next one, so that progress merges instead of piling up.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// An item of a [`Queue`].
pub trait Outgoing: Send + 'static {
    /// Merges `next` into this item, or returns it if the two must stay apart.
    fn absorb(&mut self, next: Self) -> Result<(), Self>
    where
        Self: Sized;

    /// Estimates the bytes this item will take on the wire.
    fn weight(&self) -> usize;

    /// Reports whether both items belong to one stream, in which order matters.
    fn same_stream(&self, _other: &Self) -> bool {
        true
    }
}

/// The rule for merging items while the consumer is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coalesce {
    /// Merge once more output is waiting than a pipe holds.
    #[default]
    WhenBehind,
    /// Leave every item as it is.
    Never,
}

/// Waiting output, in wire bytes, above which items merge: the capacity of a Linux pipe.
const MERGE_ABOVE: usize = 64 * 1024;
/// Waiting output, in wire bytes, from which producers wait.
const FULL: usize = 1024 * 1024;
/// Waiting output, in wire bytes, below which producers wake. It is half of [`FULL`], so that they
/// make many items in a row instead of waking for each.
const WAKE_BELOW: usize = FULL / 2;
/// Waiting output, in wire bytes, from which no more requests should be read.
const REQUESTS_FULL: usize = 64 * 1024 * 1024;
/// Waiting items from which producers wait.
const FULL_ITEMS: usize = 4096;
/// The number of waiting items to search for the last one of a stream.
const MERGE_SEARCH: usize = 64;

/// A queue; clones refer to the same queue.
#[derive(Debug)]
pub struct Queue<T> {
    shared: Arc<SharedQueue<T>>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

#[derive(Debug)]
struct SharedQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Wakes the consumer, if it is a thread.
    filled: Condvar,
    /// Wakes the consumer, if it is a task.
    filled_task: Notify,
    /// Wakes producers that wait for room, and callers of [`Queue::broken`].
    drained: Notify,
    coalesce: Coalesce,
}

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<T>,
    weight: usize,
    /// The producers have finished.
    closed: bool,
    /// The consumer has stopped; items are dropped.
    broken: bool,
    /// The consumer that must be woken.
    waiting: Option<Consumer>,
    /// The weight below which a waiting producer wants to wake; zero if no producer waits.
    wake_below: usize,
}

/// A consumer that found the queue empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consumer {
    /// A thread, blocked in [`Queue::pop`].
    Thread,
    /// A task that awaits [`Queue::filled`].
    Task,
}

/// The result of taking an item without waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<T> {
    Item(T),
    /// Nothing is waiting.
    Empty,
    /// Nothing is waiting and nothing more will come.
    Closed,
}

impl<T: Outgoing> Queue<T> {
    /// Creates an empty queue.
    pub fn new(coalesce: Coalesce) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            weight: 0,
            closed: false,
            broken: false,
            waiting: None,
            wake_below: 0,
        };
        let shared = SharedQueue {
            state: Mutex::new(state),
            filled: Condvar::new(),
            filled_task: Notify::new(),
            drained: Notify::new(),
            coalesce,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Adds an item. It never blocks, and drops the item only if the consumer has stopped.
    pub fn push(&self, item: T) {
        let mut state = self.lock();
        if state.broken {
            return;
        }
        let weight = item.weight();
        let merge = self.shared.coalesce == Coalesce::WhenBehind && state.weight > MERGE_ABOVE;
        let mut newest = state.items.iter_mut().rev().take(MERGE_SEARCH);
        let last = if merge {
            newest.find(|last| last.same_stream(&item))
        } else {
            None
        };
        let item = match last {
            Some(last) => {
                let before = last.weight();
                match last.absorb(item) {
                    Ok(()) => {
                        let after = last.weight();
                        state.weight = (state.weight + after).saturating_sub(before);
                        return;
                    }
                    Err(item) => item,
                }
            }
            None => item,
        };
        state.weight += weight;
        state.items.push_back(item);
        let waiting = state.waiting.take();
        // The woken consumer needs the lock.
        drop(state);
        match waiting {
            Some(Consumer::Thread) => self.shared.filled.notify_one(),
            Some(Consumer::Task) => self.shared.filled_task.notify_one(),
            None => {}
        }
    }

    /// Reports whether a producer of progress may continue.
    pub fn has_room(&self) -> bool {
        let state = self.lock();
        state.broken || (state.weight < FULL && state.items.len() < FULL_ITEMS)
    }

    /// Waits until a producer of progress may continue.
    pub async fn room(&self) {
        self.until(WAKE_BELOW, |state| {
            state.weight < FULL && state.items.len() < FULL_ITEMS
        })
        .await;
    }

    /// Waits until there is room for the responses to more requests. The bound is far above the
    /// bound of progress, so that a client that does not read its output can still send an abort.
    pub async fn room_for_answers(&self) {
        self.until(REQUESTS_FULL, |state| state.weight < REQUESTS_FULL)
            .await;
    }

    /// Waits until the consumer has stopped.
    pub async fn broken(&self) {
        self.until(0, |_| false).await;
    }

    /// Waits until `wanted` holds or the consumer has stopped. Checks again each time the waiting
    /// weight falls below `wake_below`.
    async fn until(&self, wake_below: usize, wanted: impl Fn(&QueueState<T>) -> bool) {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let mut state = self.lock();
                if state.broken || wanted(&state) {
                    return;
                }
                state.wake_below = state.wake_below.max(wake_below);
            }
            drained.await;
        }
    }

    /// Ends the input; the consumer stops after it has taken every item.
    pub fn close(&self) {
        self.lock().closed = true;
        self.shared.filled.notify_one();
        self.shared.filled_task.notify_one();
    }

    /// Takes the next item; blocks until there is one. `None` once the queue is closed and empty.
    ///
    /// `idle` runs before blocking, so that the consumer can flush. If it returns false, the
    /// consumer stops.
    pub(crate) fn pop(&self, mut idle: impl FnMut() -> bool) -> Option<T> {
        let mut flushed = false;
        loop {
            match self.take() {
                Taken::Item(item) => return Some(item),
                Taken::Empty | Taken::Closed if !flushed => {
                    if !idle() {
                        return None;
                    }
                    flushed = true;
                }
                Taken::Closed => return None,
                Taken::Empty => {
                    let mut state = self.lock();
                    if state.items.is_empty() && !state.closed {
                        state.waiting = Some(Consumer::Thread);
                        drop(
                            self.shared
                                .filled
                                .wait(state)
                                .unwrap_or_else(PoisonError::into_inner),
                        );
                    }
                    flushed = false;
                }
            }
        }
    }

    /// Takes the next item without waiting for one, and wakes producers that now have room.
    pub(crate) fn take(&self) -> Taken<T> {
        let mut state = self.lock();
        let Some(item) = state.items.pop_front() else {
            return if state.closed {
                Taken::Closed
            } else {
                Taken::Empty
            };
        };
        state.weight = state.weight.saturating_sub(item.weight());
        if state.items.is_empty() {
            state.weight = 0;
        }
        let wake = state.weight < state.wake_below;
        if wake {
            state.wake_below = 0;
        }
        drop(state);
        if wake {
            self.shared.drained.notify_waiters();
        }
        Taken::Item(item)
    }

    /// Waits until there is an item or the queue is closed.
    pub(crate) async fn filled(&self) {
        loop {
            let filled = self.shared.filled_task.notified();
            {
                let mut state = self.lock();
                if !state.items.is_empty() || state.closed {
                    return;
                }
                state.waiting = Some(Consumer::Task);
            }
            // A wake-up before this line is stored, so it is not lost.
            filled.await;
        }
    }

    /// Returns the estimated bytes that wait.
    pub(crate) fn weight(&self) -> usize {
        self.lock().weight
    }

    /// Marks the consumer as stopped: waiting items and later ones are dropped.
    pub(crate) fn mark_broken(&self) {
        let mut state = self.lock();
        state.broken = true;
        state.items.clear();
        state.weight = 0;
        drop(state);
        self.shared.drained.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        // The state is a plain list; a panic elsewhere cannot leave it half changed.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Item {
        Progress(String),
        Answer(u32),
    }

    impl Outgoing for Item {
        fn absorb(&mut self, next: Self) -> Result<(), Self> {
            match (self, next) {
                (Self::Progress(text), Self::Progress(more)) => {
                    text.push_str(&more);
                    Ok(())
                }
                (_, next) => Err(next),
            }
        }

        fn weight(&self) -> usize {
            match self {
                Self::Progress(_) => 40_000,
                Self::Answer(_) => 100,
            }
        }
    }

    fn drain(queue: &Queue<Item>) -> Vec<Item> {
        queue.close();
        std::iter::from_fn(|| queue.pop(|| true)).collect()
    }

    #[test]
    fn progress_merges_only_when_behind() {
        let queue = Queue::new(Coalesce::WhenBehind);
        for text in ["a", "b", "c", "d"] {
            queue.push(Item::Progress(text.into()));
        }
        let expected = [Item::Progress("a".into()), Item::Progress("bcd".into())];
        assert_eq!(drain(&queue), expected);
    }

    #[derive(Debug, PartialEq)]
    struct OfStream(u32, String);

    impl Outgoing for OfStream {
        fn absorb(&mut self, next: Self) -> Result<(), Self> {
            assert_eq!(self.0, next.0, "streams do not mix");
            self.1.push_str(&next.1);
            Ok(())
        }

        fn weight(&self) -> usize {
            40_000
        }

        fn same_stream(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    #[test]
    fn streams_that_alternate_merge_each_with_itself() {
        let queue = Queue::new(Coalesce::WhenBehind);
        for text in ["a", "b", "c", "d"] {
            queue.push(OfStream(1, text.into()));
            queue.push(OfStream(2, text.into()));
        }
        queue.close();
        let out: Vec<OfStream> = std::iter::from_fn(|| queue.pop(|| true)).collect();
        let texts = |number| -> Vec<&str> {
            let own = out.iter().filter(|item| item.0 == number);
            own.map(|item| &*item.1).collect()
        };
        assert_eq!(texts(1), ["abcd"]);
        assert_eq!(texts(2), ["abcd"]);
    }

    #[test]
    fn never_means_never() {
        let queue = Queue::new(Coalesce::Never);
        for _ in 0..100 {
            queue.push(Item::Progress("x".into()));
        }
        assert_eq!(drain(&queue).len(), 100);
    }

    #[tokio::test]
    async fn room_is_given_back_when_the_consumer_catches_up() {
        let queue = Queue::new(Coalesce::Never);
        while queue.has_room() {
            queue.push(Item::Progress("x".into()));
        }
        let consumer = queue.clone();
        let many = queue.lock().items.len() - 1;
        let thread =
            std::thread::spawn(move || (0..many).filter_map(|_| consumer.pop(|| true)).count());
        queue.room().await;
        assert_eq!(thread.join().unwrap(), many);
    }

    #[tokio::test]
    async fn a_producer_is_woken_when_half_is_gone() {
        let queue = Queue::new(Coalesce::Never);
        while queue.has_room() {
            queue.push(Item::Progress("x".into()));
        }
        let mut room = room_of(queue.clone());
        assert!(!room().await);
        queue.pop(|| true);
        assert!(!room().await, "one item less is no reason to wake anybody");
        while queue.lock().weight >= WAKE_BELOW {
            queue.pop(|| true);
        }
        assert!(room().await);
    }

    /// Polls one call of `room` without waiting; true once it has returned.
    fn room_of(queue: Queue<Item>) -> impl AsyncFnMut() -> bool {
        let task = tokio::spawn(async move { queue.room().await });
        async move || {
            tokio::task::yield_now().await;
            task.is_finished()
        }
    }

    proptest! {
        #[test]
        fn answers_are_never_lost_and_progress_keeps_its_text(
            items in proptest::collection::vec(
                prop_oneof!["[a-z]{1,3}".prop_map(Item::Progress), any::<u32>().prop_map(Item::Answer)],
                0..300,
            ),
        ) {
            let queue = Queue::new(Coalesce::WhenBehind);
            for item in &items {
                queue.push(item.clone());
            }
            let out = drain(&queue);
            let answers = |items: &[Item]| -> Vec<u32> {
                items.iter().filter_map(|item| match item { Item::Answer(n) => Some(*n), Item::Progress(_) => None }).collect()
            };
            let text = |items: &[Item]| -> String {
                items.iter().map(|item| match item { Item::Progress(text) => text.as_str(), Item::Answer(_) => "|" }).collect()
            };
            prop_assert_eq!(answers(&out), answers(&items));
            prop_assert_eq!(text(&out), text(&items));
        }
    }
}
