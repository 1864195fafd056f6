//! Runs file work away from the async threads, so that a hung disk or network mount stops neither the engine nor the end
//! of the process.
//!
//! Each piece of work gets a thread of its own. The runtime's own threads for blocking work are few and also resolve host
//! names, so work that never returns must not take them. A thread that is stuck in the kernel cannot be stopped: its
//! caller stops waiting when it is cancelled, and the thread ends with the process.

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// The most threads at a time, those included that are stuck. Further work waits until one is free or it is cancelled.
const MAX_THREADS: usize = 128;

static THREADS: Semaphore = Semaphore::const_new(MAX_THREADS);

/// Work that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockingError {
    /// It was cancelled. Its thread may still be busy.
    #[error("Operation aborted")]
    Cancelled,
    /// It panicked, or no thread could be started for it.
    #[error("The tool failed inside. This is a bug in pinion.")]
    Failed,
}

/// Runs `work` on a thread of its own and waits for its result until `cancel` fires.
///
/// `work` should check `cancel` before it changes anything: it continues when the caller no longer
/// waits.
pub async fn run_blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingError> {
    let done = async {
        let permit = THREADS.acquire().await.map_err(|_| BlockingError::Failed)?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("file-work".into());
        let started = thread.spawn(move || {
            let _permit = permit;
            // The caller may have stopped waiting.
            let _ = sender.send(work());
        });
        drop(started.map_err(|_| BlockingError::Failed)?);
        receiver.await.map_err(|_| BlockingError::Failed)
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(BlockingError::Cancelled),
        done = done => done,
    }
}

/// [`run_blocking`] for work of a tool.
pub(crate) async fn run<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    run_blocking(cancel, work).await?
}

impl From<BlockingError> for ToolError {
    fn from(reason: BlockingError) -> Self {
        Self(reason.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    /// Opening a FIFO for reading blocks in the kernel until it is opened for writing, like a file
    /// on a mount whose server does not answer.
    fn stuck(dir: &tempfile::TempDir) -> impl FnOnce() -> Result<(), ToolError> + use<> {
        let path = dir.path().join("fifo");
        if !path.exists() {
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        move || {
            drop(File::open(path));
            Ok(())
        }
    }

    #[tokio::test]
    async fn stuck_work_is_left_behind_when_it_is_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        let calls = (0..20).map(|_| run(&cancel, stuck(&dir)));
        let abort = async {
            // Time to get stuck; a call that has not begun is aborted too.
            tokio::time::sleep(Duration::from_millis(20)).await;
            // The async thread is free, and so is other work.
            let other = run_blocking(&CancellationToken::new(), || 5).await;
            cancel.cancel();
            other
        };
        let (results, other) = tokio::join!(futures_util::future::join_all(calls), abort);
        assert_eq!(other, Ok(5));
        for result in results {
            assert_eq!(result, Err(ToolError::aborted()));
        }
        // Releases the threads.
        drop(
            File::options()
                .read(true)
                .write(true)
                .open(dir.path().join("fifo")),
        );
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let work = || -> u8 { std::panic::resume_unwind(Box::new(())) };
        let result = run_blocking(&CancellationToken::new(), work).await;
        assert_eq!(result, Err(BlockingError::Failed));
    }
}
