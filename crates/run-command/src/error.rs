//! Errors before a run, or of its output.

/// The reason why a command cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The command line asks for something impossible.
    #[error("{0}")]
    Usage(String),
    /// A file, database, model or descriptor cannot be used.
    #[error("{0}")]
    Failed(String),
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
