//! Connections: opened when needed, kept, and forgotten when they are lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pinion_status::{Code, Failure};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::{ClientOptions, HttpVersion, secure};
use crate::body::Body;

const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
const FRAME: u32 = 64 * 1024;
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIME: Duration = Duration::from_secs(20);
/// Connections of HTTP/1.1 that are kept.
const KEPT: usize = 16;

/// The connections of a client.
#[derive(Debug, Default)]
pub(super) struct Lines {
    shared: Mutex<Option<http2::SendRequest<Body>>>,
    single: Mutex<Vec<http1::SendRequest<Body>>>,
    /// Held while the shared one is opened, so that many callers do not open many.
    opening: tokio::sync::Mutex<()>,
    tls: OnceCell<Arc<ClientConfig>>,
}

/// A connection that takes a request.
pub(super) enum Line {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

impl Lines {
    /// A connection: one that is open, unless a `fresh` one is asked for.
    pub(super) async fn get(
        &self,
        address: &Address,
        options: &ClientOptions,
        fresh: bool,
    ) -> Result<Line, Failure> {
        if !fresh && let Some(line) = self.kept() {
            return Ok(line);
        }
        let _opening = match options.http {
            HttpVersion::One => None,
            HttpVersion::Two => Some(self.opening.lock().await),
        };
        // Somebody else may have opened it meanwhile.
        if !fresh && let Some(line) = self.kept() {
            return Ok(line);
        }
        let opening = self.open(address, options);
        let opened = tokio::time::timeout(options.connect_time, opening).await;
        let line = opened.unwrap_or_else(|_| {
            let seconds = options.connect_time.as_secs();
            Err(address.unreachable(&format_args!("no answer within {seconds} s")))
        })?;
        if let Line::Two(line) = &line {
            *lock(&self.shared) = Some(line.clone());
        }
        Ok(line)
    }

    /// Keeps a connection of HTTP/1.1 for later calls; it is used again once it is free.
    pub(super) fn keep(&self, line: Line) {
        if let Line::One(line) = line {
            let mut single = lock(&self.single);
            single.retain(|line| !line.is_closed());
            if single.len() < KEPT {
                single.push(line);
            }
        }
    }

    fn kept(&self) -> Option<Line> {
        let mut shared = lock(&self.shared);
        if shared.as_ref().is_some_and(|line| line.is_closed()) {
            *shared = None;
        }
        if let Some(line) = &*shared {
            return Some(Line::Two(line.clone()));
        }
        let mut single = lock(&self.single);
        let free = single.iter().position(|line| line.is_ready())?;
        Some(Line::One(single.swap_remove(free)))
    }

    async fn open(&self, address: &Address, options: &ClientOptions) -> Result<Line, Failure> {
        let unreachable = |error: &dyn std::fmt::Display| address.unreachable(error);
        let host = address.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, address.port)).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(&error))?;
        if !address.secure {
            return shake(stream, options.http, address).await;
        }
        let connector = self.connector(options).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| unreachable(&error))?;
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        let http = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => HttpVersion::Two,
            _ => HttpVersion::One,
        };
        shake(stream, http, address).await
    }

    async fn connector(&self, options: &ClientOptions) -> Result<TlsConnector, Failure> {
        let set_up = || async {
            let (roots, http) = (options.roots.clone(), options.http);
            let built = tokio::task::spawn_blocking(move || secure::set_up(&roots, http)).await;
            built.unwrap_or_else(|error| Err(Failure::new(Code::Internal, error.to_string())))
        };
        let config = self.tls.get_or_try_init(set_up).await?;
        Ok(TlsConnector::from(Arc::clone(config)))
    }
}

/// Begins to speak HTTP on a socket, with a task that does the speaking for as long as anybody wants it.
async fn shake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    http: HttpVersion,
    address: &Address,
) -> Result<Line, Failure> {
    let unreachable = |error: hyper::Error| address.unreachable(&error);
    let io = TokioIo::new(stream);
    match http {
        HttpVersion::One => {
            let (line, speaking) = http1::handshake(io).await.map_err(unreachable)?;
            tokio::spawn(speaking);
            Ok(Line::One(line))
        }
        HttpVersion::Two => {
            let (line, speaking) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_frame_size(FRAME)
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_TIME)
                .handshake(io)
                .await
                .map_err(unreachable)?;
            tokio::spawn(speaking);
            Ok(Line::Two(line))
        }
    }
}

impl Line {
    /// Whether calls may send and receive at a time.
    pub(super) fn is_duplex(&self) -> bool {
        matches!(self, Self::Two(_))
    }

    /// Sends a request, at once; what is given back waits for the answer. A request that was not sent comes back.
    pub(super) fn send(&mut self, request: Request<Body>) -> Answering {
        match self {
            Self::One(line) => Box::pin(line.try_send_request(request)),
            Self::Two(line) => Box::pin(line.try_send_request(request)),
        }
    }
}

/// An answer that is awaited.
pub(super) type Answering = std::pin::Pin<
    Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<Body>>>> + Send>,
>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
