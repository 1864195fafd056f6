//! Answers of the HTTP server: single messages and streams of events.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::admission::Refusal;
use crate::rpc::{self, Fault, Id, code};

/// The body of an answer.
pub(super) enum Answer {
    /// A complete body.
    Whole(Option<Bytes>),
    /// Events as they arrive.
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => formatter.debug_tuple("Whole").field(bytes).finish(),
            Self::Events(_) => formatter.write_str("Events"),
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events
                .as_mut()
                .poll_next(context)
                .map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// Returns an answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(None));
    *response.status_mut() = status;
    response
}

/// Returns an answer that contains one message.
pub(super) fn message(status: StatusCode, message: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(message)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Returns an answer with a JSON-RPC error.
pub(super) fn fault(status: StatusCode, id: Option<&Id>, fault: &Fault) -> Response<Answer> {
    message(status, rpc::fault(id, fault))
}

/// Returns an answer that refuses a request, with the reason.
pub(super) fn refused(
    status: StatusCode,
    words: impl Into<std::borrow::Cow<'static, str>>,
) -> Response<Answer> {
    fault(status, None, &Fault::new(code::INVALID_REQUEST, words))
}

/// Returns the answer to a client that is not permitted.
pub(super) fn forbidden(refusal: Refusal) -> Response<Answer> {
    let mut response = refused(refusal.status(), refusal.message());
    if refusal.status() == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Returns the answer to an HTTP method that is not supported here.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Answer> {
    let mut response = refused(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("only {allowed} here"),
    );
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Returns an answer that is a stream of events.
pub(super) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Response<Answer> {
    let mut response = Response::new(Answer::Events(Box::pin(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
