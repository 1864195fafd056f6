//! The signals of a hub's process: SIGTERM and SIGINT stop it, SIGHUP reloads its tokens.

use std::io;

use pinion_access::TokenStore;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the process received and has not handled.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Begins to receive signals. Each value receives those that arrive after its creation.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT. SIGHUP reloads the tokens meanwhile.
    pub async fn stop(&mut self, tokens: &TokenStore) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    let tokens = tokens.clone();
                    let _ = tokio::task::spawn_blocking(move || tokens.refresh()).await;
                }
            }
        }
    }

    /// Waits for SIGTERM or SIGINT.
    pub async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
