//! The state of a run, computed from its journal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::{FleetEvent, Outcome, PlannedChild, Priced, Record};
use crate::{
    BreakerState, ChildFailure, ClockReadings, Counts, FinishReason, Micros, RunDir, RunStatus,
    Tokens,
};

/// The status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildStatus {
    /// It has not started.
    #[default]
    Waiting,
    /// It runs, or ran when the journal ended.
    Running,
    /// It completed its work.
    Finished,
    /// It failed.
    Failed,
    /// The run ended before the child did.
    Stopped,
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepState {
    pub reason: FinishReason,
    pub tokens: Tokens,
    /// The cost in millionths of a dollar.
    pub cost_micros: Micros,
    pub priced: Priced,
}

/// One attempt of a child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptState {
    /// The number of the attempt, from 1; a resumed run continues the numbers.
    pub attempt: u32,
    /// The model; absent if the agent chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The result; absent if the attempt was killed together with the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The cause, unless the attempt finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChildFailure>,
    /// Every request to a model.
    pub steps: Vec<StepState>,
    /// The child may have changed files or other state outside of itself.
    pub changed: bool,
    /// Counts of the printed lines.
    pub printed: Counts,
    /// The times of the last output, event and progress.
    pub clocks: ClockReadings,
    /// The duration of the attempt.
    pub duration_ms: u64,
    /// The log of the output, relative to the run's directory.
    pub log: String,
    /// The child's own name for its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A child and all its attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildState {
    pub planned: PlannedChild,
    pub status: ChildStatus,
    pub attempts: Vec<AttemptState>,
    /// The cause, unless the child finished.
    pub failure: Option<ChildFailure>,
    /// The child's answer.
    pub result: Option<String>,
    /// The child's answer as JSON.
    pub output: Option<Value>,
    /// The last tool that the child used.
    pub last_tool: Option<String>,
    /// The time without output, if the last event reported one.
    pub quiet_seconds: Option<u64>,
}

impl ChildState {
    /// Returns the tokens of all its requests.
    pub fn tokens(&self) -> Tokens {
        let mut tokens = Tokens::default();
        self.steps().for_each(|step| tokens.add(&step.tokens));
        tokens
    }

    /// Returns the cost of all its requests.
    pub fn cost(&self) -> Micros {
        self.steps().map(|step| step.cost_micros).sum()
    }

    /// Returns every request of every attempt.
    pub fn steps(&self) -> impl Iterator<Item = &StepState> {
        self.attempts.iter().flat_map(|attempt| &attempt.steps)
    }

    /// Returns the model of the last attempt.
    pub fn model(&self) -> Option<&str> {
        self.attempts
            .last()
            .and_then(|attempt| attempt.model.as_deref())
    }
}

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// The run's id.
    pub run: String,
    /// The plan's name.
    pub plan: String,
    /// The start of the run in UTC.
    pub started: String,
    /// The time of the last event in UTC.
    pub last: String,
    /// The children in the order of the plan, the judge last.
    pub children: Vec<ChildState>,
    /// The breakers that changed their state, by model.
    pub breakers: BTreeMap<String, BreakerState>,
    /// Problems that did not stop the run.
    pub warnings: Vec<String>,
    /// The budget of the whole run.
    pub budget: Option<Micros>,
    /// The final status and exit code of a run that has ended.
    pub ended: Option<(RunStatus, u8)>,
    /// The number of times that the run was resumed.
    pub resumed: u32,
}

impl RunState {
    /// Computes the state after these records.
    pub fn from_records(records: &[Record]) -> Self {
        let mut state = Self::default();
        records.iter().for_each(|record| state.apply(record));
        state
    }

    pub fn child(&self, name: &str) -> Option<&ChildState> {
        self.children
            .iter()
            .find(|child| child.planned.name == name)
    }

    /// Returns the cost of all requests.
    pub fn cost(&self) -> Micros {
        self.children.iter().map(ChildState::cost).sum()
    }

    /// Applies one more record.
    pub fn apply(&mut self, record: &Record) {
        self.last.clone_from(&record.time);
        match &record.event {
            FleetEvent::RunStarted {
                run,
                plan,
                children,
                budget_micros,
            } => {
                self.run.clone_from(run);
                self.plan.clone_from(plan);
                self.started.clone_from(&record.time);
                self.budget = *budget_micros;
                self.children = children.iter().cloned().map(waiting).collect();
            }
            FleetEvent::RunResumed { children } => {
                self.ended = None;
                self.resumed += 1;
                for child in &mut self.children {
                    if children.contains(&child.planned.name) {
                        child.status = ChildStatus::Waiting;
                        child.failure = None;
                        child.result = None;
                        child.output = None;
                    }
                }
            }
            FleetEvent::Breaker { model, state } => {
                self.breakers.insert(model.clone(), *state);
            }
            FleetEvent::Warning { message } => self.warnings.push(message.clone()),
            FleetEvent::RunEnded { status, exit_code } => self.ended = Some((*status, *exit_code)),
            FleetEvent::ChildStarted { child, .. }
            | FleetEvent::ChildTool { child, .. }
            | FleetEvent::ChildStep { child, .. }
            | FleetEvent::ChildQuiet { child, .. }
            | FleetEvent::AttemptEnded { child, .. }
            | FleetEvent::ChildEnded { child, .. } => {
                let mut children = self.children.iter_mut();
                if let Some(child) = children.find(|state| state.planned.name == *child) {
                    child.apply(&record.event);
                }
            }
        }
    }
}

fn waiting(planned: PlannedChild) -> ChildState {
    ChildState {
        planned,
        status: ChildStatus::Waiting,
        attempts: Vec::new(),
        failure: None,
        result: None,
        output: None,
        last_tool: None,
        quiet_seconds: None,
    }
}

impl ChildState {
    fn apply(&mut self, event: &FleetEvent) {
        self.quiet_seconds = None;
        match event {
            FleetEvent::ChildStarted { attempt, model, .. } => {
                let log = RunDir::log_name(&self.planned.name, *attempt);
                self.status = ChildStatus::Running;
                self.last_tool = None;
                self.attempts.push(AttemptState {
                    attempt: *attempt,
                    model: model.clone(),
                    log,
                    ..AttemptState::default()
                });
            }
            FleetEvent::ChildTool { tool, .. } => self.last_tool = Some(tool.clone()),
            FleetEvent::ChildStep {
                reason,
                tokens,
                cost_micros,
                priced,
                ..
            } => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.steps.push(StepState {
                        reason: *reason,
                        tokens: *tokens,
                        cost_micros: *cost_micros,
                        priced: *priced,
                    });
                }
            }
            FleetEvent::ChildQuiet { seconds, .. } => self.quiet_seconds = Some(*seconds),
            FleetEvent::AttemptEnded {
                outcome,
                failure,
                changed,
                printed,
                clocks,
                duration_ms,
                log,
                session,
                ..
            } => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.outcome = Some(*outcome);
                    attempt.failure.clone_from(failure);
                    attempt.changed = *changed;
                    attempt.printed = *printed;
                    attempt.clocks = *clocks;
                    attempt.duration_ms = *duration_ms;
                    attempt.log.clone_from(log);
                    attempt.session.clone_from(session);
                }
            }
            FleetEvent::ChildEnded {
                outcome,
                failure,
                result,
                output,
                ..
            } => {
                self.status = match outcome {
                    Outcome::Finished => ChildStatus::Finished,
                    Outcome::Failed => ChildStatus::Failed,
                    Outcome::Stopped => ChildStatus::Stopped,
                };
                self.failure.clone_from(failure);
                self.result.clone_from(result);
                self.output.clone_from(output);
            }
            _ => {}
        }
    }
}
