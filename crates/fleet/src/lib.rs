//! Many child agents, one report.
//!
//! A plan names children: ourselves, or any program that prints lines of JSON. Each runs as a process or as a task, every
//! line it prints is kept and read as it arrives, and what it means is said in one small set of events ([`ChildEvent`]).
//! On these stand retries, circuit breakers, failback to other models, budgets, clocks, and a report that is always written.
//!
//! What is said about a run is in its journal first; state and report follow from the journal alone, so that a run that was
//! killed can be shown and resumed. Command lines, the terminal and how one of our own sessions is made are left to the binary.

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
mod feed;
mod journal;
mod launch;
mod ledger;
mod lenient;
mod log;
mod mend;
mod money;
mod peek;
mod plan;
mod prompt;
mod report;
mod run;
mod rundir;
mod schema;
mod state;
mod structured;
mod veil;

pub use pinion_status::{Code, Failure};

pub use adapter::{Adapter, AgentKind, Reading};
pub use breaker::{Admission, Breaker, BreakerRules, BreakerState, Pass};
pub use chain::{Breakers, Chain, Choice};
pub use classify::{from_status, from_text};
pub use clocks::{ClockReadings, Clocks};
pub use consume::{Consumer, Counts, LINE_LIMIT};
pub use event::{ChildEvent, Effect, Ending, Reason, Step, Text, Tokens, ToolPhase};
pub use failure::{ChildFailure, Clock, FailureKind};
pub use feed::Feed;
pub use journal::{Contents, FleetEvent, Journal, Outcome, Record};
pub use ledger::{Charge, Ledger};
pub use log::BatchLog;
pub use money::Micros;
pub use plan::{
    Budget, ChildPlan, Failback, Isolation, JsonlRules, Output, Plan, PlanError, Problem, Sharing,
    Verdict, read_plan,
};
pub use report::{ChildReport, Report, RunStatus};
pub use run::{Host, Observer, Options, Stop, StopReason, TaskJob, resume, start};
pub use rundir::RunDir;
pub use schema::report_schema_text;
pub use state::{ChildState, ChildStatus, RunState};
