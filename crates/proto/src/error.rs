//! Why a text, or a binary form, is not the message it should be.

use std::fmt;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub problem: Problem,
    /// The field, from the outermost message on, as in `uiEvent.payload.mode`; empty for the message itself.
    pub field: String,
    /// The byte of the text or of the binary form at which it was noticed.
    pub at: usize,
}

/// What can be wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes are not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("this is not JSON: {0}")]
    Syntax(&'static str),
    /// The value is of another kind.
    #[error("a value of another kind stands here: {0} is expected")]
    WrongKind(&'static str),
    /// The number is too large, too small, or not whole.
    #[error("{0} does not fit: {1} is expected")]
    OutOfRange(String, &'static str),
    /// The field was there before, under the same or its other name.
    #[error("the field is there twice")]
    Duplicate,
    /// Another field of the same oneof is there.
    #[error("only one of this field and another that excludes it may be there")]
    Excluded,
    /// The message has no such field.
    #[error("there is no such field")]
    UnknownField,
    /// The enum has no such value.
    #[error("`{0}` is not among the values of this field")]
    UnknownValue(String),
    /// No message of this name is known.
    #[error("`{0}` is not a known type of message")]
    UnknownType(String),
    /// A message of any type does not say which.
    #[error("`@type` is missing")]
    NoType,
    /// The bytes end before the value does.
    #[error("the message ends in the middle of a value")]
    Truncated,
    /// The bytes are not a message in binary form.
    #[error("this is not a protobuf message: {0}")]
    Malformed(&'static str),
    /// Values are nested too deeply.
    #[error("values are nested too deeply")]
    TooDeep,
}

impl Problem {
    /// A name that does not change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::Syntax(_) => "syntax",
            Self::WrongKind(_) => "wrong_kind",
            Self::OutOfRange(..) => "out_of_range",
            Self::Duplicate => "duplicate",
            Self::Excluded => "excluded",
            Self::UnknownField => "unknown_field",
            Self::UnknownValue(_) => "unknown_value",
            Self::UnknownType(_) => "unknown_type",
            Self::NoType => "no_type",
            Self::Truncated => "truncated",
            Self::Malformed(_) => "malformed",
            Self::TooDeep => "too_deep",
        }
    }
}

impl DecodeError {
    pub(crate) fn new(problem: Problem, at: usize) -> Self {
        let field = String::new();
        Self { problem, field, at }
    }

    /// The same, seen from outside of `field`.
    pub(crate) fn inside(mut self, field: &str) -> Self {
        self.field = match self.field.is_empty() {
            true => field.to_owned(),
            false => format!("{field}.{}", self.field),
        };
        self
    }

    /// A name that does not change.
    pub fn code(&self) -> &'static str {
        self.problem.code()
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{} (byte {})", self.problem, self.at)
    }
}

impl std::error::Error for DecodeError {}
