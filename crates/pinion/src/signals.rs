//! Signals that end the program in order.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears SIGTERM and SIGHUP from the moment it is made, also those that come between two waits.
#[derive(Debug)]
pub(crate) struct Ending {
    terminate: Signal,
    hang_up: Signal,
    /// SIGINT, where it does not end the program at once.
    interrupt: Option<Signal>,
    /// SIGQUIT, for those who have a terminal to give back.
    quit: Option<Signal>,
}

impl Ending {
    /// Begins to listen.
    pub fn listen(runtime: &Runtime) -> io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: None,
            quit: None,
        })
    }

    /// Begins to listen, to SIGINT as well.
    pub fn listen_to_all(runtime: &Runtime) -> io::Result<Self> {
        let ending = Self::listen(runtime)?;
        let _inside = runtime.enter();
        Ok(Self {
            interrupt: Some(signal(SignalKind::interrupt())?),
            ..ending
        })
    }

    /// Listens to SIGQUIT as well.
    pub fn and_to_quit(self, runtime: &Runtime) -> io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            quit: Some(signal(SignalKind::quit())?),
            ..self
        })
    }

    /// Waits for a signal; gives the exit code to use.
    pub async fn signalled(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
            () = heard(&mut self.interrupt) => 130,
            () = heard(&mut self.quit) => 131,
        }
    }
}

/// Waits for a signal; for ever if it is not listened to.
async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
