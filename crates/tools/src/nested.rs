//! Calls that a tool makes while it runs, such as those of a script.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{ToolError, ToolOutput, UpdateSink};

/// Requests that wait for the engine; a tool that makes more waits.
pub const NESTED_QUEUE_LIMIT: usize = 64;

/// Calls other tools on behalf of a running call. The engine makes each call with the checks of a call of the model.
#[derive(Debug, Clone)]
pub struct NestedCaller {
    requests: mpsc::Sender<NestedRequest>,
}

/// A request for a call.
pub struct NestedRequest {
    /// The tool's name.
    pub name: String,
    /// The arguments, which the engine validates.
    pub arguments: Value,
    /// Ends this call; the end of the calling tool ends it too.
    pub cancel: CancellationToken,
    /// Receives the progress of the call.
    pub updates: Option<UpdateSink>,
    /// Receives the id of the call when it begins.
    pub started: oneshot::Sender<Arc<str>>,
    /// Receives the outcome.
    pub reply: oneshot::Sender<NestedOutcome>,
}

/// The outcome of a call.
#[derive(Debug, Clone)]
pub struct NestedOutcome {
    /// The id of the call.
    pub call_id: Arc<str>,
    /// The result, with keys masked.
    pub output: Arc<ToolOutput>,
    /// The call failed, or was not made.
    pub is_error: bool,
    /// The running time; `None` if the tool was not run.
    pub duration: Option<Duration>,
}

impl NestedCaller {
    /// Creates a caller and the receiver of its requests.
    pub fn new() -> (Self, mpsc::Receiver<NestedRequest>) {
        let (requests, receiver) = mpsc::channel(NESTED_QUEUE_LIMIT);
        (Self { requests }, receiver)
    }

    /// Makes a call and waits for its outcome. Dropping the future ends the call. Fails only if the calling tool has
    /// ended.
    pub async fn call(
        &self,
        name: String,
        arguments: Value,
        updates: Option<UpdateSink>,
        started: oneshot::Sender<Arc<str>>,
    ) -> Result<NestedOutcome, ToolError> {
        let cancel = CancellationToken::new();
        let _dropped = cancel.clone().drop_guard();
        let (reply, outcome) = oneshot::channel();
        let request = NestedRequest {
            name,
            arguments,
            cancel,
            updates,
            started,
            reply,
        };
        let sent = self.requests.send(request).await;
        sent.map_err(|_| ToolError::aborted())?;
        outcome.await.map_err(|_| ToolError::aborted())
    }
}

impl std::fmt::Debug for NestedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedRequest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
