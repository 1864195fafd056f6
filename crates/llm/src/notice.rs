//! Problems at start-up, in words for people.

use std::fmt;
use std::path::Path;

use crate::relaxed_json::Problem;

/// One line for stderr: a part of the user's files that pinion ignores, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub message: String,
}

impl Notice {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// A problem in a file, and its consequence.
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
