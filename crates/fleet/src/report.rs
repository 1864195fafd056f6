//! The report of a run, for programs (`report.json`) and for people (`report.md`).

mod markdown;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::{AttemptState, ChildState, ChildStatus, RunState};
use crate::{AgentKind, BreakerState, ChildFailure, Isolation, Micros, Tokens};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has not.
    Running,
    /// Its process ended without an end of the run.
    Killed,
    /// All children finished.
    Finished,
    /// All children finished, and the judge gave a verdict whose exit code is not 0.
    Judged,
    /// Some child failed, or the judge gave no verdict.
    Failed,
    /// The money was spent.
    Budget,
    /// The time was up.
    Timeout,
    /// Somebody stopped it.
    Interrupted,
}

impl RunStatus {
    /// The word for people.
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
    /// How it ended.
    pub status: RunStatus,
    /// The exit code; missing if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// When it began, in UTC.
    pub started_at: String,
    /// When anything last happened.
    pub ended_at: String,
    /// How often it was resumed.
    pub resumed: u32,
    /// The children in the order of the plan.
    pub children: Vec<ChildReport>,
    /// Who saw all results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<ChildReport>,
    /// What the judge decided, where the plan asks for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What all requests of all children took together.
    pub total_tokens: Tokens,
    /// What all requests of all children cost together.
    pub total_cost_micros: Micros,
    /// Money for everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_micros: Option<Micros>,
    /// Models whose breaker did anything, and what it is now.
    pub breakers: Vec<BreakerReport>,
    /// What was not as it should have been.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

/// A breaker at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BreakerReport {
    /// The model.
    pub model: String,
    /// Its breaker.
    pub state: BreakerState,
}

/// The report of a child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub agent: AgentKind,
    /// Where it ran.
    pub isolation: Isolation,
    /// The tier of its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The model of its last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it ended.
    pub status: ChildStatus,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChildFailure>,
    /// Every attempt, with the usage and cost of every step.
    pub attempts: Vec<AttemptState>,
    /// What all its steps took together.
    pub total_tokens: Tokens,
    /// What all its steps cost together.
    pub total_cost_micros: Micros,
    /// How long its attempts took together.
    pub total_duration_ms: u64,
    /// Its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Its answer as JSON, where the plan asks for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl Report {
    /// How the run ended, in one word for people: the verdict where one was given.
    pub fn ending(&self) -> &str {
        match (&self.verdict, self.status) {
            (Some(verdict), RunStatus::Finished | RunStatus::Judged) => verdict,
            (_, status) => status.as_str(),
        }
    }

    /// The report of a run in this state. `judge` and `verdict_field` are the plan's.
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

    /// How it ended in a few words: the verdict if there is one, and how many children finished.
    pub fn headline(&self) -> String {
        markdown::headline(self)
    }

    /// The report as text for a merge request.
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
