//! The messages that belong to one request, stored so that a client that lost its connection can resume.
//!
//! While a client reads, the sender waits for it. While no client reads, a limited number of messages is stored;
//! progress may be dropped, the answer never.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::gateway::NotificationSink;

/// Messages stored for a client that reconnects.
const MAX_STORED_EVENTS: usize = 64;
/// Bytes stored for a client that reconnects.
const MAX_STORED_BYTES: usize = 1024 * 1024;
/// Unread messages from which the sender waits for its reader.
const MAX_UNREAD: usize = 16;
/// Interval of comments on an idle stream, so that no proxy closes it.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Decides whether a client that lost its connection can resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumption {
    /// The client can resume; messages are numbered. With `primed` the stream begins with an event that has a number
    /// and no data.
    Numbered { primed: bool },
    /// The client cannot resume.
    None,
}

/// The form in which a client received all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// One answer.
    Whole,
    /// Events. The last ones may have been lost on the network.
    Events,
}

/// The messages of one stream.
#[derive(Debug)]
pub(super) struct EventLog {
    number: u64,
    resumption: Resumption,
    state: Mutex<EventLogState>,
    changed: Notify,
}

#[derive(Debug)]
struct EventLogState {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the next message.
    next: u64,
    /// Messages with smaller numbers were passed to a reader.
    read: u64,
    /// The number of the current reader.
    reader: Option<u64>,
    readers: u64,
    /// The time since which no client has been reading.
    unread_since: Instant,
    /// No more messages will follow; the status of the answer if it is the only message.
    ended_with: Option<StatusCode>,
    /// Set once a reader has read all messages and seen the end.
    delivered: Option<Delivery>,
}

impl EventLog {
    pub(super) fn new(number: u64, resumption: Resumption) -> Arc<Self> {
        let state = EventLogState {
            events: VecDeque::new(),
            bytes: 0,
            next: 1,
            read: 1,
            reader: None,
            readers: 0,
            unread_since: Instant::now(),
            ended_with: None,
            delivered: None,
        };
        Arc::new(Self {
            number,
            resumption,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, EventLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` returns a value.
    async fn wait<T>(&self, mut done: impl FnMut(&mut EventLogState) -> Option<T>) -> T {
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

    /// Ends the stream after `last`.
    pub(super) fn finish(&self, status: StatusCode, last: Option<Bytes>) {
        let mut state = self.state();
        if state.ended_with.is_none() {
            state.ended_with = Some(status);
            if let Some(last) = last {
                state.push(last);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until a client has received everything.
    pub(super) async fn delivered(&self) -> Delivery {
        self.wait(|state| state.delivered).await
    }

    /// Returns the number of stored bytes.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until no client has been reading for this long.
    pub(super) async fn abandoned(&self, timeout: Duration) {
        loop {
            let since = self
                .wait(|state| state.reader.is_none().then_some(state.unread_since))
                .await;
            let came_back = self.wait(|state| state.reader.is_some().then_some(()));
            if tokio::time::timeout_at(since + timeout, came_back)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Reports whether a client is reading.
    pub(super) fn is_read(&self) -> bool {
        self.state().reader.is_some()
    }

    /// Reads the messages after this number, or the new ones. The reader before ends.
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

impl EventLogState {
    fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.events.push_back((self.next, message));
        self.next += 1;
        while self.events.len() > 1
            && (self.events.len() > MAX_STORED_EVENTS || self.bytes > MAX_STORED_BYTES)
        {
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

impl NotificationSink for EventLog {
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let has_room = |state: &mut EventLogState| {
                state.reader.is_none()
                    || state.next - state.read.min(state.next) < MAX_UNREAD as u64
            };
            self.wait(|state| has_room(state).then_some(())).await;
            self.push(message);
        })
    }
}

/// A client's read access to a stream.
#[derive(Debug)]
pub(super) struct Reader {
    log: Arc<EventLog>,
    me: u64,
}

/// The form of an answer.
#[derive(Debug)]
pub(super) enum AnswerForm {
    /// The answer is complete.
    Whole(StatusCode, Option<Bytes>),
    /// The answer takes longer, or consists of several messages.
    Stream,
}

impl Reader {
    /// Waits up to `timeout` to see whether the answer is one message.
    pub(super) async fn first(&self, timeout: Duration) -> AnswerForm {
        let seen = self.log.wait(|state| match state.ended_with {
            Some(status) if state.events.len() <= 1 => {
                state.delivered = Some(Delivery::Whole);
                let message = state.events.front().map(|(_, message)| message.clone());
                Some(AnswerForm::Whole(status, message))
            }
            None if state.events.is_empty() => None,
            _ => Some(AnswerForm::Stream),
        });
        let first = tokio::time::timeout(timeout, seen).await;
        if matches!(first, Ok(AnswerForm::Whole(..))) {
            self.log.changed.notify_waiters();
        }
        first.unwrap_or(AnswerForm::Stream)
    }

    /// Returns the next message with its number; `None` at the end, or when another reader has taken over.
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
                state.ended_with.map(|_| {
                    state.delivered = Some(Delivery::Events);
                    None
                })
            })
            .await;
        self.log.changed.notify_waiters();
        next
    }

    /// Returns the messages as server-sent events.
    pub(super) fn into_events(self) -> impl Stream<Item = Bytes> + Send {
        let primed = self.log.resumption == Resumption::Numbered { primed: true };
        futures_util::stream::unfold((self, primed), |(reader, primed)| async move {
            if primed {
                let id = format!("id: {}-0\ndata:\n\n", reader.log.number);
                return Some((Bytes::from(id), (reader, false)));
            }
            match tokio::time::timeout(KEEP_ALIVE_INTERVAL, reader.next()).await {
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
            state.unread_since = Instant::now();
        }
        drop(state);
        self.log.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
