//! The ordered list of models that a child may use, and the choice among them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Admission, Breaker, BreakerRules, BreakerState, Permit};

/// The breakers of all models, common to all children.
#[derive(Debug, Default)]
pub struct Breakers {
    rules: BreakerRules,
    breakers: BTreeMap<String, Breaker>,
}

impl Breakers {
    /// Creates an empty set; a breaker is added at the first request for its model.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            breakers: BTreeMap::new(),
        }
    }

    /// Returns the breaker of a model, and creates it if necessary.
    pub fn of(&mut self, model: &str) -> &mut Breaker {
        let rules = self.rules;
        let entry = self.breakers.entry(model.to_owned());
        entry.or_insert_with(|| Breaker::new(rules))
    }

    /// Replaces all breakers.
    pub(crate) fn replace(&mut self, breakers: BTreeMap<String, Breaker>) {
        self.breakers = breakers;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Breaker)> {
        self.breakers
            .iter()
            .map(|(model, breaker)| (model.as_str(), breaker))
    }

    /// Returns the state of every model that was requested so far.
    pub fn states(&self, now: Duration) -> Vec<(&str, BreakerState)> {
        let states = self.breakers.iter();
        states
            .map(|(model, breaker)| (model.as_str(), breaker.state(now)))
            .collect()
    }
}

/// An ordered list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    models: Vec<String>,
}

/// The result of choosing a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Use this model.
    Run {
        /// The position in the chain.
        index: usize,
        permit: Permit,
    },
    /// No model is admitted; choose again at this time, or when a probe has ended.
    Wait {
        /// The earliest time at which a model is admitted; `None` while a probe runs.
        until: Option<Duration>,
    },
}

impl Chain {
    /// Creates a chain; `models` has at least one element.
    pub fn new(models: Vec<String>) -> Self {
        Self { models }
    }

    pub fn models(&self) -> &[String] {
        &self.models
    }

    /// Chooses the first admitted model at position `from` or later.
    pub fn choose(&self, breakers: &mut Breakers, from: usize, now: Duration) -> Choice {
        let mut until: Option<Duration> = None;
        for (index, model) in self.models.iter().enumerate().skip(from) {
            match breakers.of(model).admit(now) {
                Admission::Granted(permit) => return Choice::Run { index, permit },
                Admission::NotBefore(time) => {
                    until = Some(until.map_or(time, |until| until.min(time)));
                }
                Admission::Probing => {}
            }
        }
        Choice::Wait { until }
    }

    /// Reports whether a model after `index` would be admitted now, without taking a permit.
    pub fn has_alternative(&self, breakers: &mut Breakers, index: usize, now: Duration) -> bool {
        self.models
            .iter()
            .skip(index + 1)
            .any(|model| breakers.of(model).state(now) != BreakerState::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn chain(count: usize) -> Chain {
        Chain::new((0..count).map(|index| format!("m{index}")).collect())
    }

    #[test]
    fn the_first_that_is_not_open_runs() {
        let chain = chain(2);
        let mut breakers = Breakers::new(BreakerRules::default());
        for now in 0..3 {
            let Choice::Run { index: 0, permit } = chain.choose(&mut breakers, 0, S(now)) else {
                panic!("the first is closed");
            };
            assert!(chain.has_alternative(&mut breakers, 0, S(now)));
            breakers.of("m0").failed(permit, S(now));
        }
        let Choice::Run { index: 1, permit } = chain.choose(&mut breakers, 0, S(3)) else {
            panic!("the second is closed");
        };
        for _ in 0..3 {
            breakers.of("m1").failed(permit, S(10));
        }
        assert!(!chain.has_alternative(&mut breakers, 0, S(11)));
        let wait = Choice::Wait {
            until: Some(S(122)),
        };
        assert_eq!(chain.choose(&mut breakers, 0, S(11)), wait);
        assert!(matches!(
            chain.choose(&mut breakers, 0, S(122)),
            Choice::Run { index: 0, .. }
        ));
        let wait = Choice::Wait {
            until: Some(S(130)),
        };
        assert_eq!(
            chain.choose(&mut breakers, 0, S(123)),
            wait,
            "the first is being tried"
        );
    }

    proptest! {
        /// Children start and end on models that fail at random.
        #[test]
        fn no_child_runs_on_an_open_model_and_each_gets_one(
            outcomes in proptest::collection::vec((0u8..3, 0u64..50), 1..300),
            count in 1usize..4,
        ) {
            let chain = chain(count);
            let mut breakers = Breakers::new(BreakerRules::default());
            let mut now = Duration::ZERO;
            let mut running: Vec<(usize, Permit)> = Vec::new();
            for (outcome, wait) in outcomes {
                now += S(wait);
                match chain.choose(&mut breakers, 0, now) {
                    Choice::Run { index, permit } => {
                        for earlier in &chain.models()[..index] {
                            let is_open = breakers.of(earlier).state(now) != BreakerState::Closed;
                            prop_assert!(is_open, "an earlier model could have run");
                        }
                        running.push((index, permit));
                    }
                    Choice::Wait { until } => {
                        prop_assert!(until.is_some() || running.iter().any(|(_, permit)| permit.is_probe()));
                        prop_assert!(until.is_none_or(|until| until > now));
                    }
                }
                if running.len() > 4 || outcome == 2 {
                    let Some((index, mut permit)) = running.pop() else { continue };
                    let breaker = breakers.of(&chain.models()[index]);
                    match outcome {
                        0 => breaker.succeeded(&mut permit),
                        1 => breaker.failed(permit, now),
                        _ => breaker.abandoned(permit),
                    }
                }
            }
            for (index, permit) in running {
                breakers.of(&chain.models()[index]).abandoned(permit);
            }
            let chosen = chain.choose(&mut breakers, 0, now + S(120));
            prop_assert!(matches!(chosen, Choice::Run { .. }), "{:?}", chosen);
        }
    }
}
