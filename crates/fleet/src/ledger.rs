//! The costs of a run, per child and in total, and their limits.

use std::collections::HashMap;

use crate::Micros;

/// The state of the budgets after a cost was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Neither limit is reached.
    Within,
    /// The child has reached its limit.
    ChildSpent,
    /// The run has reached its limit.
    RunSpent,
}

/// The costs of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    run_limit: Option<Micros>,
    run: Micros,
    children: HashMap<String, Micros>,
}

impl Ledger {
    /// Creates an empty ledger with a limit for the whole run.
    pub fn new(run_limit: Option<Micros>) -> Self {
        Self {
            run_limit,
            ..Self::default()
        }
    }

    /// Adds a cost of a child; `limit` is the child's budget.
    pub fn charge(&mut self, child: &str, cost: Micros, limit: Option<Micros>) -> Charge {
        self.run += cost;
        let spent = self.children.entry(child.to_owned()).or_default();
        *spent += cost;
        let child_spent = limit.is_some_and(|limit| *spent >= limit);
        match (self.is_spent(), child_spent) {
            (true, _) => Charge::RunSpent,
            (false, true) => Charge::ChildSpent,
            (false, false) => Charge::Within,
        }
    }

    /// Reports whether the run has reached its limit.
    pub fn is_spent(&self) -> bool {
        self.run_limit.is_some_and(|limit| self.run >= limit)
    }

    /// Returns the cost of all children.
    pub fn total(&self) -> Micros {
        self.run
    }

    /// Returns the cost of one child.
    pub fn of(&self, child: &str) -> Micros {
        self.children.get(child).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits_are_inclusive() {
        let mut ledger = Ledger::new(Some(Micros(100)));
        let limit = Some(Micros(60));
        assert_eq!(ledger.charge("a", Micros(59), limit), Charge::Within);
        assert_eq!(ledger.charge("a", Micros(1), limit), Charge::ChildSpent);
        assert_eq!(ledger.charge("b", Micros(39), limit), Charge::Within);
        assert!(!ledger.is_spent());
        assert_eq!(ledger.charge("b", Micros(1), None), Charge::RunSpent);
        assert!(ledger.is_spent());
        assert_eq!(
            Ledger::new(None).charge("a", Micros(u64::MAX), None),
            Charge::Within
        );
    }

    proptest! {
        #[test]
        fn the_children_add_up_to_the_run(paid in proptest::collection::vec((0u8..4, 0u64..1_000_000), 0..50)) {
            let mut ledger = Ledger::new(None);
            for (child, cost) in &paid {
                ledger.charge(&child.to_string(), Micros(*cost), None);
            }
            let children: Micros = (0..4u8).map(|child| ledger.of(&child.to_string())).sum();
            prop_assert_eq!(children, ledger.total());
            prop_assert_eq!(ledger.total(), Micros(paid.iter().map(|(_, cost)| cost).sum()));
        }
    }
}
