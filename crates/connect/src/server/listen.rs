//! The server: accepts connections until it is stopped.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::admission::{Admission, AuthenticationMark, ConnectionSlot};
use super::connection::{self, ServerShared};
use super::in_flight::InFlightCalls;
use super::options::ServerOptions;

/// Delay before the next attempt when there are no file descriptors or no memory for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Time for callers to read the failure of their calls before their connections are closed.
const FAILURE_FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A server of one service. Clones share one server.
#[derive(Debug)]
pub struct Server<S> {
    shared: Arc<ServerShared<S>>,
    admission: Arc<Admission>,
}

impl<S> Clone for Server<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            admission: Arc::clone(&self.admission),
        }
    }
}

impl<S: Service> Server<S> {
    /// Creates a server. It does not listen yet.
    pub fn new(service: Arc<S>, options: ServerOptions) -> Self {
        let admission = Admission::new(options.limits.connections);
        let shared = Arc::new(ServerShared { service, options });
        Self { shared, admission }
    }

    /// Serves connections until `stop` completes. Calls still running then have `grace` to end before they fail.
    /// Dropping the future drops them at once. May be called for several listeners.
    pub async fn run(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) {
        let cut = async { tokio::time::sleep(grace).await };
        self.run_until(listener, stop, cut).await;
    }

    /// As [`Server::run`], but calls still running when `stop` completes may run until `cut` completes, which is not
    /// polled before. Calls that run longer fail with `unavailable`, and their callers have half a second to read that
    /// before their connections are closed.
    pub async fn run_until(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        cut: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let stopping = CancellationToken::new();
        let mut connections = JoinSet::new();
        let in_flight = Arc::new(InFlightCalls::default());
        let mut watch = JoinSet::new();
        watch.spawn({
            let in_flight = Arc::clone(&in_flight);
            async move { in_flight.poll_stalled().await }
        });
        // An accepted connection that waits for a slot.
        let mut next = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Some(slot) = self.admission.acquire_slot(), if next.is_some() => {
                    let Some((stream, address)) = next.take() else { continue };
                    let shared = Arc::clone(&self.shared);
                    let (stopping, in_flight) = (stopping.clone(), Arc::clone(&in_flight));
                    connections.spawn(serve_in_slot(slot, move |authentication| {
                        connection::serve(shared, stream, address, authentication, stopping, in_flight)
                    }));
                }
                accepted = accept(&listener), if next.is_none() => next = accepted,
            }
        }
        drop(listener);
        stopping.cancel();
        tokio::select! {
            biased;
            () = ended(&mut connections) => return,
            () = cut => in_flight.end_all(),
        }
        let flushed = tokio::time::timeout(FAILURE_FLUSH_TIMEOUT, ended(&mut connections)).await;
        if flushed.is_err() {
            connections.shutdown().await;
        }
    }
}

/// Accepts the next connection. A failed one does not end the server.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            if !is_connection_error(&error) {
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
            None
        }
    }
}

/// Serves a connection until it ends or must close to admit another.
async fn serve_in_slot<F: Future<Output = ()>>(
    slot: ConnectionSlot,
    serve: impl FnOnce(AuthenticationMark) -> F,
) {
    tokio::select! {
        () = serve(slot.authentication()) => {}
        () = slot.evicted() => {}
    }
}

async fn ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Reports whether the error belongs to one connection, not to the machine.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
