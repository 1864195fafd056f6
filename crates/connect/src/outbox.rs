//! The one place between a producer of messages and the body that carries them.
//!
//! It holds what fits into one write and no more: a producer that is ahead waits, so back-pressure reaches it, and small
//! messages produced in one go leave together. Producer and body usually live in one task; then nobody wakes anybody.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use pinion_status::{Code, Failure};

use crate::body::Piece;
use crate::envelope;

/// Waiting bytes that were copied, from which a producer waits.
const FULL: usize = 16 * 1024;
/// The same for all that is waiting: large payloads cost a producer nothing, and a connection each time it writes.
const FULL_OF_LARGE: usize = 256 * 1024;
/// Payloads up to this length are copied behind their prefix.
const COPIED: usize = 4 * 1024;

/// Clones are the same place.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    framing: Framing,
    /// Large payloads and what stands before each.
    parts: Vec<Bytes>,
    /// Bytes in the parts.
    weight: usize,
    /// What was copied since the last of them.
    buffer: Vec<u8>,
    messages: u64,
    headers: HeaderMap,
    trailers: HeaderMap,
    /// No more messages will come.
    finished: bool,
    /// Nobody will take them.
    abandoned: bool,
    /// The stream they belong to is to be torn down.
    broken_off: bool,
    /// When the answer may begin.
    hold: Hold,
    /// Waits for something to take.
    taker: Option<Waker>,
    /// Waits for room.
    producer: Option<Waker>,
}

/// What the beginning of an answer waits for. Some clients stop sending their request as soon as an answer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing.
    No,
    /// The first message of the request was read, or one of the answer was sent.
    FirstMessage,
    /// The whole request was read, or the messages of the answer fill the outbox.
    WholeRequest,
}

/// Keeps an answer from beginning for as long as it lives.
#[derive(Debug)]
pub(crate) struct Held(Outbox);

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.hold = Hold::No;
        if let Some(waker) = state.taker.take() {
            waker.wake();
        }
    }
}

/// How messages are put down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One message, bare.
    Bare,
    /// One message, in an envelope.
    Single,
    /// Any number, each in an envelope.
    Stream,
}

impl Outbox {
    pub(crate) fn new(framing: Framing) -> Self {
        let state = State {
            framing,
            parts: Vec::new(),
            weight: 0,
            buffer: Vec::new(),
            messages: 0,
            headers: HeaderMap::new(),
            trailers: HeaderMap::new(),
            finished: false,
            abandoned: false,
            broken_off: false,
            hold: Hold::No,
            taker: None,
            producer: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, then lets `write` put down a message in an envelope with these flags: all of it, or the part before what it gives back.
    pub(crate) async fn put(
        &self,
        flags: u8,
        mut write: impl FnMut(&mut Vec<u8>) -> Vec<Bytes>,
    ) -> Result<(), Failure> {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.abandoned {
                return Poll::Ready(Err(gone()));
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
            wake(state.taker.take(), context);
            Poll::Ready(put)
        })
        .await
    }

    /// Takes what is waiting, or waits for it; `None` is the end, an error one that came too early.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Piece>>> {
        let mut state = self.lock();
        if state.broken_off {
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
        match &mut state.taker {
            Some(taker) => taker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Holds the beginning of the answer back until what is returned is dropped.
    pub(crate) fn hold(&self, hold: Hold) -> Held {
        self.lock().hold = hold;
        Held(self.clone())
    }

    /// Waits until the answer may begin.
    pub(crate) fn poll_open(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        let open = match state.hold {
            Hold::No => true,
            Hold::FirstMessage => state.messages > 0,
            // A handler that waits for room would never read the rest.
            Hold::WholeRequest => state.is_full(),
        };
        if open {
            return Poll::Ready(());
        }
        state.taker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Says that no more messages will come.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        if let Some(waker) = state.taker.take() {
            waker.wake();
        }
    }

    /// Says that nobody will take what comes.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        if let Some(waker) = state.producer.take() {
            waker.wake();
        }
    }

    /// Says that the stream is not wanted any more, on either side.
    pub(crate) fn break_off(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.broken_off = !(state.finished && state.is_empty());
        for waker in [state.producer.take(), state.taker.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }

    /// Whether everything was taken and nothing will come.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.finished && state.is_empty() && !state.broken_off
    }

    /// Whether something waits to be taken.
    pub(crate) fn holds_any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Whether there was a message.
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

    /// Closes the place and returns what is left in it.
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

/// What was left when a call ended.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The call takes exactly one message and was given none.
    pub(crate) lacks_message: bool,
    pub(crate) parts: Vec<Bytes>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) headers: HeaderMap,
    pub(crate) trailers: HeaderMap,
}

impl Rest {
    /// Puts a last envelope behind what is left.
    pub(crate) fn end_with(mut self, flags: u8, payload: &[u8]) -> Piece {
        let head = envelope::head(flags, payload.len()).unwrap_or([flags, 0, 0, 0, 0]);
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(payload);
        self.into_piece()
    }

    /// What is left, as it is.
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

impl State {
    fn is_full(&self) -> bool {
        self.buffer.len() >= FULL || self.buffer.len() + self.weight >= FULL_OF_LARGE
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
            self.buffer.extend_from_slice(&[0; envelope::HEAD]);
        }
        let tail = write(&mut self.buffer);
        let behind: usize = tail.iter().map(Bytes::len).sum();
        if framed {
            let length = self.buffer.len() - start - envelope::HEAD + behind;
            let head = match envelope::head(flags, length) {
                Ok(head) => head,
                Err(failure) => {
                    self.buffer.truncate(start);
                    return Err(failure);
                }
            };
            self.buffer[start..start + envelope::HEAD].copy_from_slice(&head);
        }
        match behind {
            0..=COPIED => tail
                .iter()
                .for_each(|part| self.buffer.extend_from_slice(part)),
            _ => {
                self.weight += self.buffer.len() + behind;
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
        self.weight = 0;
        piece(
            std::mem::take(&mut self.parts),
            std::mem::take(&mut self.buffer),
        )
    }
}

/// The failure of a producer whose messages nobody takes any more.
fn gone() -> Failure {
    Failure::new(Code::Canceled, "the other side has left")
}

/// Wakes the other side, unless it is the task that runs now: that one looks by itself.
fn wake(waker: Option<Waker>, context: &Context<'_>) {
    if let Some(waker) = waker
        && !waker.will_wake(context.waker())
    {
        waker.wake();
    }
}
