//! Serves one connection: detects its HTTP version, limits its idle time and closes it.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::activity::{Activity, Pings};
use super::admission::AuthenticationMark;
use super::dispatch::{self, ConnectionInfo};
use super::in_flight::InFlightCalls;
use super::io::{DetectedHttp, Socket, Stream};
use super::options::{Limits, ServerOptions};
use crate::call::Peer;

/// Bytes of a stream that a client may send before its handler reads them.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// Bytes of all streams of a connection that a client may send before they are read. It is much larger than
/// [`STREAM_WINDOW`], so that a few unread streams do not block the others.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
const MAX_FRAME_SIZE: u32 = 64 * 1024;
/// Longest time without a write while the rest of the answers is sent on an idle connection that is being closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The service and the options, shared by all connections.
#[derive(Debug)]
pub(crate) struct ServerShared<S> {
    pub(crate) service: Arc<S>,
    pub(crate) options: ServerOptions,
}

/// Serves a connection to its end. Its errors are not reported: they concern only the client, which has seen them.
pub(crate) async fn serve<S: Service>(
    shared: Arc<ServerShared<S>>,
    stream: TcpStream,
    address: SocketAddr,
    authentication: AuthenticationMark,
    stop: CancellationToken,
    in_flight: Arc<InFlightCalls>,
) {
    let limits = &shared.options.limits;
    let activity = Arc::new(Activity::new());
    let opening = tokio::time::timeout(limits.head_timeout, open(&shared, stream, &activity));
    let opened = tokio::select! {
        opened = opening => opened,
        () = stop.cancelled() => return,
    };
    let Ok(Some((socket, http))) = opened else {
        return;
    };
    let info = Arc::new(ConnectionInfo {
        peer: Peer {
            address,
            secure: shared.options.tls.is_some(),
            authentication,
        },
        cut: in_flight.cut(),
        in_flight,
    });
    let service = {
        let (shared, activity) = (Arc::clone(&shared), Arc::clone(&activity));
        service_fn(move |request| {
            let (shared, info) = (Arc::clone(&shared), Arc::clone(&info));
            let guard = activity.call();
            async move {
                let service = Arc::clone(&shared.service);
                let response = dispatch::answer(service, &shared.options, request, &info).await;
                Ok::<_, Infallible>(response.map(|body| body.guarded(guard)))
            }
        })
    };
    let io = TokioIo::new(socket);
    let driver = ConnectionDriver {
        limits,
        activity: &activity,
        stop,
    };
    match http {
        DetectedHttp::Http1 => {
            // Never set `pipeline_flush`: it removes the limit on the buffered bytes of an answer.
            let connection = http1::Builder::new()
                .max_buf_size(usize::try_from(limits.head).unwrap_or(usize::MAX).max(8192))
                .serve_connection(io, service);
            let close = http1::Connection::graceful_shutdown;
            driver.drive(connection, close, Pings::No).await;
        }
        DetectedHttp::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_header_list_size(limits.head)
                .max_concurrent_streams(limits.streams)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_frame_size(MAX_FRAME_SIZE)
                .keep_alive_interval(limits.ping_interval)
                .keep_alive_timeout(limits.ping_timeout)
                .serve_connection(io, service);
            let close = http2::Connection::graceful_shutdown;
            driver.drive(connection, close, Pings::Yes).await;
        }
    }
}

/// Performs the TLS handshake and detects the version of HTTP.
async fn open<S>(
    shared: &ServerShared<S>,
    stream: TcpStream,
    activity: &Arc<Activity>,
) -> Option<(Socket, DetectedHttp)> {
    // Without this, a small answer waits until the client acknowledges the one before.
    stream.set_nodelay(true).ok()?;
    let stream = match &shared.options.tls {
        None => Stream::Plain(stream),
        Some(tls) => Stream::Tls(Box::new(tls.acceptor.accept(stream).await.ok()?)),
    };
    let half_close_timeout = shared.options.limits.half_close_timeout;
    let mut socket = Socket::new(stream, Arc::clone(activity), half_close_timeout);
    let http = socket.detect_http().await.ok()?;
    Some((socket, http))
}

struct ConnectionDriver<'a> {
    limits: &'a Limits,
    activity: &'a Activity,
    stop: CancellationToken,
}

impl ConnectionDriver<'_> {
    /// Drives a connection until it ends, is idle for too long, or the server stops.
    async fn drive<C: Future>(self, connection: C, close: fn(Pin<&mut C>), pings: Pings) {
        let mut connection = std::pin::pin!(connection);
        let left = || self.activity.left(self.limits, pings);
        // Often enough to notice an incomplete head on a connection that was idle before.
        let check_after =
            |left: Duration| left.min(self.limits.head_timeout.min(self.limits.idle_timeout));
        let mut timer = std::pin::pin!(tokio::time::sleep(check_after(left())));
        let mut stopped = std::pin::pin!(self.stop.cancelled());
        let mut closing = false;
        loop {
            tokio::select! {
                biased;
                _ = &mut connection => return,
                () = &mut stopped, if !closing => {
                    closing = true;
                    close(connection.as_mut());
                }
                () = &mut timer => {
                    let left = left();
                    let now = tokio::time::Instant::now();
                    if !left.is_zero() {
                        timer.as_mut().reset(now + check_after(left));
                    } else if pings == Pings::Yes && !closing && !self.activity.is_unused() {
                        closing = true;
                        close(connection.as_mut());
                        timer.as_mut().reset(now + FLUSH_TIMEOUT);
                    } else {
                        let left = self.activity.time_left_since_write(FLUSH_TIMEOUT);
                        if pings == Pings::No || left.is_zero() || self.activity.is_unused() {
                            return;
                        }
                        timer.as_mut().reset(now + left);
                    }
                }
            }
        }
    }
}
