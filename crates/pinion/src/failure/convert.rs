//! The errors of the other crates as failures of the program.

use std::io;

use pinion_agent::EngineError;
use pinion_commands::CommandError;
use pinion_config::ConfigError;
use pinion_extensions::LoadFailure;
use pinion_fleet::PlanError;
use pinion_history::{HistoryError, ReportError};
use pinion_llm::{CredentialError, ResolveError};
use pinion_packages::PackageError;
use pinion_profiles::ProfileError;
use pinion_run_command::RunError;
use pinion_session::SessionError;
use pinion_status::Code;
use pinion_text::amount;

use super::Failure;

/// Converts errors whose text is the whole message, with a function of [`Failure`].
macro_rules! convert {
    ($($error:ty => $failure:ident $(.$more:ident())*,)*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$failure(error)$(.$more())*
            }
        })*
    };
}

convert! {
    io::Error => failed,
    pinion_status::Failure => failed,
    CommandError => failed,
    ConfigError => failed,
    PackageError => failed,
    ProfileError => failed,
    pinion_cli::Problem => usage,
    // pi prints these without a prefix.
    CredentialError => failed.bare().about_key(),
    EngineError => failed.bare(),
    ResolveError => usage.bare(),
}

impl From<pinion_cli::Error> for Failure {
    fn from(error: pinion_cli::Error) -> Self {
        Self::from(error.problem).hint(format!("See `{} --help`.", error.words))
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NoMatch(_) | SessionError::OtherProject { .. } => {
                Self::failed(error).bare()
            }
            _ => Self::failed(error),
        }
    }
}

impl From<LoadFailure> for Failure {
    fn from(failure: LoadFailure) -> Self {
        match failure {
            LoadFailure::Problems(problems) => Self::all(problems.iter().map(ToString::to_string)),
            LoadFailure::Engine(_) => Self::failed(failure).bare(),
        }
    }
}

impl From<pinion_filter::Problem> for Failure {
    fn from(problem: pinion_filter::Problem) -> Self {
        match problem {
            pinion_filter::Problem::Failed(reason) => Self::failed(format!("--jq: {reason}")),
            pinion_filter::Problem::Output(error) => Self::unwritten(error),
        }
    }
}

/// Wrong options are errors of usage.
impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        match error.code() {
            "history_options" | "history_backend" => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Store(error) => error.into(),
            ReportError::Output(error) => error.into(),
            ReportError::Missing(message) => Self::failed(message),
            ReportError::Ambiguous(message) => Self::usage(message),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Usage(message) => Self::usage(message),
            RunError::Failed(message) => Self::failed(message),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let problems = amount::count(error.problems.len(), "problem");
        let summary = format!("{problems} in the plan; nothing was started.");
        Self::usage(summary).after(Self::failed(error).bare())
    }
}

/// The reason why the agent clip has no session.
impl From<Failure> for pinion_status::Failure {
    fn from(failure: Failure) -> Self {
        Self::new(Code::FailedPrecondition, failure.to_string())
    }
}

/// The reason that a client receives as text.
impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.to_string()
    }
}
