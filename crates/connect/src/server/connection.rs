//! One connection: which HTTP it speaks, how long it may do nothing, how it ends.

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
use super::admission::Standing;
use super::dispatch::{self, Line};
use super::going::Going;
use super::io::{Socket, Spoken, Stream};
use super::options::{Limits, ServerOptions};
use crate::call::Peer;

/// Bytes of a stream that may come before its handler asks for them.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// The same for all streams of a connection, so that a few that are not read do not stop the others.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
const FRAME: u32 = 64 * 1024;
/// How long nothing may be written of what is left of answers after a connection was idle for too long.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    pub(crate) service: Arc<S>,
    pub(crate) options: ServerOptions,
}

/// Serves a connection to its end. Errors of it concern nobody but the client, who has seen them.
pub(crate) async fn serve<S: Service>(
    shared: Arc<Shared<S>>,
    stream: TcpStream,
    address: SocketAddr,
    standing: Standing,
    stop: CancellationToken,
    going: Arc<Going>,
) {
    let limits = &shared.options.limits;
    let activity = Arc::new(Activity::new());
    let opening = tokio::time::timeout(limits.head_time, open(&shared, stream, &activity));
    let opened = tokio::select! {
        opened = opening => opened,
        () = stop.cancelled() => return,
    };
    let Ok(Some((socket, spoken))) = opened else {
        return;
    };
    let line = Arc::new(Line {
        peer: Peer {
            address,
            secure: shared.options.tls.is_some(),
            standing,
        },
        cut: going.cut(),
        going,
    });
    let service = {
        let (shared, activity) = (Arc::clone(&shared), Arc::clone(&activity));
        service_fn(move |request| {
            let (shared, line) = (Arc::clone(&shared), Arc::clone(&line));
            let guard = activity.call();
            async move {
                let service = Arc::clone(&shared.service);
                let response = dispatch::answer(service, &shared.options, request, &line).await;
                Ok::<_, Infallible>(response.map(|body| body.guarded(guard)))
            }
        })
    };
    let io = TokioIo::new(socket);
    let watch = Watch {
        limits,
        activity: &activity,
        stop,
    };
    match spoken {
        Spoken::Http1 => {
            // Never with `pipeline_flush`: it takes the bound off what is buffered of an answer.
            let connection = http1::Builder::new()
                .max_buf_size(usize::try_from(limits.head).unwrap_or(usize::MAX).max(8192))
                .serve_connection(io, service);
            let close = http1::Connection::graceful_shutdown;
            watch.over(connection, close, Pings::No).await;
        }
        Spoken::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_header_list_size(limits.head)
                .max_concurrent_streams(limits.streams)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_frame_size(FRAME)
                .keep_alive_interval(limits.ping_every)
                .keep_alive_timeout(limits.ping_time)
                .serve_connection(io, service);
            let close = http2::Connection::graceful_shutdown;
            watch.over(connection, close, Pings::Yes).await;
        }
    }
}

/// Shakes hands and listens for the version of HTTP.
async fn open<S>(
    shared: &Shared<S>,
    stream: TcpStream,
    activity: &Arc<Activity>,
) -> Option<(Socket, Spoken)> {
    // Without it small answers wait for the acknowledgement of those before.
    stream.set_nodelay(true).ok()?;
    let stream = match &shared.options.tls {
        None => Stream::Plain(stream),
        Some(tls) => Stream::Tls(Box::new(tls.acceptor.accept(stream).await.ok()?)),
    };
    let patience = shared.options.limits.farewell_time;
    let mut socket = Socket::new(stream, Arc::clone(activity), patience);
    let spoken = socket.listen().await.ok()?;
    Some((socket, spoken))
}

struct Watch<'a> {
    limits: &'a Limits,
    activity: &'a Activity,
    stop: CancellationToken,
}

impl Watch<'_> {
    /// Drives a connection until it ends, is idle for too long, or the server stops.
    async fn over<C: Future>(self, connection: C, close: fn(Pin<&mut C>), pings: Pings) {
        let mut connection = std::pin::pin!(connection);
        let left = || self.activity.left(self.limits, pings);
        // Often enough to notice a head that does not end on a connection that was idle before.
        let nap = |left: Duration| left.min(self.limits.head_time.min(self.limits.idle_time));
        let mut timer = std::pin::pin!(tokio::time::sleep(nap(left())));
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
                        timer.as_mut().reset(now + nap(left));
                    } else if pings == Pings::Yes && !closing && !self.activity.is_unused() {
                        closing = true;
                        close(connection.as_mut());
                        timer.as_mut().reset(now + LAST_WORDS);
                    } else {
                        let left = self.activity.left_of_silence(LAST_WORDS);
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
