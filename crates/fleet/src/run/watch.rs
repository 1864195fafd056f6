//! Watches an attempt for the run: updates the breakers and the costs, and writes the journal.

use std::time::Duration;

use super::StopReason;
use super::context::RunContext;
use crate::attempt::Watcher;
use crate::journal::{FleetEvent, Priced};
use crate::plan::Failback;
use crate::{
    Chain, Charge, ChildEvent, ChildFailure, ChildPlan, ChildStatus, Effect, FailureKind,
    FinishReason, Micros, Permit, Step, ToolPhase,
};

pub(super) struct AttemptWatch<'a> {
    pub context: &'a RunContext,
    pub child: &'a ChildPlan,
    pub chain: &'a Chain,
    pub index: usize,
    pub attempt: u32,
    pub model: Option<&'a str>,
    pub permit: Permit,
    pub steps: u32,
    /// The last answer was complete.
    pub complete: bool,
    pub may_repeat: bool,
}

impl Watcher for AttemptWatch<'_> {
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
                    self.context.record(FleetEvent::ChildTool {
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
                self.context.model_failed(model, self.permit);
                // The child would retry by itself, but another model may answer at once.
                let moves = self.may_repeat
                    && self.child.failback != Failback::Never
                    && self.context.has_alternative(self.chain, self.index);
                moves.then(|| failure.clone())
            }
            _ => None,
        }
    }

    fn quiet(&mut self, time: Duration) {
        self.context.record(FleetEvent::ChildQuiet {
            child: self.child.name.clone(),
            attempt: self.attempt,
            seconds: time.as_secs(),
        });
    }
}

impl AttemptWatch<'_> {
    fn step(&mut self, step: &Step) -> Option<ChildFailure> {
        if !matches!(step.reason, FinishReason::Error | FinishReason::Aborted) {
            self.answered();
        }
        let (cost, priced) = self.price(step);
        let (charge, child_total_micros, run_total_micros) = self.context.charge(self.child, cost);
        self.steps += 1;
        self.context.record(FleetEvent::ChildStep {
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
        // A complete answer is not discarded because of its cost, nor because of the cost of a compaction after it.
        if step.reason != FinishReason::Compaction {
            self.complete = step.reason == FinishReason::Stop;
        }
        let complete = self.complete;
        match charge {
            Charge::Within => None,
            Charge::ChildSpent if complete => None,
            Charge::ChildSpent => {
                let limit = self.child.budget.unwrap_or_default();
                let message = format!("it has spent {child_total_micros} of its budget of {limit}");
                Some(ChildFailure::new(FailureKind::Budget, message))
            }
            Charge::RunSpent => {
                if !complete || self.is_other_child_unfinished() {
                    self.context.stop.set(StopReason::Budget);
                }
                (!complete).then(|| self.context.stop.failure())
            }
        }
    }

    /// Reports whether another child waits or runs.
    fn is_other_child_unfinished(&self) -> bool {
        self.context.with_state(|state| {
            state.children.iter().any(|child| {
                child.planned.name != self.child.name
                    && matches!(child.status, ChildStatus::Waiting | ChildStatus::Running)
            })
        })
    }

    fn price(&self, step: &Step) -> (Micros, Priced) {
        let known = || {
            self.model
                .and_then(|model| self.context.host.price(model, &step.tokens))
        };
        match (step.cost, known()) {
            // An agent without prices reports no cost or a cost of zero.
            (Some(cost), _) if cost > Micros::ZERO => (cost, Priced::Reported),
            (_, Some(cost)) => (cost, Priced::Estimated),
            (Some(cost), None) => (cost, Priced::Reported),
            (None, None) => (Micros::ZERO, Priced::Unknown),
        }
    }

    /// Reports to the breaker that the model works, after a step or after the whole work.
    pub fn answered(&mut self) {
        let model = &self.chain.models()[self.index];
        self.context.model_answered(model, &mut self.permit);
    }

    /// Returns the permit at the end of the attempt.
    pub fn close(self) {
        let model = &self.chain.models()[self.index];
        self.context.permit_returned(model, self.permit);
    }
}
