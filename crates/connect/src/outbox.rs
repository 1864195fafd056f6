//! The buffer between a producer of messages and the body that sends them.
//!
//! It holds what fits into one write and no more. A producer that is ahead waits, so back-pressure reaches it, and
//! small messages produced together leave together. Producer and body usually run in one task; then neither wakes the
//! other.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use pinion_status::{Code, Failure};

use crate::body::Piece;
use crate::envelope;

/// Copied bytes in the buffer from which a producer waits.
const MAX_COPIED: usize = 16 * 1024;
/// Bytes in the buffer, copied or not, from which a producer waits. Large payloads are not copied, so they may fill
/// more of it, and each write of a connection is expensive.
const MAX_BUFFERED: usize = 256 * 1024;
/// Payloads up to this length, in bytes, are copied behind their prefix.
const COPY_THRESHOLD: usize = 4 * 1024;

/// Clones share one buffer.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    state: Arc<Mutex<OutboxState>>,
}

#[derive(Debug)]
struct OutboxState {
    framing: Framing,
    /// Large payloads, each after the bytes before it.
    parts: Vec<Bytes>,
    /// Bytes in `parts`.
    parts_length: usize,
    /// Bytes copied after the last of `parts`.
    buffer: Vec<u8>,
    messages: u64,
    headers: HeaderMap,
    trailers: HeaderMap,
    /// The producer sends no more messages.
    finished: bool,
    /// The body is gone and sends no more messages.
    abandoned: bool,
    /// The stream is to be aborted.
    aborted: bool,
    /// The condition under which the answer may begin.
    hold: Hold,
    /// Waits for messages.
    consumer: Option<Waker>,
    /// Waits for room.
    producer: Option<Waker>,
}

/// The condition that delays the beginning of an answer. Some clients stop sending their request as soon as an answer
/// begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The answer may begin at once.
    No,
    /// The answer waits until the first message of the request was read, or one of the answer was sent.
    FirstMessage,
    /// The answer waits until the whole request was read, or its own messages fill the buffer.
    WholeRequest,
}

/// Delays the beginning of an answer until it is dropped.
#[derive(Debug)]
pub(crate) struct HoldGuard(Outbox);

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.hold = Hold::No;
        if let Some(waker) = state.consumer.take() {
            waker.wake();
        }
    }
}

/// The number and framing of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One message, without an envelope.
    Bare,
    /// One message, in an envelope.
    Single,
    /// Any number of messages, each in an envelope.
    Stream,
}

impl Outbox {
    pub(crate) fn new(framing: Framing) -> Self {
        let state = OutboxState {
            framing,
            parts: Vec::new(),
            parts_length: 0,
            buffer: Vec::new(),
            messages: 0,
            headers: HeaderMap::new(),
            trailers: HeaderMap::new(),
            finished: false,
            abandoned: false,
            aborted: false,
            hold: Hold::No,
            consumer: None,
            producer: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, then lets `write` append a message in an envelope with these flags. `write` appends the message
    /// to its buffer and may return a tail that is sent without a copy.
    pub(crate) async fn put(
        &self,
        flags: u8,
        mut write: impl FnMut(&mut Vec<u8>) -> Vec<Bytes>,
    ) -> Result<(), Failure> {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.abandoned {
                return Poll::Ready(Err(body_gone()));
            }
            if state.framing != Framing::Stream && state.messages > 0 {
                let message = "a unary call was given a second answer";
                return Poll::Ready(Err(Failure::new(Code::Internal, message)));
            }
            if state.is_full() {
                state.producer = Some(context.waker().clone());
                return Poll::Pending;
            }
            let put = state.put(flags, &mut write);
            wake(state.consumer.take(), context);
            Poll::Ready(put)
        })
        .await
    }

    /// Takes the buffered bytes, or waits for some. `None` is the end of the stream, an error an aborted stream.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Piece>>> {
        let mut state = self.lock();
        if state.aborted {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        if !state.is_empty() {
            let piece = state.take();
            wake(state.producer.take(), context);
            return Poll::Ready(Some(Ok(piece)));
        }
        if state.finished {
            return Poll::Ready(None);
        }
        match &mut state.consumer {
            Some(consumer) => consumer.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Delays the beginning of the answer until the returned guard is dropped.
    pub(crate) fn hold(&self, hold: Hold) -> HoldGuard {
        self.lock().hold = hold;
        HoldGuard(self.clone())
    }

    /// Waits until the answer may begin.
    pub(crate) fn poll_open(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        let open = match state.hold {
            Hold::No => true,
            Hold::FirstMessage => state.messages > 0,
            // A handler that waits for room would never read the rest of the request.
            Hold::WholeRequest => state.is_full(),
        };
        if open {
            return Poll::Ready(());
        }
        state.consumer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends the messages of the producer.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        if let Some(waker) = state.consumer.take() {
            waker.wake();
        }
    }

    /// Records that the body is gone; the producer's next message fails.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        if let Some(waker) = state.producer.take() {
            waker.wake();
        }
    }

    /// Aborts the stream in both directions.
    pub(crate) fn abort(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.aborted = !(state.finished && state.is_empty());
        for waker in [state.producer.take(), state.consumer.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }

    /// Reports whether all messages were sent and none will follow.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.finished && state.is_empty() && !state.aborted
    }

    /// Reports whether bytes wait to be sent.
    pub(crate) fn holds_any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Reports whether the producer has sent a message.
    pub(crate) fn has_sent(&self) -> bool {
        self.lock().messages > 0
    }

    pub(crate) fn headers(&self, change: impl FnOnce(&mut HeaderMap)) {
        change(&mut self.lock().headers);
    }

    pub(crate) fn trailers(&self, change: impl FnOnce(&mut HeaderMap)) {
        change(&mut self.lock().trailers);
    }

    pub(crate) fn take_headers(&self) -> HeaderMap {
        std::mem::take(&mut self.lock().headers)
    }

    /// Closes the buffer and returns the bytes left in it.
    pub(crate) fn close(&self) -> Rest {
        let mut state = self.lock();
        state.abandoned = true;
        if let Some(waker) = state.producer.take() {
            waker.wake();
        }
        Rest {
            lacks_message: state.framing != Framing::Stream && state.messages == 0,
            parts: std::mem::take(&mut state.parts),
            buffer: std::mem::take(&mut state.buffer),
            headers: std::mem::take(&mut state.headers),
            trailers: std::mem::take(&mut state.trailers),
        }
    }
}

/// The bytes left in the buffer when a call ended.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The call requires exactly one message and has none.
    pub(crate) lacks_message: bool,
    pub(crate) parts: Vec<Bytes>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) headers: HeaderMap,
    pub(crate) trailers: HeaderMap,
}

impl Rest {
    /// Appends a last envelope.
    pub(crate) fn end_with(mut self, flags: u8, payload: &[u8]) -> Piece {
        let head = envelope::head(flags, payload.len()).unwrap_or([flags, 0, 0, 0, 0]);
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(payload);
        self.into_piece()
    }

    pub(crate) fn into_piece(self) -> Piece {
        piece(self.parts, self.buffer)
    }
}

fn piece(mut parts: Vec<Bytes>, buffer: Vec<u8>) -> Piece {
    if parts.is_empty() {
        return Bytes::from(buffer).into();
    }
    if !buffer.is_empty() {
        parts.push(buffer.into());
    }
    Piece::new(parts)
}

impl OutboxState {
    fn is_full(&self) -> bool {
        self.buffer.len() >= MAX_COPIED || self.buffer.len() + self.parts_length >= MAX_BUFFERED
    }

    fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.parts.is_empty()
    }

    fn put(
        &mut self,
        flags: u8,
        write: &mut dyn FnMut(&mut Vec<u8>) -> Vec<Bytes>,
    ) -> Result<(), Failure> {
        let start = self.buffer.len();
        let framed = self.framing != Framing::Bare;
        if framed {
            self.buffer.extend_from_slice(&[0; envelope::HEAD_LENGTH]);
        }
        let tail = write(&mut self.buffer);
        let behind: usize = tail.iter().map(Bytes::len).sum();
        if framed {
            let length = self.buffer.len() - start - envelope::HEAD_LENGTH + behind;
            let head = match envelope::head(flags, length) {
                Ok(head) => head,
                Err(failure) => {
                    self.buffer.truncate(start);
                    return Err(failure);
                }
            };
            self.buffer[start..start + envelope::HEAD_LENGTH].copy_from_slice(&head);
        }
        match behind {
            0..=COPY_THRESHOLD => tail
                .iter()
                .for_each(|part| self.buffer.extend_from_slice(part)),
            _ => {
                self.parts_length += self.buffer.len() + behind;
                if !self.buffer.is_empty() {
                    self.parts.push(std::mem::take(&mut self.buffer).into());
                }
                self.parts.extend(tail);
            }
        }
        self.messages += 1;
        Ok(())
    }

    fn take(&mut self) -> Piece {
        self.parts_length = 0;
        piece(
            std::mem::take(&mut self.parts),
            std::mem::take(&mut self.buffer),
        )
    }
}

/// The failure of a producer whose body is gone.
fn body_gone() -> Failure {
    Failure::new(Code::Canceled, "the other side has closed the stream")
}

/// Wakes the other side, unless it is the running task, which looks at the buffer by itself.
fn wake(waker: Option<Waker>, context: &Context<'_>) {
    if let Some(waker) = waker
        && !waker.will_wake(context.waker())
    {
        waker.wake();
    }
}
