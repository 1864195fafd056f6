//! Signals that end the program in order.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears SIGTERM and SIGHUP from the moment it is made, also those that come between two waits.
#[derive(Debug)]
pub(crate) struct Ending {
    terminate: Signal,
    hang_up: Signal,
}

impl Ending {
    /// Begins to listen.
    pub fn listen(runtime: &Runtime) -> io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal; gives the exit code to use.
    pub async fn signalled(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
        }
    }
}
