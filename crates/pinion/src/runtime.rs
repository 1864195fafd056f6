//! The async runtime of a run.

use std::io;

/// A runtime on this thread alone: an agent waits far more than it works, and a delta that does
/// not change threads is a delta that arrives sooner.
pub(crate) fn build() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()
}
