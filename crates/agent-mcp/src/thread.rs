//! The thread of all connections to MCP servers of this process. The engine's thread neither reads nor parses their
//! output.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

static THREAD: OnceLock<Option<Handle>> = OnceLock::new();

/// Returns the runtime of the thread, which starts on first use; `None` if it cannot be started.
fn handle() -> Option<&'static Handle> {
    let handle = THREAD.get_or_init(|| {
        let (sender, handle) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("mcp".into());
        let started = thread.spawn(move || {
            let Ok(runtime) = pinion_process::runtime::build() else {
                return;
            };
            if sender.send(runtime.handle().clone()).is_ok() {
                runtime.block_on(std::future::pending::<()>());
            }
        });
        started.ok().and_then(|_| handle.recv().ok())
    });
    handle.as_ref()
}

/// Runs `work` on the thread. `None` if the thread cannot be started.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<JoinHandle<T>> {
    handle().map(|handle| handle.spawn(work))
}

/// Runs `work` on the thread and waits for it; dropping the future ends the work. `None` if it was not completed.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    struct AbortOnDrop<T>(JoinHandle<T>);
    impl<T> Drop for AbortOnDrop<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    // The work belongs to the span of its caller, on whichever thread it runs.
    let mut task = AbortOnDrop(spawn(work.in_current_span())?);
    (&mut task.0).await.ok()
}
