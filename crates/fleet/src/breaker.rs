//! A circuit breaker: after repeated failures a model receives no requests for a while, then one request as a probe.
//!
//! The breaker reads no clock: callers permit the time since a fixed start. Closed → open after a number of failures within
//! a window → half-open after a cooldown, where exactly one probe is admitted → closed or open again. The files in
//! `breaker/` let processes share breakers.

mod process;
mod run_breakers;
mod shared_file;
#[cfg(test)]
mod shared_tests;
mod stored;

use std::collections::VecDeque;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::run_breakers::RunBreakers;

/// The number of failures that are stored even if they are older than the window: another run may have a longer window.
const STORED_FAILURES: usize = 64;

/// The limits at which a breaker opens, and its cooldown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRules {
    /// The number of failures within `window` that opens the breaker.
    pub failures: u32,
    #[serde(with = "crate::plan::milliseconds")]
    pub window: Duration,
    /// The time that the breaker stays open before a probe.
    #[serde(with = "crate::plan::milliseconds")]
    pub cooldown: Duration,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            failures: 3,
            window: Duration::from_secs(60),
            cooldown: Duration::from_secs(120),
        }
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Every request is admitted.
    Closed,
    /// No request is admitted.
    Open,
    /// One request is admitted as a probe.
    HalfOpen,
}

/// The permission to send requests to a model. The holder reports success or failure, or abandons it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// The period of the breaker in which the permit was granted; reports from earlier periods are ignored.
    period: u64,
    probe: bool,
}

impl Permit {
    /// Reports whether this is the one permit that tests a model after its cooldown.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// A breaker's answer to a caller that wants to use a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The model may be used.
    Granted(Permit),
    /// The model may not be used before this time.
    NotBefore(Duration),
    /// A probe is running; its result decides.
    Probing,
}

#[derive(Debug)]
enum Phase {
    Closed { failures: VecDeque<Duration> },
    Open { until: Duration },
    HalfOpen { probing: bool },
}

/// The breaker of one model.
#[derive(Debug)]
pub struct Breaker {
    rules: BreakerRules,
    phase: Phase,
    /// Counts changes of phase.
    period: u64,
}

impl Breaker {
    /// Creates a closed breaker.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            phase: Phase::Closed {
                failures: VecDeque::new(),
            },
            period: 0,
        }
    }

    /// Returns the state at the time `now`.
    pub fn state(&self, now: Duration) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Asks for a permit to use the model.
    pub fn admit(&mut self, now: Duration) -> Admission {
        if let Phase::Open { until } = self.phase {
            if now < until {
                return Admission::NotBefore(until);
            }
            self.enter(Phase::HalfOpen { probing: false });
        }
        let probe = match &mut self.phase {
            Phase::HalfOpen { probing: true } => return Admission::Probing,
            Phase::HalfOpen { probing } => {
                *probing = true;
                true
            }
            Phase::Closed { .. } | Phase::Open { .. } => false,
        };
        Admission::Granted(Permit {
            period: self.period,
            probe,
        })
    }

    /// Reports an answer of the model. If `permit` is the probe, the breaker closes and `permit` becomes an ordinary permit.
    pub fn succeeded(&mut self, permit: &mut Permit) {
        if permit.probe && permit.period == self.period {
            self.enter(Phase::Closed {
                failures: VecDeque::new(),
            });
            *permit = Permit {
                period: self.period,
                probe: false,
            };
        }
    }

    /// Reports that the model was overloaded or unreachable.
    pub fn failed(&mut self, permit: Permit, now: Duration) {
        if permit.period != self.period {
            return;
        }
        let opens = match &mut self.phase {
            Phase::Closed { failures } => {
                let window = self.rules.window;
                let is_old = |time: &Duration| *time + window <= now;
                failures.push_back(now);
                while failures.len() > STORED_FAILURES && failures.front().is_some_and(is_old) {
                    failures.pop_front();
                }
                let recent = failures.iter().filter(|time| !is_old(time)).count();
                recent >= self.rules.failures.max(1) as usize
            }
            Phase::HalfOpen { .. } => permit.probe,
            Phase::Open { .. } => false,
        };
        if opens {
            self.enter(Phase::Open {
                until: now + self.rules.cooldown,
            });
        }
    }

    /// Returns a permit that led to no result, so that another caller may probe.
    pub fn abandoned(&mut self, permit: Permit) {
        if permit.probe
            && permit.period == self.period
            && let Phase::HalfOpen { probing } = &mut self.phase
        {
            *probing = false;
        }
    }

    /// Ends the current probe because its process will not report.
    fn release_probe(&mut self) {
        if let Phase::HalfOpen { probing } = &mut self.phase {
            *probing = false;
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.period += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn go(breaker: &mut Breaker, now: u64) -> Permit {
        match breaker.admit(S(now)) {
            Admission::Granted(permit) => permit,
            other => panic!("{other:?} at {now}"),
        }
    }

    #[test]
    fn three_failures_in_a_minute_open_it_and_one_probe_decides() {
        let mut breaker = Breaker::new(BreakerRules::default());
        for now in [0, 10, 61] {
            let permit = go(&mut breaker, now);
            breaker.failed(permit, S(now));
        }
        assert_eq!(
            breaker.state(S(61)),
            BreakerState::Closed,
            "the first is forgotten"
        );
        let stale = go(&mut breaker, 62);
        let permit = go(&mut breaker, 62);
        breaker.failed(permit, S(62));
        assert_eq!(breaker.admit(S(63)), Admission::NotBefore(S(182)));
        breaker.failed(stale, S(70));
        assert_eq!(
            breaker.admit(S(71)),
            Admission::NotBefore(S(182)),
            "not prolonged"
        );
        let mut probe = go(&mut breaker, 182);
        assert!(probe.is_probe());
        assert_eq!(breaker.admit(S(183)), Admission::Probing);
        breaker.abandoned(probe);
        probe = go(&mut breaker, 184);
        breaker.failed(probe, S(190));
        assert_eq!(breaker.admit(S(191)), Admission::NotBefore(S(310)));
        let mut probe = go(&mut breaker, 310);
        breaker.succeeded(&mut probe);
        assert_eq!(breaker.state(S(311)), BreakerState::Closed);
        assert!(!go(&mut breaker, 311).is_probe());
        // The permit of a former probe counts like any other.
        for _ in 0..3 {
            breaker.failed(probe, S(312));
        }
        assert_eq!(breaker.state(S(312)), BreakerState::Open);
    }

    /// An operation on a breaker.
    #[derive(Debug, Clone)]
    enum Act {
        Admit,
        Succeed(usize),
        Fail(usize),
        Abandon(usize),
        Wait(u64),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            3 => Just(Act::Admit),
            2 => (0usize..8).prop_map(Act::Succeed),
            4 => (0usize..8).prop_map(Act::Fail),
            1 => (0usize..8).prop_map(Act::Abandon),
            2 => (1u64..90).prop_map(Act::Wait),
        ];
        proptest::collection::vec(act, 0..200)
    }

    proptest! {
        #[test]
        fn any_sequence_follows_the_rules(acts in acts(), threshold in 1u32..5) {
            let rules = BreakerRules { failures: threshold, ..BreakerRules::default() };
            let mut breaker = Breaker::new(rules);
            let mut now = Duration::ZERO;
            let mut held: Vec<Permit> = Vec::new();
            // The time it opened last, and the failures since it closed.
            let mut opened: Option<Duration> = None;
            let mut failures: Vec<Duration> = Vec::new();
            for act in acts {
                let before = breaker.state(now);
                match act {
                    Act::Wait(seconds) => now += S(seconds),
                    Act::Admit => match breaker.admit(now) {
                        Admission::Granted(permit) => {
                            prop_assert_ne!(before, BreakerState::Open);
                            prop_assert_eq!(permit.is_probe(), before == BreakerState::HalfOpen);
                            if permit.is_probe() {
                                let probes = held.iter().filter(|held| held.is_probe() && held.period == permit.period);
                                prop_assert_eq!(probes.count(), 0, "one probe at a time");
                            }
                            held.push(permit);
                        }
                        Admission::NotBefore(until) => {
                            prop_assert_eq!(before, BreakerState::Open);
                            prop_assert_eq!(opened.map(|at| at + rules.cooldown), Some(until));
                        }
                        Admission::Probing => {
                            prop_assert!(held.iter().any(|held| held.is_probe() && held.period == breaker.period));
                        }
                    },
                    Act::Succeed(index) => if let Some(permit) = held.get_mut(index) {
                        let decides = permit.is_probe() && permit.period == breaker.period;
                        breaker.succeeded(permit);
                        let after = breaker.state(now);
                        if decides {
                            prop_assert_eq!(after, BreakerState::Closed);
                            failures.clear();
                        } else {
                            prop_assert_eq!(after, before);
                        }
                    },
                    Act::Fail(index) => if let Some(permit) = held.get(index).copied() {
                        let current = permit.period == breaker.period;
                        breaker.failed(permit, now);
                        let after = breaker.state(now);
                        match before {
                            BreakerState::Closed if current => {
                                failures.push(now);
                                failures.retain(|at| *at + rules.window > now);
                                let opens = failures.len() >= threshold as usize;
                                prop_assert_eq!(after == BreakerState::Open, opens);
                            }
                            BreakerState::HalfOpen if current && permit.is_probe() => {
                                prop_assert_eq!(after, BreakerState::Open);
                            }
                            _ => prop_assert_eq!(after, before),
                        }
                        if before != BreakerState::Open && after == BreakerState::Open {
                            opened = Some(now);
                            failures.clear();
                        }
                    },
                    Act::Abandon(index) => if index < held.len() {
                        let permit = held.swap_remove(index);
                        breaker.abandoned(permit);
                        prop_assert_eq!(breaker.state(now), before);
                    },
                }
            }
            // After any sequence, a model that has recovered is used again.
            held.drain(..).for_each(|permit| breaker.abandoned(permit));
            let Admission::Granted(mut permit) = breaker.admit(now + rules.cooldown) else {
                return Err(TestCaseError::fail("no permit is granted any more"));
            };
            breaker.succeeded(&mut permit);
            prop_assert_eq!(breaker.state(now + rules.cooldown), BreakerState::Closed);
        }
    }
}
