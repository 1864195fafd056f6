//! Why a template was not rendered.

use thiserror::Error;

/// A template that could not be read or rendered: where it stopped, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}:{line}:{column}: {message}")]
pub struct TemplateError {
    /// The file or other name the template was given.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// The byte in the template's text at which it stopped.
    pub offset: usize,
    /// What kind of failure it is.
    pub kind: TemplateErrorKind,
    /// What happened and what was expected instead.
    pub message: String,
}

/// The kinds of failure of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// The text is not a template.
    Syntax,
    /// A value was not what an action needs.
    Evaluation,
    /// The template asks for more work, depth or output than is given to one.
    Limit,
}

impl TemplateError {
    /// A stable name of the failure, for programs.
    pub fn code(&self) -> &'static str {
        match self.kind {
            TemplateErrorKind::Syntax => "template_syntax",
            TemplateErrorKind::Evaluation => "template_evaluation",
            TemplateErrorKind::Limit => "template_limit",
        }
    }

    /// The same failure at another place, for a template that is part of a larger file.
    #[must_use]
    pub fn moved(mut self, line: usize, column: usize) -> Self {
        (self.line, self.column) = (line, column);
        self
    }
}

/// A failure that knows its byte but not yet its line.
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

    pub fn placed(self, name: &str, text: &str) -> TemplateError {
        let (line, column) = place(text, self.offset);
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

/// Line and column of a byte, both counted from 1; columns count characters.
pub(crate) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (line, before[start..].chars().count() + 1)
}
