//! The answer of a streaming call: a body that runs its handler while it is polled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Buf;
use http::HeaderMap;
use http_body::Frame;
use pinion_status::Failure;
use tokio::time::Sleep;

use crate::body::Piece;
use crate::envelope::{END, TRAILERS};
use crate::failures;
use crate::outbox::Outbox;
use crate::protocol::Protocol;
use crate::timeout;

type Handler = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A streaming call. The connection polls it when it can take more, and drops it when the caller is gone.
pub(crate) struct Streaming {
    phase: Phase,
    outbox: Outbox,
    protocol: Protocol,
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
}

enum Phase {
    Running(Handler),
    /// The handler is done; what it left must go out, then the end.
    Ended(Result<(), Failure>),
    /// Only the trailers are left.
    Trailers(HeaderMap),
    Over,
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
        Self {
            phase: Phase::Running(handler),
            outbox,
            protocol,
            deadline: deadline.map(sleep),
        }
    }

    /// Lets the handler go on.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) {
        let Phase::Running(handler) = &mut self.phase else {
            return;
        };
        if let Poll::Ready(result) = handler.as_mut().poll(context) {
            self.phase = Phase::Ended(result);
        } else if let Some((sleep, limit)) = &mut self.deadline
            && sleep.as_mut().poll(context).is_ready()
        {
            self.phase = Phase::Ended(Err(timeout::timed_out(*limit)));
        }
    }

    /// The failure of a call that ended before it sent anything; the call is over then.
    pub(crate) fn early_failure(&mut self) -> Option<(Failure, HeaderMap)> {
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

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(crate) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Piece>>> {
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

    /// The last messages and the end.
    fn end(&mut self, failure: Option<&Failure>) -> Frame<Piece> {
        let mut rest = self.outbox.close();
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

impl Drop for Streaming {
    fn drop(&mut self) {
        // The handler first: it may want to say something on its way out.
        self.phase = Phase::Over;
        self.outbox.abandon();
    }
}
