//! The report of a run: `report.json` for programs and `report.md` for people.

mod markdown;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::{AttemptState, ChildState, ChildStatus, RunState};
use crate::{AgentKind, BreakerState, ChildFailure, Isolation, Micros, Tokens};

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run has not ended.
    Running,
    /// The fleet's process ended before the run did.
    Killed,
    /// All children finished.
    Finished,
    /// All children finished, and the judge gave a verdict whose exit code is not 0.
    Judged,
    /// Some child failed, or the judge gave no verdict.
    Failed,
    /// The budget of the run or of a child was spent.
    Budget,
    /// The run reached its timeout.
    Timeout,
    /// A signal stopped the run.
    Interrupted,
}

impl RunStatus {
    /// Returns the status as shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Killed => "killed",
            Self::Judged => "judged",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Budget => "budget spent",
            Self::Timeout => "timed out",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The run's id.
    pub run: String,
    /// The plan's name.
    pub plan: String,
    pub status: RunStatus,
    /// The exit code; absent if the run has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The start of the run in UTC.
    pub started_at: String,
    /// The time of the last event in UTC.
    pub ended_at: String,
    /// The number of times that the run was resumed.
    pub resumed: u32,
    /// The children in the order of the plan.
    pub children: Vec<ChildReport>,
    /// The child that received all results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<ChildReport>,
    /// The judge's decision, if the plan defines a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The tokens of all requests of all children.
    pub total_tokens: Tokens,
    /// The cost of all requests of all children, in millionths of a dollar.
    pub total_cost_micros: Micros,
    /// The budget of the whole run, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_micros: Option<Micros>,
    /// The models whose breaker changed its state, and its last state.
    pub breakers: Vec<BreakerReport>,
    /// Problems that did not stop the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

/// The last state of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BreakerReport {
    pub model: String,
    pub state: BreakerState,
}

/// The report of a child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildReport {
    pub name: String,
    /// The program that the child ran.
    pub agent: AgentKind,
    pub isolation: Isolation,
    /// The tier of its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The model of its last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub status: ChildStatus,
    /// The cause, unless the child finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChildFailure>,
    /// Every attempt, with the usage and cost of every step.
    pub attempts: Vec<AttemptState>,
    /// The tokens of all its steps.
    pub total_tokens: Tokens,
    /// The cost of all its steps, in millionths of a dollar.
    pub total_cost_micros: Micros,
    /// The duration of all its attempts.
    pub total_duration_ms: u64,
    /// The child's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The child's answer as JSON, if the plan requires JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl Report {
    /// Returns the verdict, or the status if there is none, as shown to users.
    pub fn ending(&self) -> &str {
        match (&self.verdict, self.status) {
            (Some(verdict), RunStatus::Finished | RunStatus::Judged) => verdict,
            (_, status) => status.as_str(),
        }
    }

    /// Creates the report of a run in this state; `judge` and `verdict_field` come from the plan.
    pub fn new(state: &RunState, judge: Option<&str>, verdict_field: Option<&str>) -> Self {
        let (status, exit_code) = match state.ended {
            Some((status, code)) => (status, Some(code)),
            None => (RunStatus::Running, None),
        };
        let mut children: Vec<ChildReport> = state.children.iter().map(ChildReport::new).collect();
        let judge = match judge {
            Some(name) if children.last().is_some_and(|last| last.name == name) => children.pop(),
            _ => None,
        };
        let decided = judge.as_ref().and_then(|judge| judge.output.as_ref());
        let verdict = decided.zip(verdict_field).and_then(|(output, field)| {
            let value = output.get(field)?;
            Some(
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        });
        let mut total_tokens = Tokens::default();
        state
            .children
            .iter()
            .for_each(|child| total_tokens.add(&child.tokens()));
        let breakers = state.breakers.iter().map(|(model, state)| BreakerReport {
            model: model.clone(),
            state: *state,
        });
        Self {
            run: state.run.clone(),
            plan: state.plan.clone(),
            status,
            exit_code,
            started_at: state.started.clone(),
            ended_at: state.last.clone(),
            resumed: state.resumed,
            children,
            judge,
            verdict,
            total_tokens,
            total_cost_micros: state.cost(),
            budget_micros: state.budget,
            breakers: breakers.collect(),
            warnings: state.warnings.clone(),
        }
    }

    /// Returns the verdict or status, and the number of children that finished.
    pub fn headline(&self) -> String {
        markdown::headline(self)
    }

    /// Returns the report as Markdown for a merge request.
    pub fn markdown(&self) -> String {
        markdown::print(self)
    }
}

impl ChildReport {
    fn new(state: &ChildState) -> Self {
        Self {
            name: state.planned.name.clone(),
            agent: state.planned.agent,
            isolation: state.planned.isolation,
            tier: state.planned.tier.clone(),
            model: state.model().map(str::to_owned),
            status: state.status,
            failure: state.failure.clone(),
            attempts: state.attempts.clone(),
            total_tokens: state.tokens(),
            total_cost_micros: state.cost(),
            total_duration_ms: state
                .attempts
                .iter()
                .map(|attempt| attempt.duration_ms)
                .sum(),
            result: state.result.clone(),
            output: state.output.clone(),
        }
    }
}
