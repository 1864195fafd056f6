//! Children that run as tasks of this process.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Feed;

/// A child that runs as a task of this process.
#[derive(Debug)]
pub struct TaskJob {
    /// The child's name.
    pub child: String,
    pub model: Option<String>,
    pub prompt: String,
    /// Further arguments, as on a command line.
    pub args: Vec<String>,
    /// Files that accompany the prompt.
    pub files: Vec<PathBuf>,
    /// The working directory of the session.
    pub directory: PathBuf,
    /// Receives the lines that the session prints.
    pub feed: Arc<Feed>,
    /// Cancelled to end the session.
    pub stop: CancellationToken,
}

impl TaskJob {
    /// Returns the model for a command line. The path of a model that is a file is resolved against the child's
    /// directory, as a separate process would.
    pub fn model_argument(&self) -> Option<String> {
        let model = self.model.as_ref()?;
        for kind in ["offline/scenario:", "cassette:"] {
            if let Some(file) = model.strip_prefix(kind) {
                return Some(format!("{kind}{}", self.directory.join(file).display()));
            }
        }
        Some(model.clone())
    }
}

/// Returns the lines that report why a child has no session.
pub fn refusal_lines(reason: &str) -> Vec<u8> {
    let line = json!({"type": "message_end", "message": {
        "role": "assistant", "content": [], "stopReason": "error", "errorMessage": reason,
    }});
    format!("{line}\n{{\"type\":\"agent_settled\",\"aborted\":true}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_a_file_is_in_the_directory_of_the_child() {
        let job = |model: &str| TaskJob {
            child: "a".into(),
            model: Some(model.into()),
            prompt: String::new(),
            args: Vec::new(),
            files: Vec::new(),
            directory: "/work".into(),
            feed: Arc::default(),
            stop: CancellationToken::new(),
        };
        let file = job("cassette:a.json").model_argument();
        assert_eq!(file.as_deref(), Some("cassette:/work/a.json"));
        let named = job("offline/demo").model_argument();
        assert_eq!(named.as_deref(), Some("offline/demo"));
    }
}
