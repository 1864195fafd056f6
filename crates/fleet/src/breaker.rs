//! A circuit breaker: a model that keeps failing is left alone for a while, then tried once.
//!
//! Pure: time is handed in, as the time since some start. Closed → open after so many failures within a window → half-open
//! after a cooldown, where exactly one probe goes through → closed or open again. `breaker/` has what lets processes share them.

mod board;
mod commons;
mod kept;
mod process;
#[cfg(test)]
mod shared_tests;

use std::collections::VecDeque;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::board::Board;

/// Failures that are remembered though they are older than the window: another run may have a longer one.
const REMEMBERED: usize = 64;

/// When a breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRules {
    /// So many failures open it …
    pub failures: u32,
    /// … within this time.
    #[serde(with = "crate::plan::milliseconds")]
    pub window: Duration,
    /// How long it stays open.
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

/// The state of a breaker, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Everybody goes through.
    Closed,
    /// Nobody does.
    Open,
    /// One does, to see.
    HalfOpen,
}

/// Leave to ask a model. Whoever has one reports how it went, or that nothing came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The period of the breaker in which it was given; what comes later knows better.
    period: u64,
    probe: bool,
}

impl Pass {
    /// Whether it is the one that tries a model after its cooldown.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// The answer to somebody who wants to ask a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go.
    Go(Pass),
    /// Not before this time.
    NotBefore(Duration),
    /// Somebody is trying; how that ends is to be seen.
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
    /// A closed one.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            phase: Phase::Closed {
                failures: VecDeque::new(),
            },
            period: 0,
        }
    }

    /// Its state at this time.
    pub fn state(&self, now: Duration) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Somebody wants to ask the model.
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
        Admission::Go(Pass {
            period: self.period,
            probe,
        })
    }

    /// The model answered. A probe that hears so closes the breaker, and its pass is an ordinary one from then on.
    pub fn succeeded(&mut self, pass: &mut Pass) {
        if pass.probe && pass.period == self.period {
            self.enter(Phase::Closed {
                failures: VecDeque::new(),
            });
            *pass = Pass {
                period: self.period,
                probe: false,
            };
        }
    }

    /// The model was overloaded or could not be reached.
    pub fn failed(&mut self, pass: Pass, now: Duration) {
        if pass.period != self.period {
            return;
        }
        let opens = match &mut self.phase {
            Phase::Closed { failures } => {
                let window = self.rules.window;
                let is_old = |time: &Duration| *time + window <= now;
                failures.push_back(now);
                while failures.len() > REMEMBERED && failures.front().is_some_and(is_old) {
                    failures.pop_front();
                }
                let recent = failures.iter().filter(|time| !is_old(time)).count();
                recent >= self.rules.failures.max(1) as usize
            }
            Phase::HalfOpen { .. } => pass.probe,
            Phase::Open { .. } => false,
        };
        if opens {
            self.enter(Phase::Open {
                until: now + self.rules.cooldown,
            });
        }
    }

    /// Nothing was learned about the model: the next one may try.
    pub fn abandoned(&mut self, pass: Pass) {
        if pass.probe
            && pass.period == self.period
            && let Phase::HalfOpen { probing } = &mut self.phase
        {
            *probing = false;
        }
    }

    /// Whoever tried the model will not be heard of again.
    fn give_up_probe(&mut self) {
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

    fn go(breaker: &mut Breaker, now: u64) -> Pass {
        match breaker.admit(S(now)) {
            Admission::Go(pass) => pass,
            other => panic!("{other:?} at {now}"),
        }
    }

    #[test]
    fn three_failures_in_a_minute_open_it_and_one_probe_decides() {
        let mut breaker = Breaker::new(BreakerRules::default());
        for now in [0, 10, 61] {
            let pass = go(&mut breaker, now);
            breaker.failed(pass, S(now));
        }
        assert_eq!(
            breaker.state(S(61)),
            BreakerState::Closed,
            "the first is forgotten"
        );
        let stale = go(&mut breaker, 62);
        let pass = go(&mut breaker, 62);
        breaker.failed(pass, S(62));
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
        // What a former probe hears later counts like anybody's word.
        for _ in 0..3 {
            breaker.failed(probe, S(312));
        }
        assert_eq!(breaker.state(S(312)), BreakerState::Open);
    }

    /// What happens to a breaker.
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
        fn any_sequence_keeps_the_rules(acts in acts(), threshold in 1u32..5) {
            let rules = BreakerRules { failures: threshold, ..BreakerRules::default() };
            let mut breaker = Breaker::new(rules);
            let mut now = Duration::ZERO;
            let mut held: Vec<Pass> = Vec::new();
            // When it opened last; failures while closed.
            let mut opened: Option<Duration> = None;
            let mut failures: Vec<Duration> = Vec::new();
            for act in acts {
                let before = breaker.state(now);
                match act {
                    Act::Wait(seconds) => now += S(seconds),
                    Act::Admit => match breaker.admit(now) {
                        Admission::Go(pass) => {
                            prop_assert_ne!(before, BreakerState::Open);
                            prop_assert_eq!(pass.is_probe(), before == BreakerState::HalfOpen);
                            if pass.is_probe() {
                                let probes = held.iter().filter(|held| held.is_probe() && held.period == pass.period);
                                prop_assert_eq!(probes.count(), 0, "one probe at a time");
                            }
                            held.push(pass);
                        }
                        Admission::NotBefore(until) => {
                            prop_assert_eq!(before, BreakerState::Open);
                            prop_assert_eq!(opened.map(|at| at + rules.cooldown), Some(until));
                        }
                        Admission::Probing => {
                            prop_assert!(held.iter().any(|held| held.is_probe() && held.period == breaker.period));
                        }
                    },
                    Act::Succeed(index) => if let Some(pass) = held.get_mut(index) {
                        let decides = pass.is_probe() && pass.period == breaker.period;
                        breaker.succeeded(pass);
                        let after = breaker.state(now);
                        if decides {
                            prop_assert_eq!(after, BreakerState::Closed);
                            failures.clear();
                        } else {
                            prop_assert_eq!(after, before);
                        }
                    },
                    Act::Fail(index) => if let Some(pass) = held.get(index).copied() {
                        let current = pass.period == breaker.period;
                        breaker.failed(pass, now);
                        let after = breaker.state(now);
                        match before {
                            BreakerState::Closed if current => {
                                failures.push(now);
                                failures.retain(|at| *at + rules.window > now);
                                let opens = failures.len() >= threshold as usize;
                                prop_assert_eq!(after == BreakerState::Open, opens);
                            }
                            BreakerState::HalfOpen if current && pass.is_probe() => {
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
                        let pass = held.swap_remove(index);
                        breaker.abandoned(pass);
                        prop_assert_eq!(breaker.state(now), before);
                    },
                }
            }
            // Whatever happened, a model that is well again is asked again.
            held.drain(..).for_each(|pass| breaker.abandoned(pass));
            let Admission::Go(mut pass) = breaker.admit(now + rules.cooldown) else {
                return Err(TestCaseError::fail("nobody may ask any more"));
            };
            breaker.succeeded(&mut pass);
            prop_assert_eq!(breaker.state(now + rules.cooldown), BreakerState::Closed);
        }
    }
}
