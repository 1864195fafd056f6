//! The async runtime of a run.

use std::io;

use tokio::runtime::Runtime;

/// A runtime on this thread alone: an agent waits far more than it works, and a delta that does
/// not change threads is a delta that arrives sooner.
pub(crate) fn build() -> io::Result<Runtime> {
    with_threads_beside(8)
}

/// The same for many sessions: files that one of them waits for must not keep the others from theirs.
pub(crate) fn for_several() -> io::Result<Runtime> {
    with_threads_beside(64)
}

fn with_threads_beside(count: usize) -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(count)
        .build()
}
