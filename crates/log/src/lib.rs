//! The diagnostic log: turns the spans and events of `tracing` into lines of text or JSON.
//!
//! Crates that log depend on `tracing` alone. As long as [`start`] is not called there is no subscriber, and an event
//! or a span takes one atomic load. After [`start`] the thread that logs formats nothing and writes nothing: it puts a
//! record into a bounded queue, which a thread of its own writes. A record that finds the queue full is dropped and
//! counted.
//!
//! Secrets do not reach the log: no crate logs prompts, arguments, headers or bodies, and the writer masks every known
//! key in all values. Standard output is never written.

mod filter;
mod format;
mod layer;
mod mask;
mod queue;
mod record;
mod setup;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

pub use self::filter::{Filter, FilterError, LEVELS, TARGETS};
pub use self::format::{Format, UnknownFormat};
use self::layer::LogLayer;
use self::queue::{Queue, Sink};
pub use self::setup::{LogFlags, SetupError};

/// Time to write the rest of the queue at the end of the program. A reader of standard error that does not read must
/// not delay the exit longer.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// The queue of the log of this process.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Opens a log file for appending and creates it, readable for its owner only, if it does not exist.
pub fn open_file(path: &Path) -> io::Result<File> {
    pinion_files::open_with(
        OpenOptions::new().append(true).create(true).mode(0o600),
        path,
    )
}

/// Starts the log of this process: to `file`, or to standard error. Returns `false` if it was started before.
pub fn start(filter: &Filter, format: Format, file: Option<File>) -> bool {
    let queue = Queue::new(format, file.map_or(Sink::Stderr, Sink::File));
    let subscriber = Registry::default()
        .with(LogLayer::new(Arc::clone(&queue)).with_filter(filter.targets()))
        .with(pinion_telemetry::layer());
    if QUEUE.set(queue).is_err() {
        return false;
    }
    tracing::subscriber::set_global_default(subscriber).is_ok()
}

/// Reports whether the log was started.
pub fn is_started() -> bool {
    QUEUE.get().is_some()
}

/// Waits until everything that was logged is written, for at most one second.
pub fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.finish(FINISH_TIMEOUT);
    }
}
