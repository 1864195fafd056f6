//! The body of a message while it is being received, and the treatment of the part that is never read.
//!
//! A server that answers before it has read the whole request must not simply close the connection. A client that is
//! still sending over HTTP/1 would see a broken connection instead of the answer, and some HTTP/2 clients treat a
//! request to stop sending as a failure. So the server reads and discards the rest, within limits, while it sends the
//! answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::outbox::HoldGuard;

/// Longest wait for the next bytes of a body that is being discarded.
const DISCARD_READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time to spend on discarding one body.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of an HTTP message while it is being received.
pub struct IncomingBody {
    body: Option<Incoming>,
    unread: Unread,
    /// Delays the answer until the body has ended or is dropped.
    held: Option<HoldGuard>,
}

/// The treatment of the part of a body that is never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Ask the sender to stop, as HTTP/2 permits, or close the connection.
    Refuse,
    /// Read and discard up to this many bytes.
    Discard(usize),
}

impl IncomingBody {
    pub(crate) fn request(body: Incoming, most: usize) -> Self {
        Self {
            body: Some(body),
            // A request over the limit is often one message that is a little too long. Reading twice the limit lets its
            // sender receive the reason for the refusal.
            unread: Unread::Discard(most.saturating_mul(2)),
            held: None,
        }
    }

    /// Delays the answer until the body has ended.
    pub(crate) fn hold(&mut self, held: HoldGuard) {
        self.held = self.body.is_some().then_some(held);
    }

    pub(crate) fn answer(body: Incoming) -> Self {
        Self {
            body: Some(body),
            unread: Unread::Refuse,
            held: None,
        }
    }
}

impl Drop for IncomingBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        if let (Unread::Discard(most), Ok(runtime)) =
            (self.unread, tokio::runtime::Handle::try_current())
        {
            runtime.spawn(discard(body, most, self.held.take()));
        }
    }
}

/// Reads and discards the rest of a body. Dropping `body` refuses the rest if it is too long or too slow.
async fn discard(mut body: Incoming, most: usize, _held: Option<HoldGuard>) {
    let mut read = 0;
    let end = Instant::now() + DISCARD_TIMEOUT;
    while read <= most {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let until = end.min(Instant::now() + DISCARD_READ_TIMEOUT);
        match tokio::time::timeout_at(until, next).await {
            Ok(Some(Ok(frame))) => read += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

impl Body for IncomingBody {
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

impl fmt::Debug for IncomingBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IncomingBody")
            .field("unread", &self.unread)
            .finish_non_exhaustive()
    }
}
