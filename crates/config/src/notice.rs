//! A remark for the person who runs the program: a file, or a part of it, was left out, and why.
//!
//! Notices are data; fronts decide where they go (stderr, never the protocol stream).

use std::fmt;
use std::path::{Path, PathBuf};

/// Something was ignored or changed at start-up.
///
/// Printed as `path:line:column: message`, with the parts that are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A stable word for programs.
    pub code: &'static str,
    /// The file it is about.
    pub path: Option<PathBuf>,
    /// Line and column, both from 1.
    pub position: Option<(usize, usize)>,
    /// The problem and the remedy.
    pub message: String,
}

impl Notice {
    /// A notice about a file.
    pub fn about(path: &Path, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            path: Some(path.to_owned()),
            position: None,
            message: message.into(),
        }
    }

    /// A notice that is not about a file.
    pub(crate) fn general(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            path: None,
            position: None,
            message: message.into(),
        }
    }

    /// Adds a position in the file.
    pub(crate) fn at(mut self, line: usize, column: usize) -> Self {
        self.position = Some((line, column));
        self
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}", path.display())?;
            if let Some((line, column)) = self.position {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_prints_like_a_compiler_message() {
        let notice = Notice::about(Path::new("/a/settings.json"), "x", "key is missing").at(3, 7);
        assert_eq!(notice.to_string(), "/a/settings.json:3:7: key is missing");
    }
}
