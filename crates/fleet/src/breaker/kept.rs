//! A breaker in the form in which processes share it: plain data, times in milliseconds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process::Process;
use super::{Breaker, BreakerRules, Phase};

/// A breaker in the file of all runs.
///
/// ```json
/// {"period":1,"changed":1763310000000,"state":"open","until":1763310120000}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    period: u64,
    /// When it was last written.
    #[serde(default)]
    pub changed: u64,
    #[serde(flatten)]
    phase: KeptPhase,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum KeptPhase {
    Closed {
        failures: Vec<u64>,
    },
    Open {
        until: u64,
    },
    HalfOpen {
        /// Who tries the model, if anybody does.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        prober: Option<Process>,
    },
}

impl Kept {
    /// A breaker as it is now; `prober` is whose probe it is if there is one.
    pub fn of(breaker: &Breaker, prober: Process) -> Self {
        let phase = match &breaker.phase {
            Phase::Closed { failures } => KeptPhase::Closed {
                failures: failures.iter().copied().map(to_milliseconds).collect(),
            },
            Phase::Open { until } => KeptPhase::Open {
                until: to_milliseconds(*until),
            },
            Phase::HalfOpen { probing } => KeptPhase::HalfOpen {
                prober: probing.then_some(prober),
            },
        };
        Self {
            period: breaker.period,
            changed: 0,
            phase,
        }
    }

    /// The breaker, under the rules of a run.
    pub fn breaker(&self, rules: BreakerRules) -> Breaker {
        let phase = match &self.phase {
            KeptPhase::Closed { failures } => Phase::Closed {
                failures: failures
                    .iter()
                    .copied()
                    .map(Duration::from_millis)
                    .collect(),
            },
            KeptPhase::Open { until } => Phase::Open {
                until: Duration::from_millis(*until),
            },
            KeptPhase::HalfOpen { prober } => Phase::HalfOpen {
                probing: prober.is_some(),
            },
        };
        Breaker {
            rules,
            phase,
            period: self.period,
        }
    }

    /// Who tries the model.
    pub fn prober(&self) -> Option<Process> {
        match self.phase {
            KeptPhase::HalfOpen { prober } => prober,
            KeptPhase::Closed { .. } | KeptPhase::Open { .. } => None,
        }
    }

    /// The next one may try: whoever did is dead.
    pub fn give_up_probe(&mut self) {
        if let KeptPhase::HalfOpen { prober } = &mut self.phase {
            *prober = None;
        }
    }

    /// Whether it says what is known of a model nobody has asked.
    pub fn is_new(&self) -> bool {
        let untouched = KeptPhase::Closed {
            failures: Vec::new(),
        };
        self.period == 0 && self.phase == untouched
    }

    /// Whether it says the same, whenever it was written.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.period == other.period && self.phase == other.phase
    }

    /// Whether nothing is waited for any more at this time.
    pub fn is_at_rest(&self, now: u64) -> bool {
        match &self.phase {
            KeptPhase::Closed { .. } => true,
            KeptPhase::Open { until } => *until <= now,
            KeptPhase::HalfOpen { prober } => prober.is_none(),
        }
    }

    /// Moves everything to an earlier time: the clock was put back.
    pub fn put_back(&mut self, by: u64) {
        self.changed = self.changed.saturating_sub(by);
        match &mut self.phase {
            KeptPhase::Closed { failures } => {
                for time in failures {
                    *time = time.saturating_sub(by);
                }
            }
            KeptPhase::Open { until } => *until = until.saturating_sub(by),
            KeptPhase::HalfOpen { .. } => {}
        }
    }
}

/// A time as it is kept.
pub(super) fn to_milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
