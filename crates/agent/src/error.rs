//! The errors of commands.

use pinion_session::SessionError;

/// Limit on the messages in each queue.
pub(crate) const QUEUE_LIMIT: usize = 1000;

/// The reason why a command failed. Clients match some of these texts, so they do not change.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum EngineError {
    #[error(
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    )]
    Busy,
    #[error(
        "The queue is full: {QUEUE_LIMIT} messages wait already. Let the agent work, or send clear_queue."
    )]
    QueueFull,
    #[error(
        "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
    )]
    Compacting,
    #[error(
        "No model selected.\n\nName one with --model or set_model, or set the API key of a provider.\n\nRun `pinion --list-models` to see what is available."
    )]
    NoModel,
    #[error("{0}")]
    Credentials(String),
    #[error("Model not found: {provider}/{id}")]
    ModelNotFound { provider: String, id: String },
    #[error("No API key for {provider}/{id}")]
    NoKeyForModel { provider: String, id: String },
    #[error("Session name cannot be empty")]
    EmptyName,
    #[error("{0}")]
    Compaction(String),
    #[error("{0}")]
    Bash(String),
    #[error("{0}")]
    Export(String),
    #[error("The session was not changed: {0}")]
    NotReplaced(String),
    #[error("The session could not be read: {0}")]
    NotRead(String),
    #[error("The session has as many child sessions as it may have. Dispose of one first.")]
    TooManyChildren,
    #[error("The prompt was aborted before it began.")]
    AbortedEarly,
    #[error("Entry not found: {0}")]
    EntryNotFound(String),
    #[error(
        "Extension command \"/{0}\" cannot be queued. Use prompt() or execute the command when not streaming."
    )]
    CommandQueued(String),
    /// A front that replaces the session does not support the command.
    #[error("{0}")]
    Unsupported(String),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("The session ended before it could answer.")]
    Dropped,
}

impl EngineError {
    /// Returns a stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::QueueFull => "queue_full",
            Self::Compacting => "compacting",
            Self::NoModel => "no_model",
            Self::Credentials(_) => "no_credentials",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::NoKeyForModel { .. } => "no_key",
            Self::EmptyName => "empty_name",
            Self::Compaction(_) => "compaction_failed",
            Self::Bash(_) => "bash_failed",
            Self::Export(_) => "export_failed",
            Self::NotReplaced(_) => "session_not_changed",
            Self::NotRead(_) => "session_not_read",
            Self::TooManyChildren => "too_many_children",
            Self::AbortedEarly => "aborted",
            Self::EntryNotFound(_) => "entry_not_found",
            Self::CommandQueued(_) => "command_queued",
            Self::Unsupported(_) => "unsupported",
            Self::Session(error) => error.code(),
            Self::Dropped => "dropped",
        }
    }
}
