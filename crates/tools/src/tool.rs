//! The one shape of everything callable.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Anything a model may call: a built-in, an extension's tool, a clip's command, an MCP tool.
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// The arguments as [`Tool::call`] takes them, or the text that tells the model what is wrong.
    ///
    /// Tools that accept more than they publish override it.
    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        crate::validate(self.spec(), arguments)
    }

    /// Makes the model's arguments what [`Tool::validate`] expects, where a tool has its own way.
    fn prepare(&self, arguments: Value) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(std::future::ready(Ok(arguments)))
    }

    /// One line for the list of tools in the system prompt; `None` leaves the tool out of it.
    fn snippet(&self) -> Option<&str> {
        let description = &self.spec().description;
        let sentence = description.split(". ").next().unwrap_or(description);
        Some(sentence.trim_end_matches('.'))
    }

    /// Advice for the system prompt while the tool is active.
    fn guidelines(&self) -> &[String] {
        &[]
    }

    /// Whether the calls of one answer may run beside this one.
    fn execution(&self) -> Execution {
        Execution::Parallel
    }

    /// Where the tool comes from, as a client is told; `None` for one of our own.
    fn source(&self) -> Option<Value> {
        None
    }

    /// Runs one call. `arguments` have been coerced and validated against the spec.
    ///
    /// Dropping the future must leave nothing running; `context.cancel` asks for an orderly end.
    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Whether the calls of one answer run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// They may.
    #[default]
    Parallel,
    /// One such tool makes all of them run one after another.
    Sequential,
}

/// What a call runs in.
#[derive(Clone)]
pub struct ToolContext {
    /// The provider's id of the call.
    pub call_id: Arc<str>,
    /// Relative paths and commands start here.
    pub cwd: Arc<PathBuf>,
    /// Asks the call to end.
    pub cancel: CancellationToken,
    /// Takes everything produced so far; each update replaces the one before.
    pub updates: UpdateSink,
}

/// Takes the progress of a call. It must not block.
pub type UpdateSink = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// What a call returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Structured data for people and programs.
    pub details: Option<Value>,
    /// Asks for the run to end here; heeded when every call of the answer asks.
    pub terminate: bool,
}

/// Why a call failed, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}

impl ToolOutput {
    /// One text block and no details.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::text(text)],
            ..Self::default()
        }
    }
}

impl ToolContext {
    /// Fails with the text all file tools use when the call was asked to end.
    pub(crate) fn check_cancelled(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            Err(ToolError::aborted())
        } else {
            Ok(())
        }
    }
}

impl ToolError {
    /// The call was asked to end.
    pub(crate) fn aborted() -> Self {
        Self("Operation aborted".into())
    }
}
