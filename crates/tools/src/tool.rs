//! The trait of everything a model can call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::validate::ErrorWords;
use crate::{Declarations, Exposure, Follower, Loadout, Namespace, NestedCaller, TextChange};

/// Anything a model may call: a built-in, an extension's tool, a clip's command, an MCP tool.
pub trait Tool: Send + Sync {
    /// The tool's description for the model.
    fn spec(&self) -> &ToolSpec;

    /// The arguments in the form for [`Tool::call`], or an error text for the model.
    ///
    /// Tools that accept more than they publish override it.
    fn validate(&self, arguments: &Value) -> Result<Value, String> {
        crate::validate_with(self.spec(), arguments, self.error_words())
    }

    /// Returns the wording of errors in the arguments.
    fn error_words(&self) -> ErrorWords {
        ErrorWords::Ajv
    }

    /// Converts the model's arguments to the form for [`Tool::validate`], for tools that need it.
    fn prepare(&self, arguments: Value) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(std::future::ready(Ok(arguments)))
    }

    /// One line for the list of tools in the system prompt; `None` leaves the tool out of it.
    fn snippet(&self) -> Option<&str> {
        let description = &self.spec().description;
        let sentence = description.split(". ").next().unwrap_or(description);
        Some(sentence.trim_end_matches('.'))
    }

    /// The requirement that providers sample the arguments by the schema only, in the form of pi's tools.
    fn constrained_sampling(&self) -> Option<Value> {
        None
    }

    /// Advice for the system prompt while the tool is active.
    fn guidelines(&self) -> &[String] {
        &[]
    }

    /// The execution of the other calls of the same answer.
    fn execution(&self) -> Execution {
        Execution::Parallel
    }

    /// Reports whether the tool is active as soon as it is added to a session. A tool that is not can be activated later.
    fn starts_active(&self) -> bool {
        self.exposure().is_declared()
    }

    /// The origin of the tool, for clients; `None` for a built-in one.
    fn source(&self) -> Option<Value> {
        None
    }

    /// The way in which the tool is reachable.
    fn exposure(&self) -> Exposure {
        Exposure::Direct
    }

    /// The group of the tool; `None` if it belongs to none.
    fn namespace(&self) -> Option<&Namespace> {
        None
    }

    /// JSON Schema of [`ToolOutput::structured_content`]. Scripts receive the structured result of a tool that has one, and the
    /// text of any other.
    fn output_schema(&self) -> Option<&Value> {
        None
    }

    /// Changes the declarations that the model sees. The engine calls it whenever the tools change and this one is
    /// active.
    fn arrange(&self, _loadout: &Loadout<'_>) -> Declarations {
        Declarations::default()
    }

    /// Returns the change that a call with these arguments would make to a text file, without making it; `None` if it is
    /// not known. `arguments` are those that the model wrote.
    fn preview<'a>(
        &'a self,
        _arguments: &'a Value,
        _cwd: &'a Path,
    ) -> BoxFuture<'a, Option<TextChange>> {
        Box::pin(std::future::ready(None))
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

/// The execution of the calls of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// Calls may run in parallel.
    #[default]
    Parallel,
    /// One such tool makes all calls run one after another.
    Sequential,
}

/// The circumstances of a call.
#[derive(Clone)]
pub struct ToolContext {
    /// The provider's id of the call.
    pub call_id: Arc<str>,
    /// Relative paths and commands start here.
    pub cwd: Arc<PathBuf>,
    /// Asks the call to end.
    pub cancel: CancellationToken,
    /// Variables for the commands of the call, besides those of the settings.
    pub env: Vec<(String, String)>,
    /// Receives everything produced so far; each update replaces the one before.
    pub updates: UpdateSink,
    /// Calls other tools on behalf of this call; `None` where no session is.
    pub nested: Option<NestedCaller>,
    /// Receives the output of a command as it is printed.
    pub follower: Option<Arc<dyn Follower>>,
    /// The result of a call that changes a text file holds the change.
    pub records_change: bool,
}

/// Receives the progress of a call. It must not block.
pub type UpdateSink = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Structured data for people and programs.
    pub details: Option<Value>,
    /// Requests the end of the run; effective when every call of the answer requests it.
    pub terminate: bool,
    /// The result as data, for scripts and clients; the conversation does not contain it.
    pub structured_content: Option<Value>,
    /// The call failed, and this is its whole result; see [`ToolError`] for failures that are only a text.
    pub is_error: bool,
    /// The change of a text file, if [`ToolContext::records_change`] requests it. The conversation does not contain it.
    pub change: Option<Arc<TextChange>>,
}

/// The failure of a call, in words for the model.
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
    /// Fails with the text all file tools use when the call was cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            Err(ToolError::aborted())
        } else {
            Ok(())
        }
    }
}

impl ToolError {
    /// The error of a call that was cancelled.
    pub(crate) fn aborted() -> Self {
        Self("Operation aborted".into())
    }
}
