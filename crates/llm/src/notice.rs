//! What start-up could not use, in words for people.

use std::fmt;
use std::path::Path;

use crate::relaxed_json::Problem;

/// One line for stderr: something in the user's files was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The words.
    pub message: String,
}

impl Notice {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// A problem in a file, and what became of the rest.
    pub(crate) fn in_file(path: &Path, problem: &Problem, consequence: &str) -> Self {
        let Problem { position, what } = problem;
        Self::new(format!(
            "{}: {position}: {what}; {consequence}",
            path.display()
        ))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
