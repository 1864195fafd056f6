//! The answer of a streaming call: a body that runs its handler whenever it is polled or nudged.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Buf;
use http::HeaderMap;
use http_body::Frame;
use pinion_status::Failure;
use tokio::time::Sleep;

use super::in_flight::{InFlightCalls, InFlightEntry};
use super::reply::no_answer;
use crate::body::Piece;
use crate::envelope::{END, TRAILERS};
use crate::failures;
use crate::outbox::Outbox;
use crate::protocol::Protocol;
use crate::timeout;

type Handler = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A streaming call. The connection polls it when it can send more, and drops it when the caller is gone.
pub(crate) struct Streaming {
    work: Arc<Mutex<StreamCall>>,
    /// Set once the call is on the list of calls in flight.
    entry: Option<InFlightEntry>,
}

impl Streaming {
    pub(crate) fn new(
        handler: Handler,
        outbox: Outbox,
        protocol: Protocol,
        deadline: Option<(Instant, Duration)>,
    ) -> Self {
        let sleep =
            |(at, limit): (Instant, _)| (Box::pin(tokio::time::sleep_until(at.into())), limit);
        let work = StreamCall {
            phase: Phase::Running(handler),
            outbox,
            protocol,
            deadline: deadline.map(sleep),
            waker: None,
        };
        Self {
            work: Arc::new(Mutex::new(work)),
            entry: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, StreamCall> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the handler. If it is not finished then, adds the call to the list of calls in flight.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>, in_flight: &Arc<InFlightCalls>) {
        self.lock().advance(context);
        if self.entry.is_none() && self.is_running() {
            self.entry = Some(in_flight.add(&self.work));
        }
    }

    /// Returns the failure of a call that ended before it sent anything, and ends the call.
    pub(crate) fn early_failure(&mut self) -> Option<(Failure, HeaderMap)> {
        self.lock().early_failure()
    }

    fn is_running(&self) -> bool {
        self.lock().is_running()
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.lock().phase, Phase::Ended(Err(_)))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.lock().phase, Phase::Over)
    }

    pub(crate) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Piece>>> {
        self.lock().poll_frame(context)
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        let mut work = self.lock();
        // Drop the handler first: it may send messages when it is dropped.
        work.phase = Phase::Over;
        work.outbox.abandon();
    }
}

/// The handler of a call and the state of its answer.
pub(crate) struct StreamCall {
    phase: Phase,
    outbox: Outbox,
    protocol: Protocol,
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
    /// Wakes the connection; `None` before its first poll.
    waker: Option<Waker>,
}

enum Phase {
    Running(Handler),
    /// The handler is finished. Its last messages are still to be sent, and then the end.
    Ended(Result<(), Failure>),
    /// Only the trailers are left.
    Trailers(HeaderMap),
    Over,
}

impl StreamCall {
    /// Polls the handler.
    fn advance(&mut self, context: &mut Context<'_>) {
        let Phase::Running(handler) = &mut self.phase else {
            return;
        };
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        if let Poll::Ready(result) = handler.as_mut().poll(context) {
            self.phase = Phase::Ended(result);
        } else if let Some((sleep, limit)) = &mut self.deadline
            && sleep.as_mut().poll(context).is_ready()
        {
            self.phase = Phase::Ended(Err(timeout::timed_out(*limit)));
        }
    }

    /// Polls the handler although the connection does not ask for more.
    pub(crate) fn nudge(&mut self) {
        let Some(waker) = self.waker.clone().filter(|_| self.is_running()) else {
            return;
        };
        // Uses the connection's own waker, so that the next event still wakes the connection.
        self.advance(&mut Context::from_waker(&waker));
        if !self.is_running() || self.outbox.holds_any() {
            waker.wake();
        }
    }

    /// Drops the handler. The call ends with this failure once the connection asks for more.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if self.is_running() {
            self.phase = Phase::Ended(Err(failure));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    /// Returns the failure of a call that ended before it sent anything, and ends the call.
    fn early_failure(&mut self) -> Option<(Failure, HeaderMap)> {
        let Phase::Ended(Err(_)) = &self.phase else {
            return None;
        };
        if self.outbox.has_sent() {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ended(Err(failure)) => Some((failure, self.outbox.close().trailers)),
            _ => None,
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Piece>>> {
        self.advance(context);
        if let Phase::Running(_) = self.phase {
            let taken = self.outbox.poll_take(context);
            return taken.map(|piece| piece.and_then(Result::ok).map(Frame::data));
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ended(result) => Poll::Ready(Some(self.end(result.err().as_ref()))),
            Phase::Trailers(trailers) => Poll::Ready(Some(Frame::trailers(trailers))),
            Phase::Running(_) | Phase::Over => Poll::Ready(None),
        }
    }

    /// Returns the last messages and the end of the stream.
    fn end(&mut self, failure: Option<&Failure>) -> Frame<Piece> {
        let mut rest = self.outbox.close();
        let owed = (rest.lacks_message && failure.is_none()).then(no_answer);
        let failure = owed.as_ref().or(failure);
        if self.protocol == Protocol::Connect {
            let payload = failures::end_of_stream(failure, &rest.trailers);
            return Frame::data(rest.end_with(END, &payload));
        }
        let mut trailers = std::mem::take(&mut rest.trailers);
        failures::grpc(failure, &mut trailers);
        if self.protocol == Protocol::GrpcWeb {
            let payload = failures::grpc_web(&trailers);
            return Frame::data(rest.end_with(TRAILERS, &payload));
        }
        let piece = rest.into_piece();
        if !piece.has_remaining() {
            return Frame::trailers(trailers);
        }
        self.phase = Phase::Trailers(trailers);
        Frame::data(piece)
    }
}

impl fmt::Debug for StreamCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StreamCall")
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}
