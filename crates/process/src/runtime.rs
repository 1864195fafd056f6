//! The async runtimes of the program.

use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::descriptors;

/// Builds a runtime on this thread alone: an agent waits far more than it works, and a delta that does not change
/// threads arrives sooner.
pub fn build() -> io::Result<Runtime> {
    with_threads_beside(8)
}

/// Builds a runtime for many sessions: more blocking threads, so that slow files of one session do not delay the
/// others.
pub fn for_several() -> io::Result<Runtime> {
    with_threads_beside(64)
}

/// Builds a runtime with a thread per core, for hubs.
pub fn on_every_core() -> io::Result<Runtime> {
    built(&mut Builder::new_multi_thread())
}

fn with_threads_beside(count: usize) -> io::Result<Runtime> {
    built(Builder::new_current_thread().max_blocking_threads(count))
}

fn built(builder: &mut Builder) -> io::Result<Runtime> {
    // Without descriptors the runtime would panic.
    descriptors::require_some()?;
    builder.enable_all().build().map_err(|error| {
        let message = format!("the threads of the program cannot be started: {error}");
        io::Error::new(error.kind(), message)
    })
}
