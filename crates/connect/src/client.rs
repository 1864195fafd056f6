//! The client: calls to one server, over connections that are opened when needed and opened again when lost.

mod address;
mod answer;
mod exchange;
mod line;
mod secure;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pinion_proto::Binary;
use pinion_status::Failure;

pub use secure::Roots;
pub use stream::{Receiver, Sender};

use crate::protocol::{Codec, Protocol};
use address::Address;
use exchange::Duplex;
use line::Lines;

/// How a client speaks.
#[derive(Clone)]
pub struct ClientOptions {
    /// Shown to the server with every call, as `Authorization: Bearer`. Never printed, never sent elsewhere.
    pub token: Option<String>,
    /// The protocol of the calls.
    pub protocol: Protocol,
    /// How messages are written.
    pub codec: Codec,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Whom to trust, when the server speaks TLS.
    pub roots: Roots,
    /// Headers to send with every call.
    pub headers: HeaderMap,
    /// How long a connection may take to open.
    pub connect_time: Duration,
    /// Bytes of one message of an answer.
    pub message: usize,
    /// Compress requests with gzip and ask for answers compressed with gzip.
    pub gzip: bool,
}

/// What one call sends beside its messages.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The time limit of the call; the server receives it too.
    pub timeout: Option<Duration>,
    /// Headers to send, beside those of [`ClientOptions::headers`].
    pub headers: HeaderMap,
    /// Make a unary Connect call with GET. For methods without side effects only.
    pub get: bool,
}

/// The answer of a unary call with everything that came around it.
#[derive(Debug)]
pub struct Reply<Resp> {
    /// The headers of the answer; empty if the server did not answer.
    pub headers: HeaderMap,
    /// The trailers of the answer.
    pub trailers: HeaderMap,
    /// The message, or why there is none.
    pub answer: Result<Resp, Failure>,
}

/// Which HTTP a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1, a connection per call that goes on. No calls that send and receive at a time, no gRPC.
    One,
    /// HTTP/2, one connection for all calls. A server that asks for HTTP/1.1 in the TLS handshake gets that.
    #[default]
    Two,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            token: None,
            protocol: Protocol::Connect,
            codec: Codec::default(),
            http: HttpVersion::default(),
            roots: Roots::default(),
            headers: HeaderMap::new(),
            connect_time: Duration::from_secs(10),
            message: 44 * 1024 * 1024,
            gzip: false,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("protocol", &self.protocol)
            .field("codec", &self.codec)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// A client of one server. Clones share its connections.
///
/// Methods are named with their service: `pinix.v2.HubService/ListClips`. Redirects are never followed.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: Address,
    options: ClientOptions,
    lines: Lines,
}

impl Client {
    /// A client of the server at `url`, as in `http://127.0.0.1:9000`. Nothing is opened yet.
    pub fn new(url: &str, options: ClientOptions) -> Result<Self, Failure> {
        let address = Address::parse(url)?;
        let lines = Lines::default();
        let inner = Arc::new(Inner {
            address,
            options,
            lines,
        });
        inner.base_headers(None)?;
        Ok(Self { inner })
    }

    /// One request, one answer.
    pub async fn unary<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        timeout: Option<Duration>,
    ) -> Result<Resp, Failure> {
        let options = CallOptions {
            timeout,
            ..CallOptions::default()
        };
        self.call(method, request, &options).await.answer
    }

    /// One request, one answer, with the headers and trailers of both.
    pub async fn call<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        options: &CallOptions,
    ) -> Reply<Resp> {
        self.inner.call(method, request, options).await
    }

    /// One request, any number of answers. Done when the server begins to answer.
    pub async fn server_stream<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        timeout: Option<Duration>,
    ) -> Result<Receiver<Resp>, Failure> {
        self.inner.server_stream(method, request, timeout).await
    }

    /// Any number of both, at a time. Done when the connection is open; the server may answer later.
    pub async fn bidi<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        timeout: Option<Duration>,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        let options = CallOptions {
            timeout,
            ..CallOptions::default()
        };
        self.inner.open(method, &options, Duplex::Required).await
    }

    /// Any number of messages both ways, with headers. Over HTTP/1.1 servers answer once the [`Sender`] is finished.
    pub async fn open<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        options: &CallOptions,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        self.inner.open(method, options, Duplex::IfPossible).await
    }
}
