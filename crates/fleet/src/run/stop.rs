//! Stops a run before its work is done.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::{ChildFailure, FailureKind, TimeoutClock};

/// The reason why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A signal, or a failure of the fleet itself.
    Interrupted,
    /// The run reached its timeout.
    Timeout,
    /// The budget of the run is spent.
    Budget,
}

/// Ends a run early; later reasons are ignored.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<StopReason>>,
}

impl Stop {
    pub fn set(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Returns the reason if the run was stopped.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    /// Waits until the run is stopped.
    pub async fn stopped(&self) {
        self.token.cancelled().await;
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns the failure of the children that the stop ended.
    pub(crate) fn failure(&self) -> ChildFailure {
        let (kind, message) = match self.reason() {
            Some(StopReason::Timeout) => (
                FailureKind::Timeout {
                    clock: TimeoutClock::Run,
                },
                "the run reached its timeout",
            ),
            Some(StopReason::Budget) => (FailureKind::Budget, "the budget of the run is spent"),
            Some(StopReason::Interrupted) | None => (FailureKind::Aborted, "the run was stopped"),
        };
        ChildFailure::new(kind, message)
    }
}
