//! Who watches an attempt for the run: breakers, money, the journal.

use std::time::Duration;

use super::StopReason;
use super::shared::Shared;
use crate::attempt::Watcher;
use crate::journal::{FleetEvent, Priced};
use crate::plan::Failback;
use crate::{
    Chain, Charge, ChildEvent, ChildFailure, ChildPlan, ChildStatus, Effect, FailureKind, Micros,
    Pass, Reason, Step, ToolPhase,
};

/// Watches an attempt for the run: breakers, money, the journal.
pub(super) struct Eyes<'a> {
    pub shared: &'a Shared,
    pub child: &'a ChildPlan,
    pub chain: &'a Chain,
    pub index: usize,
    pub attempt: u32,
    pub model: Option<&'a str>,
    pub pass: Pass,
    pub steps: u32,
    /// Whether the last answer was complete.
    pub complete: bool,
    pub may_repeat: bool,
}

impl Watcher for Eyes<'_> {
    fn notice(&mut self, event: &ChildEvent) -> Option<ChildFailure> {
        match event {
            ChildEvent::Tool {
                name,
                phase,
                effect,
            } => {
                self.may_repeat &=
                    *effect == Effect::None || self.child.failback == Failback::Always;
                if *phase != ToolPhase::Ended {
                    self.shared.tell(FleetEvent::ChildTool {
                        child: self.child.name.clone(),
                        attempt: self.attempt,
                        tool: name.clone(),
                    });
                }
                None
            }
            ChildEvent::StepFinished(step) => self.step(step),
            ChildEvent::Failed(failure) if failure.kind.should_fail_back() => {
                let model = &self.chain.models()[self.index];
                self.shared.model_failed(model, self.pass);
                // The child would try again by itself; another model may do better at once.
                let moves = self.may_repeat
                    && self.child.failback != Failback::Never
                    && self.shared.has_better(self.chain, self.index);
                moves.then(|| failure.clone())
            }
            _ => None,
        }
    }

    fn quiet(&mut self, time: Duration) {
        self.shared.tell(FleetEvent::ChildQuiet {
            child: self.child.name.clone(),
            attempt: self.attempt,
            seconds: time.as_secs(),
        });
    }
}

impl Eyes<'_> {
    fn step(&mut self, step: &Step) -> Option<ChildFailure> {
        if !matches!(step.reason, Reason::Error | Reason::Aborted) {
            self.answered();
        }
        let (cost, priced) = self.price(step);
        let (charge, child_total_micros, run_total_micros) = self.shared.charge(self.child, cost);
        self.steps += 1;
        self.shared.tell(FleetEvent::ChildStep {
            child: self.child.name.clone(),
            attempt: self.attempt,
            step: self.steps,
            reason: step.reason,
            tokens: step.tokens,
            cost_micros: cost,
            priced,
            child_total_micros,
            run_total_micros,
        });
        // What is complete is not thrown away for having been dear, nor for what is tidied up after it.
        if step.reason != Reason::Compaction {
            self.complete = step.reason == Reason::Stop;
        }
        let complete = self.complete;
        match charge {
            Charge::Within => None,
            Charge::ChildSpent if complete => None,
            Charge::ChildSpent => {
                let limit = self.child.budget.unwrap_or_default();
                let message = format!("it has spent {child_total_micros} of {limit}");
                Some(ChildFailure::new(FailureKind::Budget, message))
            }
            Charge::RunSpent => {
                if !complete || self.is_anything_left() {
                    self.shared.stop.set(StopReason::Budget);
                }
                (!complete).then(|| self.shared.stop.failure())
            }
        }
    }

    /// Whether somebody else still has something to do.
    fn is_anything_left(&self) -> bool {
        self.shared.with_state(|state| {
            state.children.iter().any(|child| {
                child.planned.name != self.child.name
                    && matches!(child.status, ChildStatus::Waiting | ChildStatus::Running)
            })
        })
    }

    fn price(&self, step: &Step) -> (Micros, Priced) {
        let known = || {
            self.model
                .and_then(|model| self.shared.host.price(model, &step.tokens))
        };
        match (step.cost, known()) {
            // An agent that knows no prices says nothing or that it was free.
            (Some(cost), _) if cost > Micros::ZERO => (cost, Priced::Reported),
            (_, Some(cost)) => (cost, Priced::Estimated),
            (Some(cost), None) => (cost, Priced::Reported),
            (None, None) => (Micros::ZERO, Priced::Unknown),
        }
    }

    /// The model does what it should, by a step or by all of the work.
    pub fn answered(&mut self) {
        let model = &self.chain.models()[self.index];
        self.shared.model_answered(model, &mut self.pass);
    }

    /// Nobody waits for what this attempt might still learn about its model.
    pub fn close(self) {
        let model = &self.chain.models()[self.index];
        self.shared.pass_returned(model, self.pass);
    }
}
