//! The failures of children: a closed set of kinds, and the reaction to each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a failure. Every adapter maps failures of its program to these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum FailureKind {
    /// The model's server rejected the request or was unreachable.
    Api {
        /// The HTTP status of the response, if there was one.
        status: Option<u16>,
        /// The cause is overload or unavailability, which is temporary.
        retryable: bool,
    },
    /// The key is missing, wrong or not permitted to use the model.
    ProviderAuth,
    /// The conversation exceeds the model's context window.
    ContextOverflow,
    /// The answer was cut off at the token limit.
    OutputLength,
    /// The answer does not have the format that the plan requires.
    StructuredOutput,
    /// The child was stopped.
    Aborted,
    /// A time limit was reached.
    Timeout {
        /// The limit that was reached.
        clock: TimeoutClock,
    },
    /// The budget is spent.
    Budget,
    /// The process ended with a non-zero exit code or by a signal, without a report of the cause.
    Crashed {
        /// The signal that ended the process.
        signal: Option<i32>,
        /// The exit code of the process.
        code: Option<i32>,
    },
    /// The child exited without reporting that it was done, could not be started, or printed output that the adapter does
    /// not understand.
    Protocol,
}

/// A time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Clock")]
pub enum TimeoutClock {
    /// The limit for one attempt of the child.
    Child,
    /// The limit for the whole run.
    Run,
    /// The limit for time without progress.
    Inactivity,
}

impl FailureKind {
    /// Returns the stable name of the kind.
    pub fn code(self) -> &'static str {
        match self {
            Self::Api { .. } => "api",
            Self::ProviderAuth => "provider_auth",
            Self::ContextOverflow => "context_overflow",
            Self::OutputLength => "output_length",
            Self::StructuredOutput => "structured_output",
            Self::Aborted => "aborted",
            Self::Timeout { .. } => "timeout",
            Self::Budget => "budget",
            Self::Crashed { .. } => "crashed",
            Self::Protocol => "protocol",
        }
    }

    /// Reports whether the cause is overload or unavailability: it counts for the breaker, and another model may work.
    pub fn should_fail_back(self) -> bool {
        matches!(
            self,
            Self::Api {
                retryable: true,
                ..
            }
        )
    }

    /// Reports whether another attempt may succeed.
    pub fn may_retry(self) -> bool {
        match self {
            Self::Api { retryable, .. } => retryable,
            Self::StructuredOutput | Self::Crashed { .. } | Self::Protocol => true,
            Self::Timeout { clock } => clock == TimeoutClock::Inactivity,
            Self::ProviderAuth
            | Self::ContextOverflow
            | Self::OutputLength
            | Self::Aborted
            | Self::Budget => false,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api {
                status: Some(status),
                ..
            } => write!(f, "api {status}"),
            Self::Timeout {
                clock: TimeoutClock::Child,
            } => f.write_str("timeout"),
            Self::Timeout {
                clock: TimeoutClock::Run,
            } => f.write_str("run timeout"),
            Self::Timeout {
                clock: TimeoutClock::Inactivity,
            } => f.write_str("no progress"),
            Self::Crashed {
                signal: Some(signal),
                ..
            } => write!(f, "crashed, signal {signal}"),
            Self::Crashed {
                code: Some(code), ..
            } => write!(f, "crashed, code {code}"),
            kind => f.write_str(&kind.code().replace('_', " ")),
        }
    }
}

/// A failure of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildFailure {
    #[serde(flatten)]
    pub kind: FailureKind,
    /// A description of the failure for people.
    pub message: String,
}

impl ChildFailure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Reports whether another attempt may succeed.
    pub fn retryable(&self) -> bool {
        self.kind.may_retry()
    }
}

impl fmt::Display for ChildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
