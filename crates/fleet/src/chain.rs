//! The models a child may run on, in order, and who of them may be asked now.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Admission, Breaker, BreakerRules, BreakerState, Pass};

/// The breakers of all models, shared by all children.
#[derive(Debug, Default)]
pub struct Breakers {
    rules: BreakerRules,
    breakers: BTreeMap<String, Breaker>,
}

impl Breakers {
    /// None yet; each comes with the first question to its model.
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            breakers: BTreeMap::new(),
        }
    }

    /// The breaker of a model.
    pub fn of(&mut self, model: &str) -> &mut Breaker {
        let rules = self.rules;
        let entry = self.breakers.entry(model.to_owned());
        entry.or_insert_with(|| Breaker::new(rules))
    }

    /// Puts others in their place.
    pub(crate) fn replace(&mut self, breakers: BTreeMap<String, Breaker>) {
        self.breakers = breakers;
    }

    /// Every breaker with its model.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Breaker)> {
        self.breakers
            .iter()
            .map(|(model, breaker)| (model.as_str(), breaker))
    }

    /// The state of every model that was ever asked.
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

/// What a chain says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Ask this one.
    Run {
        /// Its place in the chain.
        index: usize,
        /// The leave to ask it.
        pass: Pass,
    },
    /// All are left alone; ask again at this time, or when a probe has ended.
    Wait {
        /// The earliest time at which one may be tried; `None` while somebody is trying.
        until: Option<Duration>,
    },
}

impl Chain {
    /// A chain of at least one model.
    pub fn new(models: Vec<String>) -> Self {
        Self { models }
    }

    /// The models in order.
    pub fn models(&self) -> &[String] {
        &self.models
    }

    /// The first model at `from` or later that may be asked.
    pub fn choose(&self, breakers: &mut Breakers, from: usize, now: Duration) -> Choice {
        let mut until: Option<Duration> = None;
        for (index, model) in self.models.iter().enumerate().skip(from) {
            match breakers.of(model).admit(now) {
                Admission::Go(pass) => return Choice::Run { index, pass },
                Admission::NotBefore(time) => {
                    until = Some(until.map_or(time, |until| until.min(time)));
                }
                Admission::Probing => {}
            }
        }
        Choice::Wait { until }
    }

    /// Whether a model after `index` could be asked now. Takes nobody's leave.
    pub fn has_better(&self, breakers: &mut Breakers, index: usize, now: Duration) -> bool {
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
            let Choice::Run { index: 0, pass } = chain.choose(&mut breakers, 0, S(now)) else {
                panic!("the first is closed");
            };
            assert!(chain.has_better(&mut breakers, 0, S(now)));
            breakers.of("m0").failed(pass, S(now));
        }
        let Choice::Run { index: 1, pass } = chain.choose(&mut breakers, 0, S(3)) else {
            panic!("the second is closed");
        };
        for _ in 0..3 {
            breakers.of("m1").failed(pass, S(10));
        }
        assert!(!chain.has_better(&mut breakers, 0, S(11)));
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
        /// Children that come and go, on models that fail at random.
        #[test]
        fn nobody_runs_on_an_open_model_and_everybody_gets_one(
            outcomes in proptest::collection::vec((0u8..3, 0u64..50), 1..300),
            count in 1usize..4,
        ) {
            let chain = chain(count);
            let mut breakers = Breakers::new(BreakerRules::default());
            let mut now = Duration::ZERO;
            let mut running: Vec<(usize, Pass)> = Vec::new();
            for (outcome, wait) in outcomes {
                now += S(wait);
                match chain.choose(&mut breakers, 0, now) {
                    Choice::Run { index, pass } => {
                        for earlier in &chain.models()[..index] {
                            let is_open = breakers.of(earlier).state(now) != BreakerState::Closed;
                            prop_assert!(is_open, "an earlier model could have run");
                        }
                        running.push((index, pass));
                    }
                    Choice::Wait { until } => {
                        prop_assert!(until.is_some() || running.iter().any(|(_, pass)| pass.is_probe()));
                        prop_assert!(until.is_none_or(|until| until > now));
                    }
                }
                if running.len() > 4 || outcome == 2 {
                    let Some((index, mut pass)) = running.pop() else { continue };
                    let breaker = breakers.of(&chain.models()[index]);
                    match outcome {
                        0 => breaker.succeeded(&mut pass),
                        1 => breaker.failed(pass, now),
                        _ => breaker.abandoned(pass),
                    }
                }
            }
            for (index, pass) in running {
                breakers.of(&chain.models()[index]).abandoned(pass);
            }
            let chosen = chain.choose(&mut breakers, 0, now + S(120));
            prop_assert!(matches!(chosen, Choice::Run { .. }), "{:?}", chosen);
        }
    }
}
