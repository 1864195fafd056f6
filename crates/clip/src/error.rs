//! What can go wrong with a clip, as data: a code that callers may rely on, and words for people.

use std::borrow::Cow;
use std::fmt;

/// Why a call or an operation failed. The names are those of Connect and gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller no longer wants the answer.
    Canceled,
    /// The request makes no sense, whatever the state of things.
    InvalidArgument,
    /// The answer did not come in time.
    DeadlineExceeded,
    /// There is no such clip, command or file.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// A stated limit was passed.
    ResourceExhausted,
    /// It cannot be done in the present state of things.
    FailedPrecondition,
    /// Nobody knows how to do this.
    Unimplemented,
    /// The clip failed, or we did.
    Internal,
    /// The clip is not there now; it may be later.
    Unavailable,
    /// The caller did not say who it is.
    Unauthenticated,
}

const CODES: [(Code, &str, &str); 12] = [
    (Code::Canceled, "canceled", "CANCELED"),
    (
        Code::InvalidArgument,
        "invalid_argument",
        "INVALID_ARGUMENT",
    ),
    (
        Code::DeadlineExceeded,
        "deadline_exceeded",
        "DEADLINE_EXCEEDED",
    ),
    (Code::NotFound, "not_found", "NOT_FOUND"),
    (Code::AlreadyExists, "already_exists", "ALREADY_EXISTS"),
    (
        Code::PermissionDenied,
        "permission_denied",
        "PERMISSION_DENIED",
    ),
    (
        Code::ResourceExhausted,
        "resource_exhausted",
        "RESOURCE_EXHAUSTED",
    ),
    (
        Code::FailedPrecondition,
        "failed_precondition",
        "FAILED_PRECONDITION",
    ),
    (Code::Unimplemented, "unimplemented", "UNIMPLEMENTED"),
    (Code::Internal, "internal", "INTERNAL"),
    (Code::Unavailable, "unavailable", "UNAVAILABLE"),
    (Code::Unauthenticated, "unauthenticated", "UNAUTHENTICATED"),
];

impl Code {
    /// The code as Connect writes it: `not_found`.
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// The code as direct clips write it: `NOT_FOUND`.
    pub fn upper(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = CODES.iter().find(|(code, ..)| *code == self);
        found.map_or(("internal", "INTERNAL"), |(_, lower, upper)| {
            (*lower, *upper)
        })
    }

    /// Reads a code in any case and under any name in use; whatever is unknown is internal.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let named = CODES
            .iter()
            .find(|(_, lower, _)| lower.eq_ignore_ascii_case(text));
        if let Some((code, ..)) = named {
            return *code;
        }
        match text.to_ascii_lowercase().as_str() {
            "closed" => Self::Unavailable,
            "timeout" => Self::DeadlineExceeded,
            "method_not_found" => Self::NotFound,
            "cancelled" => Self::Canceled,
            _ => Self::Internal,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A failure: what kind, and what happened in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClipError {
    /// What kind of failure.
    pub code: Code,
    /// What happened, where, and what to do.
    pub message: Cow<'static, str>,
}

impl ClipError {
    /// A failure of this kind with these words.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The stable name of the kind of failure.
    pub fn code(&self) -> &'static str {
        self.code.as_str()
    }

    /// No clip goes by this name.
    pub fn no_clip(alias: &str) -> Self {
        Self::new(Code::NotFound, format!("Clip '{alias}' not found"))
    }

    pub(crate) fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Internal,
        };
        Self::new(code, format!("{doing}: {error}"))
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_in_any_spelling() {
        for (code, lower, upper) in CODES {
            assert_eq!(Code::parse(lower), code);
            assert_eq!(Code::parse(upper), code);
            assert_eq!((code.as_str(), code.upper()), (lower, upper));
        }
        assert_eq!(Code::parse("Timeout"), Code::DeadlineExceeded);
        assert_eq!(Code::parse("closed"), Code::Unavailable);
        assert_eq!(Code::parse(" METHOD_NOT_FOUND "), Code::NotFound);
        assert_eq!(Code::parse("cancelled"), Code::Canceled);
        assert_eq!(Code::parse(""), Code::Internal);
        assert_eq!(Code::parse("EWOULDBLOCK"), Code::Internal);
    }
}
