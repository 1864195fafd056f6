//! Work that may take long runs beside the async threads, and stops being waited for on cancel.

use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// Runs `work` on a thread for blocking work. `work` should look at a token of its own and end early.
pub(crate) async fn run<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::aborted()),
        done = tokio::task::spawn_blocking(work) => match done {
            Ok(result) => result,
            Err(_) => Err(ToolError("The tool failed inside. This is a bug in pinion.".into())),
        },
    }
}
