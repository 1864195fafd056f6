//! Signals that end the program in order.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or SIGHUP; gives the exit code to use.
pub(crate) async fn terminated() -> io::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = terminate.recv() => 143,
        _ = hang_up.recv() => 129,
    })
}
