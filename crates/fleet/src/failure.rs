//! Why a child failed: a closed set of kinds, and what follows from each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of failure there are. Every adapter maps into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum FailureKind {
    /// The model's server refused or could not be reached.
    Api {
        /// The status of its answer, if it gave one.
        status: Option<u16>,
        /// Whether it is overload or unavailability, which passes.
        retryable: bool,
    },
    /// The key is missing, wrong or not allowed.
    ProviderAuth,
    /// The conversation does not fit the model.
    ContextOverflow,
    /// The answer reached the limit of tokens in the middle.
    OutputLength,
    /// The answer is not in the form the plan asks for.
    StructuredOutput,
    /// Somebody stopped it.
    Aborted,
    /// It took too long.
    Timeout {
        /// By which clock.
        clock: Clock,
    },
    /// The money is spent.
    Budget,
    /// The process ended with a code or by a signal, without having said why.
    Crashed {
        /// The signal, if it was one.
        signal: Option<i32>,
        /// The exit code, if there was one.
        code: Option<i32>,
    },
    /// It ended without saying that it was done, could not be started, or spoke in a way nobody understands.
    Protocol,
}

/// Which time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// That of the child.
    Child,
    /// That of the whole run.
    Run,
    /// The time without progress.
    Inactivity,
}

impl FailureKind {
    /// The name of the kind, which never changes.
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

    /// Whether it is overload or unavailability: it counts towards the breaker, and another model may do better.
    pub fn should_fail_back(self) -> bool {
        matches!(
            self,
            Self::Api {
                retryable: true,
                ..
            }
        )
    }

    /// Whether the same again may succeed.
    pub fn may_retry(self) -> bool {
        match self {
            Self::Api { retryable, .. } => retryable,
            Self::StructuredOutput | Self::Crashed { .. } | Self::Protocol => true,
            Self::Timeout { clock } => clock == Clock::Inactivity,
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
                clock: Clock::Child,
            } => f.write_str("timeout"),
            Self::Timeout { clock: Clock::Run } => f.write_str("run timeout"),
            Self::Timeout {
                clock: Clock::Inactivity,
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

/// A failure: its kind, and what happened in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildFailure {
    /// What kind of failure.
    #[serde(flatten)]
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
}

impl ChildFailure {
    /// A failure of this kind with these words.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Whether the same again may succeed.
    pub fn retryable(&self) -> bool {
        self.kind.may_retry()
    }
}

impl fmt::Display for ChildFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
