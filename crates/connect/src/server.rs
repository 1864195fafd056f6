//! The server: connections in, calls to a [`Service`], answers out.

mod activity;
mod admission;
mod connection;
mod cross;
mod dispatch;
mod get;
mod going;
mod io;
mod listen;
mod options;
mod reply;
mod stream;
mod tls;

use std::future::Future;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use pinion_status::Failure;

pub(crate) use activity::Guard;
pub(crate) use admission::Standing;
pub use cross::{authority, is_own_origin};
pub use listen::Server;
pub use options::{Limits, Origins, ServerOptions};
pub(crate) use stream::Streaming;
pub use tls::Tls;

use crate::arriving::Arriving;
use crate::body::Body;
use crate::call::{Call, Peer};
use crate::failures::error_body;

/// How a method may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One request, one answer.
    Unary,
    /// One request, any number of answers.
    ServerStream,
    /// Any number of requests, then one answer.
    ClientStream,
    /// Any number of both; needs HTTP/2.
    Bidi,
    /// Unary without envelopes, a server stream with them.
    Either,
    /// Any number of both; over HTTP/1.1 the answer starts when the request was read to its end.
    BidiOrSingle,
}

/// What answers calls, and whatever else is asked for on the same port.
pub trait Service: Send + Sync + 'static {
    /// How the method may be called; `None`: there is no such method.
    fn method(&self, name: &str) -> Option<Kind>;

    /// Whether a unary method changes nothing. Connect clients may then call it with GET, which web pages and caches do without
    /// asking: leave it out for methods that cost or reveal anything.
    fn has_no_side_effects(&self, _name: &str) -> bool {
        false
    }

    /// The JSON body of a unary Connect call that failed. Connect's own form unless this is implemented.
    fn error_body(&self, failure: &Failure) -> Vec<u8> {
        error_body(failure)
    }

    /// Serves one call; what it returns is how the call ends. Nothing of the request was read yet but its head: whoever may not
    /// call should be told before [`Call::requests`] is asked for anything. What is left unread is read and forgotten, within
    /// limits, so that the caller sees the answer.
    ///
    /// The future is dropped when the caller leaves or its time is up. While the caller does not read what was sent, the future
    /// of a stream is polled once a second only, which is enough to see that it should end; what must go on regardless belongs
    /// into a task of its own, [`Call::requests`] and [`Call::answers`] may be moved there.
    fn serve(self: Arc<Self>, call: Call) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Answers a request that is no call. Nothing is found unless this is implemented.
    fn plain(
        self: Arc<Self>,
        _request: Request<Arriving>,
        _peer: Peer,
    ) -> impl Future<Output = Response<Body>> + Send {
        std::future::ready(bare(StatusCode::NOT_FOUND))
    }
}

/// An answer without a body.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
