//! A breaker as stored in the shared file: plain data, times in milliseconds since 1970.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process::ProcessIdentity;
use super::{Breaker, BreakerRules, Phase};

/// A breaker in the shared file.
///
/// ```json
/// {"period":1,"changed":1763310000000,"state":"open","until":1763310120000}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredBreaker {
    period: u64,
    /// The time of the last change.
    #[serde(default)]
    pub changed: u64,
    #[serde(flatten)]
    phase: StoredPhase,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum StoredPhase {
    Closed {
        failures: Vec<u64>,
    },
    Open {
        until: u64,
    },
    HalfOpen {
        /// The process that probes the model.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        prober: Option<ProcessIdentity>,
    },
}

impl StoredBreaker {
    /// Converts a breaker; `prober` is the process that owns its probe, if it has one.
    pub fn of(breaker: &Breaker, prober: ProcessIdentity) -> Self {
        let phase = match &breaker.phase {
            Phase::Closed { failures } => StoredPhase::Closed {
                failures: failures.iter().copied().map(to_milliseconds).collect(),
            },
            Phase::Open { until } => StoredPhase::Open {
                until: to_milliseconds(*until),
            },
            Phase::HalfOpen { probing } => StoredPhase::HalfOpen {
                prober: probing.then_some(prober),
            },
        };
        Self {
            period: breaker.period,
            changed: 0,
            phase,
        }
    }

    /// Converts back to a breaker with the rules of a run.
    pub fn breaker(&self, rules: BreakerRules) -> Breaker {
        let phase = match &self.phase {
            StoredPhase::Closed { failures } => Phase::Closed {
                failures: failures
                    .iter()
                    .copied()
                    .map(Duration::from_millis)
                    .collect(),
            },
            StoredPhase::Open { until } => Phase::Open {
                until: Duration::from_millis(*until),
            },
            StoredPhase::HalfOpen { prober } => Phase::HalfOpen {
                probing: prober.is_some(),
            },
        };
        Breaker {
            rules,
            phase,
            period: self.period,
        }
    }

    /// Returns the process that probes the model.
    pub fn prober(&self) -> Option<ProcessIdentity> {
        match self.phase {
            StoredPhase::HalfOpen { prober } => prober,
            StoredPhase::Closed { .. } | StoredPhase::Open { .. } => None,
        }
    }

    /// Ends the probe of a process that has ended, so that another one may probe.
    pub fn release_probe(&mut self) {
        if let StoredPhase::HalfOpen { prober } = &mut self.phase {
            *prober = None;
        }
    }

    /// Reports whether this is the initial state of a model that was never used.
    pub fn is_new(&self) -> bool {
        let untouched = StoredPhase::Closed {
            failures: Vec::new(),
        };
        self.period == 0 && self.phase == untouched
    }

    /// Reports whether both have the same state, regardless of the time of the last change.
    pub fn is_same_state(&self, other: &Self) -> bool {
        self.period == other.period && self.phase == other.phase
    }

    /// Reports whether neither a cooldown nor a probe is in progress at this time.
    pub fn is_at_rest(&self, now: u64) -> bool {
        match &self.phase {
            StoredPhase::Closed { .. } => true,
            StoredPhase::Open { until } => *until <= now,
            StoredPhase::HalfOpen { prober } => prober.is_none(),
        }
    }

    /// Moves all times back by `by` milliseconds, after the clock was set back.
    pub fn shift_back(&mut self, by: u64) {
        self.changed = self.changed.saturating_sub(by);
        match &mut self.phase {
            StoredPhase::Closed { failures } => {
                for time in failures {
                    *time = time.saturating_sub(by);
                }
            }
            StoredPhase::Open { until } => *until = until.saturating_sub(by),
            StoredPhase::HalfOpen { .. } => {}
        }
    }
}

pub(super) fn to_milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
