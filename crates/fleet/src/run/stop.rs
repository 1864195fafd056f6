//! The end of a run before its work is done.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::{ChildFailure, Clock, FailureKind};

/// Why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A signal.
    Interrupted,
    /// Its time is up.
    Timeout,
    /// Its money is spent.
    Budget,
}

/// Ends a run; the first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<StopReason>>,
}

impl Stop {
    /// Ends the run.
    pub fn set(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Why it ends, if it does.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    /// Waits until it ends.
    pub async fn stopped(&self) {
        self.token.cancelled().await;
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// What becomes of a child because of it.
    pub(crate) fn failure(&self) -> ChildFailure {
        let (kind, message) = match self.reason() {
            Some(StopReason::Timeout) => (
                FailureKind::Timeout { clock: Clock::Run },
                "the time of the run is up",
            ),
            Some(StopReason::Budget) => (FailureKind::Budget, "the money of the run is spent"),
            Some(StopReason::Interrupted) | None => (FailureKind::Aborted, "the run was stopped"),
        };
        ChildFailure::new(kind, message)
    }
}
