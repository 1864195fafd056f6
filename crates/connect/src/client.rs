//! The client: calls to one server. It opens connections when needed and reopens lost ones.

mod address;
mod answer;
mod exchange;
mod pool;
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
use pool::ConnectionPool;

/// The settings of a client.
#[derive(Clone)]
pub struct ClientOptions {
    /// The bearer token sent with every call. It is never printed and never sent elsewhere.
    pub token: Option<String>,
    /// The protocol of the calls.
    pub protocol: Protocol,
    /// The encoding of messages.
    pub codec: Codec,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// The certificates to trust if the server uses TLS.
    pub roots: Roots,
    /// Headers to send with every call.
    pub headers: HeaderMap,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The longest message of an answer, in bytes.
    pub message: usize,
    /// Compress requests with gzip and ask for answers compressed with gzip.
    pub gzip: bool,
}

/// Settings of one call.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The time limit of the call; the server receives it too.
    pub timeout: Option<Duration>,
    /// Headers to send, beside those of [`ClientOptions::headers`].
    pub headers: HeaderMap,
    /// Make a unary Connect call with GET. For methods without side effects only.
    pub get: bool,
}

/// The answer of a unary call with its headers and trailers.
#[derive(Debug)]
pub struct Reply<Resp> {
    /// The headers of the answer; empty if the server did not answer.
    pub headers: HeaderMap,
    /// The trailers of the answer.
    pub trailers: HeaderMap,
    /// The message, or the failure of the call.
    pub answer: Result<Resp, Failure>,
}

/// The version of HTTP that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1, with one connection per running call. It supports neither gRPC nor calls that send and receive at the
    /// same time.
    One,
    /// HTTP/2, with one connection for all calls. If a server selects HTTP/1.1 in the TLS handshake, the client uses
    /// HTTP/1.1.
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
            connect_timeout: Duration::from_secs(10),
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
/// Methods are named with their service: `pinix.v2.HubService/ListClips`. The client never follows redirects.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: Address,
    options: ClientOptions,
    pool: ConnectionPool,
}

impl Client {
    /// Creates a client of the server at `url`, such as `http://127.0.0.1:9000`. It opens no connection yet.
    pub fn new(url: &str, options: ClientOptions) -> Result<Self, Failure> {
        let address = Address::parse(url)?;
        let pool = ConnectionPool::default();
        let inner = Arc::new(Inner {
            address,
            options,
            pool,
        });
        inner.base_headers(None)?;
        Ok(Self { inner })
    }

    /// Sends one request and waits for its answer.
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

    /// Sends one request and waits for its answer. Sends and returns headers, and returns trailers.
    pub async fn call<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        options: &CallOptions,
    ) -> Reply<Resp> {
        self.inner.call(method, request, options).await
    }

    /// Sends one request and returns a stream of answers. Returns when the server begins to answer.
    pub async fn server_stream<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
        timeout: Option<Duration>,
    ) -> Result<Receiver<Resp>, Failure> {
        self.inner.server_stream(method, request, timeout).await
    }

    /// Opens a stream that sends and receives at the same time. Returns when the connection is open; the server may
    /// answer later.
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

    /// Opens a stream that sends and receives, with headers. Over HTTP/1.1, servers answer once the [`Sender`] is
    /// finished.
    pub async fn open<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        options: &CallOptions,
    ) -> Result<(Sender<Req>, Receiver<Resp>), Failure> {
        self.inner.open(method, options, Duplex::IfPossible).await
    }
}
