//! A client's connections: opened when needed, reused, and dropped when lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pinion_status::{Code, Failure};
use pinion_sync::lock;
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
const MAX_FRAME_SIZE: u32 = 64 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Idle HTTP/1.1 connections that a client holds for reuse.
const MAX_IDLE_CONNECTIONS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct ConnectionPool {
    shared: Mutex<Option<http2::SendRequest<Body>>>,
    single: Mutex<Vec<http1::SendRequest<Body>>>,
    /// Held while the shared connection is being opened, so that concurrent callers open only one.
    opening: tokio::sync::Mutex<()>,
    tls: OnceCell<Arc<ClientConfig>>,
}

pub(super) enum Connection {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

impl ConnectionPool {
    /// Returns an open connection, or a new one if `fresh`.
    pub(super) async fn get(
        &self,
        address: &Address,
        options: &ClientOptions,
        fresh: bool,
    ) -> Result<Connection, Failure> {
        if !fresh && let Some(connection) = self.idle() {
            return Ok(connection);
        }
        let _opening = match options.http {
            HttpVersion::One => None,
            HttpVersion::Two => Some(self.opening.lock().await),
        };
        // Another caller may have opened it in the meantime.
        if !fresh && let Some(connection) = self.idle() {
            return Ok(connection);
        }
        let opening = self.open(address, options);
        let opened = tokio::time::timeout(options.connect_timeout, opening).await;
        let connection = opened.unwrap_or_else(|_| {
            let seconds = options.connect_timeout.as_secs();
            Err(address.unreachable(&format_args!("no answer within {seconds} s")))
        })?;
        if let Connection::Two(connection) = &connection {
            *lock(&self.shared) = Some(connection.clone());
        }
        Ok(connection)
    }

    /// Stores an HTTP/1.1 connection for later calls. It is reused once it is free.
    pub(super) fn put_back(&self, connection: Connection) {
        if let Connection::One(connection) = connection {
            let mut single = lock(&self.single);
            single.retain(|connection| !connection.is_closed());
            if single.len() < MAX_IDLE_CONNECTIONS {
                single.push(connection);
            }
        }
    }

    fn idle(&self) -> Option<Connection> {
        let mut shared = lock(&self.shared);
        if shared
            .as_ref()
            .is_some_and(|connection| connection.is_closed())
        {
            *shared = None;
        }
        if let Some(connection) = &*shared {
            return Some(Connection::Two(connection.clone()));
        }
        let mut single = lock(&self.single);
        let free = single.iter().position(|connection| connection.is_ready())?;
        Some(Connection::One(single.swap_remove(free)))
    }

    async fn open(
        &self,
        address: &Address,
        options: &ClientOptions,
    ) -> Result<Connection, Failure> {
        let unreachable = |error: &dyn std::fmt::Display| address.unreachable(error);
        let host = address.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, address.port)).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(&error))?;
        if !address.secure {
            return handshake(stream, options.http, address).await;
        }
        let connector = self.connector(options).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| unreachable(&error))?;
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        let http = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => HttpVersion::Two,
            _ => HttpVersion::One,
        };
        handshake(stream, http, address).await
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

/// Starts HTTP on a socket, and a task that drives the connection while it is in use.
async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    http: HttpVersion,
    address: &Address,
) -> Result<Connection, Failure> {
    let unreachable = |error: hyper::Error| address.unreachable(&error);
    let io = TokioIo::new(stream);
    match http {
        HttpVersion::One => {
            let (connection, driver) = http1::handshake(io).await.map_err(unreachable)?;
            tokio::spawn(driver);
            Ok(Connection::One(connection))
        }
        HttpVersion::Two => {
            let (connection, driver) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_frame_size(MAX_FRAME_SIZE)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .handshake(io)
                .await
                .map_err(unreachable)?;
            tokio::spawn(driver);
            Ok(Connection::Two(connection))
        }
    }
}

impl Connection {
    /// Reports whether a call may send and receive at the same time.
    pub(super) fn is_duplex(&self) -> bool {
        matches!(self, Self::Two(_))
    }

    /// Sends a request at once and returns a future of the answer. If the request was not sent, the error contains it.
    pub(super) fn send(&mut self, request: Request<Body>) -> PendingResponse {
        match self {
            Self::One(connection) => Box::pin(connection.try_send_request(request)),
            Self::Two(connection) => Box::pin(connection.try_send_request(request)),
        }
    }
}

pub(super) type PendingResponse = std::pin::Pin<
    Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<Body>>>> + Send>,
>;
