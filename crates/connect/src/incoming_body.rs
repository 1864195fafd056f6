//! The body of a message while it arrives, and what becomes of the part nobody reads.
//!
//! A server that answers before it has read the whole request may not simply close: a client that still sends over HTTP/1 would
//! find its connection broken and never see the answer, and some take it for a failure if HTTP/2 tells them to stop. So the rest
//! is read and forgotten, within limits, while the answer is on its way.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::outbox::Held;

/// How long the next bytes of what nobody wants may take.
const QUIET: Duration = Duration::from_secs(1);
/// How long all of it may take.
const LONGEST: Duration = Duration::from_secs(10);

/// The body of a message while it arrives.
pub struct Arriving {
    body: Option<Incoming>,
    unread: Unread,
    /// Keeps the answer from beginning before the body has ended, or is given up.
    held: Option<Held>,
}

/// What becomes of the part of a body that nobody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The other side is told that it may stop, as HTTP/2 can, or the connection ends.
    Refuse,
    /// Up to this many bytes are read and forgotten.
    Forget(usize),
}

impl Arriving {
    /// The body of a request.
    pub(crate) fn request(body: Incoming, most: usize) -> Self {
        Self {
            body: Some(body),
            // What passes the limit is often one message that is a little too long, and must not hide why it was refused.
            unread: Unread::Forget(most.saturating_mul(2)),
            held: None,
        }
    }

    /// Keeps the answer from beginning before the body has ended.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = self.body.is_some().then_some(held);
    }

    /// The body of an answer.
    pub(crate) fn answer(body: Incoming) -> Self {
        Self {
            body: Some(body),
            unread: Unread::Refuse,
            held: None,
        }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        if let (Unread::Forget(most), Ok(runtime)) =
            (self.unread, tokio::runtime::Handle::try_current())
        {
            runtime.spawn(forget(body, most, self.held.take()));
        }
    }
}

/// Reads what nobody wants. Where it is too much or too slow, `body` is refused.
async fn forget(mut body: Incoming, most: usize, _held: Option<Held>) {
    let mut read = 0;
    let end = Instant::now() + LONGEST;
    while read <= most {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let until = end.min(Instant::now() + QUIET);
        match tokio::time::timeout_at(until, next).await {
            Ok(Some(Ok(frame))) => read += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.body = None;
        }
        if self.is_end_stream() {
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl fmt::Debug for Arriving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Arriving")
            .field("unread", &self.unread)
            .finish_non_exhaustive()
    }
}
