//! Fleets: runs a set of child agents in parallel and writes one report.
//!
//! A plan names children: pinion itself, or any program that prints lines of JSON. Each child runs as a process or as a
//! task. Every line it prints is logged, parsed as it arrives, and translated into one small set of events
//! ([`ChildEvent`]). Retries, circuit breakers, failback to other models, budgets and timeouts work on these events, and
//! a report is always written.
//!
//! Every event of a run is written to its journal before observers receive it. State and report are computed from the
//! journal alone, so a run that was killed can be shown and resumed. The binary contributes command lines, the terminal
//! and sessions of pinion.

mod adapter;
mod adapters;
mod attempt;
mod breaker;
mod chain;
mod classify;
mod clocks;
mod consume;
mod event;
mod failure;
mod input;
mod journal;
mod launch;
mod ledger;
mod lenient;
mod log;
mod mask;
mod money;
mod past_runs;
mod peek;
mod plan;
mod prompt;
mod repair;
mod report;
mod run;
mod rundir;
mod schema;
mod state;
mod structured;
mod task;

pub use pinion_jsonl::Feed;
pub use pinion_status::{Code, Failure};

pub use adapter::{Adapter, AgentKind, Reading};
pub use breaker::{Admission, Breaker, BreakerRules, BreakerState, Permit};
pub use chain::{Breakers, Chain, Choice};
pub use classify::{classify_status, classify_text};
pub use clocks::{ClockReadings, Clocks};
pub use consume::{Consumer, Counts, LINE_LIMIT};
pub use event::{ChildEvent, ChildExit, Effect, FinishReason, Step, Text, Tokens, ToolPhase};
pub use failure::{ChildFailure, FailureKind, TimeoutClock};
pub use input::{check_input, keep_input};
pub use journal::{FleetEvent, Journal, JournalContents, Outcome, Record};
pub use ledger::{Charge, Ledger};
pub use log::BatchLog;
pub use money::Micros;
pub use plan::{
    Budget, ChildPlan, Failback, Isolation, JsonlRules, OutputFormat, Plan, PlanError, Problem,
    Sharing, Verdict, read_plan,
};
pub use report::{ChildReport, Report, RunStatus};
pub use run::{Host, Observer, RunOptions, Stop, StopReason, resume, start};
pub use rundir::RunDir;
pub use schema::report_schema_text;
pub use state::{ChildState, ChildStatus, RunState};
pub use task::{TaskJob, refusal_lines};
