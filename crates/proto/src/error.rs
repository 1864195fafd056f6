//! Errors of decoding JSON or the binary form.

use std::fmt;

/// An error in a text or in bytes, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    pub problem: Problem,
    /// The path of the field from the outermost message, as in `uiEvent.payload.mode`; empty for
    /// the message itself.
    pub field: String,
    /// The byte offset at which the error was found.
    pub at: usize,
}

/// The kinds of decoding errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes are not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("this is not JSON: {0}")]
    Syntax(&'static str),
    /// The value is of another kind.
    #[error("wrong kind of value: expected {0}")]
    WrongKind(&'static str),
    /// The number is too large, too small, or not whole.
    #[error("{0} does not fit: expected {1}")]
    OutOfRange(String, &'static str),
    /// The field appeared before, under this or its other name.
    #[error("the field appears twice")]
    Duplicate,
    /// Another field of the same oneof is set.
    #[error("the field excludes another field that is set; remove one of them")]
    Excluded,
    /// The message does not declare the field.
    #[error("unknown field; check its name")]
    UnknownField,
    /// The enum does not declare the value.
    #[error("unknown value `{0}` for this field")]
    UnknownValue(String),
    /// The type of the message is not declared.
    #[error("unknown message type `{0}`")]
    UnknownType(String),
    /// A message of any type has no `@type`.
    #[error("`@type` is missing")]
    NoType,
    /// The bytes end inside a value.
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
    /// Returns a stable name of the kind, for programs.
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

    /// Prefixes the field path with `field`.
    pub(crate) fn inside(mut self, field: &str) -> Self {
        self.field = if self.field.is_empty() {
            field.to_owned()
        } else {
            format!("{field}.{}", self.field)
        };
        self
    }

    /// Returns a stable name of the kind, for programs.
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
