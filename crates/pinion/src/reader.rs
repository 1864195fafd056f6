//! Whoever reads our output: whether they are still there.
#![allow(unsafe_code)]

use std::fs::File;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits until nobody can read `output` any more, also while nothing is written.
///
/// Never ends for files and the like, which have no reader. To be awaited inside the runtime.
pub(crate) async fn gone(output: File) {
    // A pipe without a reader is an error, a socket without one is closed; both are told unasked.
    let interest = Interest::ERROR | Interest::PRIORITY;
    // SAFETY: a `File` is one open descriptor and stays the same one as long as it lives.
    let Ok(output) = (unsafe { AsyncFd::register_with_interest(output, interest) }) else {
        return std::future::pending().await;
    };
    if output.ready(interest).await.is_err() {
        std::future::pending().await
    }
}
