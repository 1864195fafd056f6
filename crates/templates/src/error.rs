//! Errors of templates.

use thiserror::Error;

/// An error in a template: its position and its cause.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}:{line}:{column}: {message}")]
pub struct TemplateError {
    /// The file name, or another name that the caller gave the template.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The byte offset in the template's text.
    pub offset: usize,
    pub kind: TemplateErrorKind,
    /// The cause, and what was expected instead.
    pub message: String,
}

/// The kinds of template errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// The text is not a template.
    Syntax,
    /// A value does not fit an action.
    Evaluation,
    /// The template exceeds the limits of work, depth or output.
    Limit,
}

impl TemplateError {
    /// Returns a stable name of the kind, for programs.
    pub fn code(&self) -> &'static str {
        match self.kind {
            TemplateErrorKind::Syntax => "template_syntax",
            TemplateErrorKind::Evaluation => "template_evaluation",
            TemplateErrorKind::Limit => "template_limit",
        }
    }

    /// Returns the same error at another position, for a template that is part of a larger file.
    #[must_use]
    pub fn moved(mut self, line: usize, column: usize) -> Self {
        (self.line, self.column) = (line, column);
        self
    }
}

/// An error with a byte offset but no line yet.
#[derive(Debug)]
pub(crate) struct Fault {
    pub offset: usize,
    pub kind: TemplateErrorKind,
    pub message: String,
}

impl Fault {
    pub fn syntax(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            kind: TemplateErrorKind::Syntax,
            message: message.into(),
        }
    }

    pub fn evaluation(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            kind: TemplateErrorKind::Evaluation,
            message: message.into(),
        }
    }

    pub fn limit(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            kind: TemplateErrorKind::Limit,
            message: message.into(),
        }
    }

    pub fn located(self, name: &str, text: &str) -> TemplateError {
        let (line, column) = position(text, self.offset);
        TemplateError {
            name: name.to_owned(),
            line,
            column,
            offset: self.offset,
            kind: self.kind,
            message: self.message,
        }
    }
}

/// Returns the line and column of a byte, both from 1; columns count characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (line, before[start..].chars().count() + 1)
}
