//! The messages that belong to one request, kept so that a client that lost its connection can go on where it was.
//!
//! While somebody reads, the sender waits for them. While nobody does, a bounded number of messages is kept; what is dropped
//! is progress, never the answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::gateway::Outlet;

/// So many messages are kept for somebody who comes back.
const KEPT: usize = 64;
/// So many bytes of them.
const KEPT_BYTES: usize = 1024 * 1024;
/// So many messages may wait for a reader.
const AHEAD: usize = 16;
/// A stream on which nothing happens says so now and then, lest somebody on the way closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Whether a client that lost its connection may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumption {
    /// It may; messages are numbered. With `primed` the stream begins with a number.
    Numbered { primed: bool },
    /// It may not.
    None,
}

/// How a client got everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// As one answer.
    Whole,
    /// As events. What was handed out last may be lost on the way.
    Events,
}

/// The messages of one stream.
#[derive(Debug)]
pub(super) struct EventLog {
    number: u64,
    resumption: Resumption,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the next message.
    next: u64,
    /// Messages before this one were handed out.
    read: u64,
    /// Who reads, if anybody does.
    reader: Option<u64>,
    readers: u64,
    /// Nobody has been reading since.
    alone_since: Instant,
    /// No more messages will come; the status of the answer if it is the only one.
    over: Option<StatusCode>,
    /// Set once everything was handed out, and the reader saw the end.
    delivered: Option<Delivery>,
}

impl EventLog {
    pub(super) fn new(number: u64, resumption: Resumption) -> Arc<Self> {
        let state = State {
            events: VecDeque::new(),
            bytes: 0,
            next: 1,
            read: 1,
            reader: None,
            readers: 0,
            alone_since: Instant::now(),
            over: None,
            delivered: None,
        };
        Arc::new(Self {
            number,
            resumption,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` finds something.
    async fn wait<T>(&self, mut done: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = done(&mut self.state()) {
                return found;
            }
            changed.await;
        }
    }

    /// Adds a message without waiting for room.
    pub(super) fn push(&self, message: Bytes) {
        self.state().push(message);
        self.changed.notify_waiters();
    }

    /// No more messages will come after `last`.
    pub(super) fn finish(&self, status: StatusCode, last: Option<Bytes>) {
        let mut state = self.state();
        if state.over.is_none() {
            state.over = Some(status);
            if let Some(last) = last {
                state.push(last);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until nobody needs to be told anything any more.
    pub(super) async fn delivered(&self) -> Delivery {
        self.wait(|state| state.delivered).await
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until nobody has been reading for this long.
    pub(super) async fn abandoned(&self, patience: Duration) {
        loop {
            let since = self
                .wait(|state| state.reader.is_none().then_some(state.alone_since))
                .await;
            let came_back = self.wait(|state| state.reader.is_some().then_some(()));
            if tokio::time::timeout_at(since + patience, came_back)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Whether somebody reads.
    pub(super) fn is_read(&self) -> bool {
        self.state().reader.is_some()
    }

    /// Reads on after the message of this number, or what is new. Whoever was reading is done.
    pub(super) fn attach(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut state = self.state();
        state.readers += 1;
        state.reader = Some(state.readers);
        state.read = after.map_or(state.next, |after| after.saturating_add(1));
        state.delivered = None;
        let reader = Reader {
            log: self.clone(),
            me: state.readers,
        };
        drop(state);
        self.changed.notify_waiters();
        reader
    }
}

impl State {
    fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.events.push_back((self.next, message));
        self.next += 1;
        while self.events.len() > 1 && (self.events.len() > KEPT || self.bytes > KEPT_BYTES) {
            let unread = self
                .events
                .front()
                .is_some_and(|(number, _)| *number >= self.read);
            if unread && self.reader.is_some() {
                break;
            }
            if let Some((_, dropped)) = self.events.pop_front() {
                self.bytes -= dropped.len();
            }
        }
    }
}

impl Outlet for EventLog {
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let has_room = |state: &mut State| {
                state.reader.is_none() || state.next - state.read.min(state.next) < AHEAD as u64
            };
            self.wait(|state| has_room(state).then_some(())).await;
            self.push(message);
        })
    }
}

/// Somebody who reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    log: Arc<EventLog>,
    me: u64,
}

/// How an answer begins.
#[derive(Debug)]
pub(super) enum First {
    /// It is all there.
    Whole(StatusCode, Option<Bytes>),
    /// It takes a while, or consists of several messages.
    Stream,
}

impl Reader {
    /// Waits a little to see whether the answer is one message.
    pub(super) async fn first(&self, patience: Duration) -> First {
        let seen = self.log.wait(|state| match state.over {
            Some(status) if state.events.len() <= 1 => {
                state.delivered = Some(Delivery::Whole);
                let message = state.events.front().map(|(_, message)| message.clone());
                Some(First::Whole(status, message))
            }
            None if state.events.is_empty() => None,
            _ => Some(First::Stream),
        });
        let first = tokio::time::timeout(patience, seen).await;
        if matches!(first, Ok(First::Whole(..))) {
            self.log.changed.notify_waiters();
        }
        first.unwrap_or(First::Stream)
    }

    /// The next message, with its number; `None` at the end, or when somebody else has taken over.
    async fn next(&self) -> Option<(u64, Bytes)> {
        let next = self
            .log
            .wait(|state| {
                if state.reader != Some(self.me) {
                    return Some(None);
                }
                let found = state
                    .events
                    .iter()
                    .find(|(number, _)| *number >= state.read);
                if let Some((number, message)) = found.cloned() {
                    state.read = number + 1;
                    return Some(Some((number, message)));
                }
                state.over.map(|_| {
                    state.delivered = Some(Delivery::Events);
                    None
                })
            })
            .await;
        self.log.changed.notify_waiters();
        next
    }

    /// The messages as events on the wire.
    pub(super) fn into_events(self) -> impl Stream<Item = Bytes> + Send {
        let primed = self.log.resumption == Resumption::Numbered { primed: true };
        futures_util::stream::unfold((self, primed), |(reader, primed)| async move {
            if primed {
                let id = format!("id: {}-0\ndata:\n\n", reader.log.number);
                return Some((Bytes::from(id), (reader, false)));
            }
            match tokio::time::timeout(KEEP_ALIVE, reader.next()).await {
                Ok(Some((number, message))) => {
                    let event = reader.event(number, &message);
                    Some((event, (reader, false)))
                }
                Ok(None) => None,
                Err(_) => Some((Bytes::from_static(b":\n\n"), (reader, false))),
            }
        })
    }

    fn event(&self, number: u64, message: &[u8]) -> Bytes {
        let mut event = match self.log.resumption {
            Resumption::Numbered { .. } => format!("id: {}-{number}\n", self.log.number).into(),
            Resumption::None => Vec::new(),
        };
        event.extend_from_slice(b"event: message\ndata: ");
        event.extend_from_slice(message);
        event.extend_from_slice(b"\n\n");
        event.into()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.log.state();
        if state.reader == Some(self.me) {
            state.reader = None;
            state.alone_since = Instant::now();
        }
        drop(state);
        self.log.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
