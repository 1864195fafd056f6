//! What a run is, as its journal tells it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::{FleetEvent, Outcome, Planned, Priced, Record};
use crate::{
    BreakerState, ChildFailure, ClockReadings, Counts, Micros, Reason, RunDir, RunStatus, Tokens,
};

/// Where a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildStatus {
    /// It has not begun.
    #[default]
    Waiting,
    /// It runs, or ran when the journal ends.
    Running,
    /// It did what it was asked.
    Finished,
    /// It did not.
    Failed,
    /// The run ended before it did.
    Stopped,
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepState {
    /// Why the answer ended.
    pub reason: Reason,
    /// What it took.
    pub tokens: Tokens,
    /// What it cost.
    pub cost_micros: Micros,
    /// Whether anybody knows that.
    pub priced: Priced,
}

/// One attempt of a child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptState {
    /// Counts from 1 over the life of the run.
    pub attempt: u32,
    /// On which model; missing where the agent chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it ended; missing if it was killed with the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChildFailure>,
    /// Every request to a model.
    pub steps: Vec<StepState>,
    /// Whether it may have changed something outside.
    pub changed: bool,
    /// What it printed.
    pub printed: Counts,
    /// When it was last heard of.
    pub clocks: ClockReadings,
    /// How long it took.
    pub duration_ms: u64,
    /// The file with what it printed, in the run's directory.
    pub log: String,
    /// What the child calls its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A child and all its attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildState {
    /// What the plan says.
    pub planned: Planned,
    /// Where it is.
    pub status: ChildStatus,
    /// Every attempt.
    pub attempts: Vec<AttemptState>,
    /// Why it failed.
    pub failure: Option<ChildFailure>,
    /// Its answer.
    pub result: Option<String>,
    /// Its answer as JSON.
    pub output: Option<Value>,
    /// The last tool it used.
    pub last_tool: Option<String>,
    /// For how long nothing came, if it is long.
    pub quiet_seconds: Option<u64>,
}

impl ChildState {
    /// What all its requests took.
    pub fn tokens(&self) -> Tokens {
        let mut tokens = Tokens::default();
        self.steps().for_each(|step| tokens.add(&step.tokens));
        tokens
    }

    /// What all its requests cost.
    pub fn cost(&self) -> Micros {
        self.steps().map(|step| step.cost_micros).sum()
    }

    /// Every request of every attempt.
    pub fn steps(&self) -> impl Iterator<Item = &StepState> {
        self.attempts.iter().flat_map(|attempt| &attempt.steps)
    }

    /// The model of the last attempt.
    pub fn model(&self) -> Option<&str> {
        self.attempts
            .last()
            .and_then(|attempt| attempt.model.as_deref())
    }
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// Its id.
    pub run: String,
    /// Its plan.
    pub plan: String,
    /// When it began.
    pub started: String,
    /// When anything last happened.
    pub last: String,
    /// The children in the order of the plan, the judge last.
    pub children: Vec<ChildState>,
    /// The breakers that ever did anything.
    pub breakers: BTreeMap<String, BreakerState>,
    /// What was not as it should have been.
    pub warnings: Vec<String>,
    /// Money for everything.
    pub budget: Option<Micros>,
    /// How it ended, if it did.
    pub ended: Option<(RunStatus, u8)>,
    /// How often it was resumed.
    pub resumed: u32,
}

impl RunState {
    /// The state these records lead to.
    pub fn from_records(records: &[Record]) -> Self {
        let mut state = Self::default();
        records.iter().for_each(|record| state.apply(record));
        state
    }

    /// The child of this name.
    pub fn child(&self, name: &str) -> Option<&ChildState> {
        self.children
            .iter()
            .find(|child| child.planned.name == name)
    }

    /// What all requests cost.
    pub fn cost(&self) -> Micros {
        self.children.iter().map(ChildState::cost).sum()
    }

    /// Takes one more record.
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

fn waiting(planned: Planned) -> ChildState {
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
