//! Failures as data: a code that callers may rely on, and a message for people.
//!
//! The codes are the sixteen that Connect and gRPC share. Clips, the hub and the protocol between
//! them report failures as [`Failure`]; each protocol decides its form on the wire.

use std::borrow::Cow;
use std::fmt;

/// The kind of a failed call or operation. The names are those of Connect and gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller cancelled the call.
    Canceled,
    /// The kind of failure is unknown.
    Unknown,
    /// The request is invalid in every state.
    InvalidArgument,
    /// The answer did not arrive in time.
    DeadlineExceeded,
    /// The clip, command or file does not exist.
    NotFound,
    /// The name is in use.
    AlreadyExists,
    /// The caller lacks the permission.
    PermissionDenied,
    /// A limit was exceeded.
    ResourceExhausted,
    /// The request is valid but not possible in the present state.
    FailedPrecondition,
    /// Another caller was faster; a retry may succeed.
    Aborted,
    /// The position is beyond the end.
    OutOfRange,
    /// The operation is not implemented.
    Unimplemented,
    /// The clip or the hub failed.
    Internal,
    /// The clip is not available now; it may be later.
    Unavailable,
    /// Stored data is lost or damaged.
    DataLoss,
    /// The caller is not authenticated.
    Unauthenticated,
}

/// All names of a code: the variant, Connect's name, the upper-case name, gRPC's number, the HTTP
/// status.
struct Row(Code, &'static str, &'static str, u8, u16);

#[rustfmt::skip]
const CODES: [Row; 16] = [
    Row(Code::Canceled, "canceled", "CANCELED", 1, 499),
    Row(Code::Unknown, "unknown", "UNKNOWN", 2, 500),
    Row(Code::InvalidArgument, "invalid_argument", "INVALID_ARGUMENT", 3, 400),
    Row(Code::DeadlineExceeded, "deadline_exceeded", "DEADLINE_EXCEEDED", 4, 504),
    Row(Code::NotFound, "not_found", "NOT_FOUND", 5, 404),
    Row(Code::AlreadyExists, "already_exists", "ALREADY_EXISTS", 6, 409),
    Row(Code::PermissionDenied, "permission_denied", "PERMISSION_DENIED", 7, 403),
    Row(Code::ResourceExhausted, "resource_exhausted", "RESOURCE_EXHAUSTED", 8, 429),
    Row(Code::FailedPrecondition, "failed_precondition", "FAILED_PRECONDITION", 9, 400),
    Row(Code::Aborted, "aborted", "ABORTED", 10, 409),
    Row(Code::OutOfRange, "out_of_range", "OUT_OF_RANGE", 11, 400),
    Row(Code::Unimplemented, "unimplemented", "UNIMPLEMENTED", 12, 501),
    Row(Code::Internal, "internal", "INTERNAL", 13, 500),
    Row(Code::Unavailable, "unavailable", "UNAVAILABLE", 14, 503),
    Row(Code::DataLoss, "data_loss", "DATA_LOSS", 15, 500),
    Row(Code::Unauthenticated, "unauthenticated", "UNAUTHENTICATED", 16, 401),
];

impl Code {
    /// Returns every code.
    pub fn all() -> impl Iterator<Item = Self> {
        CODES.iter().map(|row| row.0)
    }

    /// Returns Connect's name of the code: `not_found`.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// Returns the code in upper case: `NOT_FOUND`.
    pub fn upper(self) -> &'static str {
        self.row().2
    }

    /// Returns gRPC's number of the code.
    pub fn number(self) -> u8 {
        self.row().3
    }

    /// Returns the HTTP status of a response with this code.
    pub fn http_status(self) -> u16 {
        self.row().4
    }

    /// Returns the code with this gRPC number; `None` for 0, [`Code::Unknown`] for an unassigned
    /// number.
    pub fn from_number(number: u64) -> Option<Self> {
        let named = CODES.iter().find(|row| u64::from(row.3) == number);
        match named {
            Some(row) => Some(row.0),
            None if number == 0 => None,
            None => Some(Self::Unknown),
        }
    }

    /// Returns the code's row; the rows are in the order of the declaration.
    fn row(self) -> &'static Row {
        &CODES[self as usize]
    }

    /// Parses a code in any case and under any name in use; an unknown one is internal.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let named = CODES.iter().find(|row| row.1.eq_ignore_ascii_case(text));
        if let Some(row) = named {
            return row.0;
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

/// A failure: its kind and a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    /// The event, its place, and what to do next.
    pub message: Cow<'static, str>,
    /// Messages for programs that explain the failure, as Connect and gRPC carry them. Most
    /// failures have none.
    pub details: Vec<Detail>,
}

/// One message that explains a failure to a program: the content of a `google.protobuf.Any`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The full name of the message type, such as `google.rpc.RetryInfo`.
    pub type_name: String,
    /// The message in protobuf's binary form.
    pub value: Vec<u8>,
}

impl Failure {
    /// Creates a failure without details.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// Adds a message that explains the failure to a program.
    #[must_use]
    pub fn with_detail(mut self, type_name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.details.push(Detail {
            type_name: type_name.into(),
            value: value.into(),
        });
        self
    }

    /// Returns Connect's name of the code.
    pub fn code(&self) -> &'static str {
        self.code.as_str()
    }

    /// Creates the failure of a call to a clip that does not exist.
    pub fn no_clip(alias: &str) -> Self {
        Self::new(Code::NotFound, format!("Clip '{alias}' not found"))
    }

    /// Creates the failure of a file operation; `doing` describes the operation.
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Internal,
        };
        Self::new(code, format!("{doing}: {error}"))
    }

    /// Creates the failure of an invalid request.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_in_any_spelling() {
        for Row(code, lower, upper, number, status) in CODES {
            assert_eq!(Code::parse(lower), code);
            assert_eq!(Code::parse(upper), code);
            assert_eq!((code.as_str(), code.upper()), (lower, upper));
            assert_eq!(Code::from_number(number.into()), Some(code));
            assert_eq!((code.number(), code.http_status()), (number, status));
        }
        assert_eq!(Code::from_number(0), None);
        assert_eq!(Code::from_number(99), Some(Code::Unknown));
        assert_eq!(Code::parse("Timeout"), Code::DeadlineExceeded);
        assert_eq!(Code::parse("closed"), Code::Unavailable);
        assert_eq!(Code::parse(" METHOD_NOT_FOUND "), Code::NotFound);
        assert_eq!(Code::parse("cancelled"), Code::Canceled);
        assert_eq!(Code::parse(""), Code::Internal);
        assert_eq!(Code::parse("EWOULDBLOCK"), Code::Internal);
    }
}
