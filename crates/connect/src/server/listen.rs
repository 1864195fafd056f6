//! The server itself: accepts connections until it is told to stop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::admission::{Admission, Place, Standing};
use super::connection::{self, Shared};
use super::going::Going;
use super::options::ServerOptions;

/// How long to wait when there are no descriptors or no memory for a connection.
const BREATH: Duration = Duration::from_millis(50);

/// How long callers may take to read why their calls end with the server.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A server of one service. Clones are the same server.
#[derive(Debug)]
pub struct Server<S> {
    shared: Arc<Shared<S>>,
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
    /// A server of this service; it listens to nothing yet.
    pub fn new(service: Arc<S>, options: ServerOptions) -> Self {
        let admission = Admission::new(options.limits.connections);
        let shared = Arc::new(Shared { service, options });
        Self { shared, admission }
    }

    /// Serves what comes in until `stop` is done; calls that go on then have `grace` to end before they fail.
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

    /// As [`Server::run`], but calls that go on when `stop` is done have until `cut` is, which is not polled before. Those that go
    /// on then fail with `unavailable`, and their callers have a moment to be told before their connections are closed.
    pub async fn run_until(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        cut: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let stopping = CancellationToken::new();
        let mut connections = JoinSet::new();
        let going = Arc::new(Going::default());
        let mut watch = JoinSet::new();
        watch.spawn({
            let going = Arc::clone(&going);
            async move { going.look_after().await }
        });
        // Accepted, and waiting for room.
        let mut next = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Some(place) = self.admission.place(), if next.is_some() => {
                    let Some((stream, address)) = next.take() else { continue };
                    let shared = Arc::clone(&self.shared);
                    let (stopping, going) = (stopping.clone(), Arc::clone(&going));
                    connections.spawn(hold(place, move |standing| {
                        connection::serve(shared, stream, address, standing, stopping, going)
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
            () = cut => going.end_all(),
        }
        let told = tokio::time::timeout(LAST_WORDS, ended(&mut connections)).await;
        if told.is_err() {
            connections.shutdown().await;
        }
    }
}

/// The next connection. No failure of one ends the server.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            if !concerns_one(&error) {
                tokio::time::sleep(BREATH).await;
            }
            None
        }
    }
}

/// Serves a connection until it ends or must make room for another.
async fn hold<F: Future<Output = ()>>(place: Place, serve: impl FnOnce(Standing) -> F) {
    tokio::select! {
        () = serve(place.standing()) => {}
        () = place.taken() => {}
    }
}

async fn ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Whether the failure is that of the connection, not of the machine.
fn concerns_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
