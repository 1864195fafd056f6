//! The server: accepts connections, passes calls to a [`Service`] and sends its answers.

mod activity;
mod admission;
mod connection;
mod cross_origin;
mod dispatch;
mod get;
mod in_flight;
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

pub(crate) use activity::CallGuard;
pub(crate) use admission::AuthenticationMark;
pub use cross_origin::{authority, is_own_origin};
pub use listen::Server;
pub use options::{Limits, Origins, ServerOptions};
pub(crate) use stream::Streaming;
pub use tls::Tls;

use crate::body::Body;
use crate::call::{IncomingCall, Peer};
use crate::failures::error_body;
use crate::incoming_body::IncomingBody;

/// The number of messages in each direction of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// One request, one answer.
    Unary,
    /// One request, any number of answers.
    ServerStream,
    /// Any number of requests, then one answer.
    ClientStream,
    /// Any number of requests and answers at the same time; needs HTTP/2.
    Bidi,
    /// Unary if called without envelopes, a server stream if called with them.
    Either,
    /// Any number of requests and answers. Over HTTP/1.1 the answer starts after the whole request was read.
    BidiOrSingle,
}

/// Answers calls, and other requests on the same port.
pub trait Service: Send + Sync + 'static {
    /// Returns the kind of a method; `None` if it does not exist.
    fn method(&self, name: &str) -> Option<MethodKind>;

    /// Reports whether a unary method has no side effects. Connect clients may then call it with GET, which web pages
    /// and caches do without a preflight request: return false for methods that are expensive or reveal anything.
    fn has_no_side_effects(&self, _name: &str) -> bool {
        false
    }

    /// Returns the JSON body of a unary Connect call that failed. The default is Connect's own form.
    fn error_body(&self, failure: &Failure) -> Vec<u8> {
        error_body(failure)
    }

    /// Serves one call. The call ends with the returned result. The server has read only the head of the request: check
    /// the caller's permission before reading [`IncomingCall::requests`]. The server reads and discards the unread rest, within
    /// limits, so that the caller receives the answer.
    ///
    /// The server drops the future when the caller leaves or the deadline passes. While the caller does not read, the
    /// future of a stream is polled only once a second, which is enough to notice that it should end. Work that must
    /// continue regardless belongs in a task of its own; [`IncomingCall::requests`] and [`IncomingCall::answers`] may be moved there.
    fn serve(
        self: Arc<Self>,
        call: IncomingCall,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Answers a request that is not a call. The default answers "not found".
    fn plain(
        self: Arc<Self>,
        _request: Request<IncomingBody>,
        _peer: Peer,
    ) -> impl Future<Output = Response<Body>> + Send {
        std::future::ready(bare(StatusCode::NOT_FOUND))
    }
}

/// Returns an answer without a body.
pub(crate) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
