//! Failures as data: a code that callers may rely on, and words for people.
//!
//! The codes are the sixteen that Connect and gRPC share. Clips, the hub and the protocol between them all speak of failures
//! with [`Failure`]; how one looks on a wire is left to those who write it.

use std::borrow::Cow;
use std::fmt;

/// Why a call or an operation failed. The names are those of Connect and gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller no longer wants the answer.
    Canceled,
    /// Nobody knows what kind of failure it was.
    Unknown,
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
    /// Somebody else was faster; it may work when tried again.
    Aborted,
    /// Beyond the end of something.
    OutOfRange,
    /// Nobody knows how to do this.
    Unimplemented,
    /// The clip failed, or we did.
    Internal,
    /// The clip is not there now; it may be later.
    Unavailable,
    /// Something kept is lost or damaged.
    DataLoss,
    /// The caller did not say who it is.
    Unauthenticated,
}

/// All names of a code: ours, Connect's, the upper-case one, gRPC's number and the status of an HTTP answer.
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
    /// Every code there is.
    pub fn all() -> impl Iterator<Item = Self> {
        CODES.iter().map(|row| row.0)
    }

    /// The code as Connect writes it: `not_found`.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The code in upper case: `NOT_FOUND`.
    pub fn upper(self) -> &'static str {
        self.row().2
    }

    /// The number gRPC has for it.
    pub fn number(self) -> u8 {
        self.row().3
    }

    /// The status of an HTTP answer that says it.
    pub fn http_status(self) -> u16 {
        self.row().4
    }

    /// The code with this number of gRPC; 0 is none, whatever else is unknown is [`Code::Unknown`].
    pub fn from_number(number: u64) -> Option<Self> {
        let named = CODES.iter().find(|row| u64::from(row.3) == number);
        match named {
            Some(row) => Some(row.0),
            None if number == 0 => None,
            None => Some(Self::Unknown),
        }
    }

    /// The rows of the table stand in the order of the declaration.
    fn row(self) -> &'static Row {
        &CODES[self as usize]
    }

    /// Reads a code in any case and under any name in use; whatever is unknown is internal.
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

/// A failure: what kind, and what happened in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub code: Code,
    /// What happened, where, and what to do.
    pub message: Cow<'static, str>,
    /// Messages for programs that explain the failure, as Connect and gRPC carry them. Most failures have none.
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
    /// A failure of this kind with these words.
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

    /// The stable name of the kind of failure.
    pub fn code(&self) -> &'static str {
        self.code.as_str()
    }

    /// No clip goes by this name.
    pub fn no_clip(alias: &str) -> Self {
        Self::new(Code::NotFound, format!("Clip '{alias}' not found"))
    }

    /// An operation on a file failed while `doing` this.
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Internal,
        };
        Self::new(code, format!("{doing}: {error}"))
    }

    /// The request makes no sense.
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
