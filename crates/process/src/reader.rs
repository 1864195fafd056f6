//! Detects that the reader of the program's output is gone.
#![allow(unsafe_code)]

use std::fs::File;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits until `output` has no reader any more, even while nothing is written.
///
/// Never returns for regular files, which have no reader. Must be awaited inside the runtime.
pub async fn gone(output: File) {
    // The system reports an error on a pipe without a reader and a hangup on a socket without one, even if neither is
    // requested.
    let interest = Interest::ERROR | Interest::PRIORITY;
    // SAFETY: a `File` is one open descriptor and stays the same one as long as it lives.
    let Ok(output) = (unsafe { AsyncFd::register_with_interest(output, interest) }) else {
        return std::future::pending().await;
    };
    if output.ready(interest).await.is_err() {
        std::future::pending().await
    }
}
