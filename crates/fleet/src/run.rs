//! Executes a run: the children in parallel, then the judge, then the report, which is written in every case.

mod child;
mod context;
mod stop;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_status::{Code, Failure};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{Instrument, error_span, info};

use self::child::run_child;
use self::context::RunContext;
pub use self::stop::{Stop, StopReason};
use crate::journal::{FleetEvent, PlannedChild};
use crate::prompt;
use crate::{
    ChildExit, ChildFailure, ChildPlan, ChildStatus, FailureKind, Micros, Outcome, Plan, Record,
    Report, RunDir, RunState, RunStatus, TaskJob, Tokens,
};

/// The services that a fleet needs from the program around it.
pub trait Host: Send + Sync {
    /// Returns the program that runs children of `agent: pinion`.
    fn program(&self) -> PathBuf;

    /// Returns the price of tokens on a model, if known.
    fn price(&self, model: &str, tokens: &Tokens) -> Option<Micros>;

    /// Masks the API keys known to the program in a text that is written or shown.
    fn mask_secrets(&self, text: &mut String);

    /// Starts a session in this process, which prints to the job's feed. The future completes when the session has ended.
    fn task(&self, job: TaskJob) -> BoxFuture<'static, ChildExit>;
}

/// Receives the events of a run after they were written to the journal.
pub trait Observer: Send + Sync {
    /// Handles a record; `line` is the record as JSON, and `state` the state after it.
    fn notice(&self, record: &Record, line: &[u8], state: &RunState);
}

/// The parts of a run.
pub struct RunOptions {
    /// The run's directory, with the input in it.
    pub directory: RunDir,
    pub plan: Plan,
    /// The directory for children whose plan names none.
    pub working_directory: PathBuf,
    pub host: Arc<dyn Host>,
    pub observers: Vec<Box<dyn Observer>>,
    /// Ends the run early.
    pub stop: Stop,
    /// The file with the breakers of all runs, if this run shares them.
    pub shared_breakers: Option<PathBuf>,
    /// The start of the run's time limit.
    pub begun: std::time::Instant,
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Runs a plan in a new directory to its end.
pub async fn start(options: RunOptions) -> Result<Report, Failure> {
    options.directory.save_plan(&options.plan)?;
    let context = RunContext::new(options)?;
    let plan = &context.plan;
    let planned = |child: &ChildPlan| PlannedChild {
        name: child.name.clone(),
        agent: child.agent,
        isolation: child.isolation,
        tier: child.tier.clone(),
    };
    context.record(FleetEvent::RunStarted {
        run: context.directory.id(),
        plan: plan.name.clone(),
        children: plan
            .children
            .iter()
            .chain(&plan.judge)
            .map(planned)
            .collect(),
        budget_micros: plan.budget,
    });
    execute(context).await
}

/// Continues a run. Finished children retain their results and all others run again. If any of them runs again, so does
/// the judge, because its answer was based on other results.
pub async fn resume(options: RunOptions) -> Result<Report, Failure> {
    let context = RunContext::new(options)?;
    if context.with_state(|state| state.children.is_empty()) {
        let message = format!(
            "{}: the start of the journal is missing, so the run cannot be resumed; start a new one with `pinion fleet run`",
            context.directory.path().display()
        );
        return Err(Failure::new(Code::DataLoss, message));
    }
    let open = context.with_state(|state| {
        let children = state.children.iter();
        let open = children.filter(|child| child.status != ChildStatus::Finished);
        let mut open: Vec<String> = open.map(|child| child.planned.name.clone()).collect();
        let judge = context.plan.judge.as_ref().map(|judge| &judge.name);
        open.extend(
            judge
                .filter(|judge| !open.is_empty() && !open.contains(judge))
                .cloned(),
        );
        open
    });
    context.record(FleetEvent::RunResumed { children: open });
    context.record_damage();
    execute(context).await
}

async fn execute(context: Arc<RunContext>) -> Result<Report, Failure> {
    let id = context.directory.id();
    let span = error_span!("fleet", id, plan = context.plan.name.as_str());
    execute_in_span(context).instrument(span).await
}

async fn execute_in_span(context: Arc<RunContext>) -> Result<Report, Failure> {
    let clock = tokio::spawn(context.clone().watch_time());
    run_children(&context).await;
    if let Some(judge) = context.plan.judge.clone()
        && !context.is_finished(&judge.name)
    {
        judge_all(&context, judge).await;
    }
    clock.abort();
    let (status, exit_code) = verdict(&context);
    info!(outcome = status.as_str(), "fleet ended");
    context.record(FleetEvent::RunEnded { status, exit_code });
    let report = context.report();
    context.directory.save_report(&report)?;
    match context.journal_failure() {
        Some(failure) => Err(failure),
        None => Ok(report),
    }
}

async fn run_children(context: &Arc<RunContext>) {
    let slots = Arc::new(Semaphore::new(context.plan.parallel));
    let mut running = JoinSet::new();
    for child in &context.plan.children {
        if context.is_finished(&child.name) {
            continue;
        }
        let (context, slots) = (Arc::clone(context), Arc::clone(&slots));
        let child = Arc::new(child.clone());
        let work = async move {
            let slot = tokio::select! {
                biased;
                () = context.stop.stopped() => None,
                slot = slots.acquire_owned() => slot.ok(),
            };
            match slot {
                Some(_slot) => run_child(&context, &child, None).await,
                None => context.record_not_started(&child.name),
            }
        };
        running.spawn(work.in_current_span());
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            context.stop.set(StopReason::Interrupted);
        }
    }
    context.fail_lost_children();
}

async fn judge_all(context: &Arc<RunContext>, judge: ChildPlan) {
    if context.stop.reason().is_some() {
        return context.record_not_started(&judge.name);
    }
    let (results, any) = context.with_state(results);
    if !any {
        let message = "no child finished, so there is nothing to judge";
        let failure = ChildFailure::new(FailureKind::Aborted, message);
        return context.record_child_end(&judge.name, Outcome::Failed, Some(failure), None, None);
    }
    // The prompt can contain the results themselves, so a missing file is not fatal.
    let _ = context.directory.write("results.md", results.as_bytes());
    let mut judge = judge;
    if !prompt::uses(&judge.prompt, "results") && !prompt::uses(&judge.prompt, "results_path") {
        judge.prompt.push_str("\n\n{{ results }}");
    }
    run_child(context, &Arc::new(judge), Some(results)).await;
    context.fail_lost_children();
}

/// Formats the results for the judge, and reports whether there are any.
fn results(state: &RunState) -> (String, bool) {
    let mut text = String::new();
    let mut any = false;
    for child in &state.children {
        if child.planned.name == crate::plan::JUDGE {
            continue;
        }
        text.push_str(&format!("## {}\n\n", child.planned.name));
        match (&child.failure, &child.output, &child.result) {
            (Some(failure), ..) => text.push_str(&format!("(no result: {failure})")),
            (None, Some(output), _) => {
                any = true;
                text.push_str(&format!("```json\n{output:#}\n```"));
            }
            (None, None, Some(result)) => {
                any = true;
                text.push_str(result.trim());
            }
            (None, None, None) => {
                any |= child.status == ChildStatus::Finished;
                text.push_str("(no result)");
            }
        }
        text.push_str("\n\n");
    }
    (text, any)
}

/// Returns the final status and the exit code.
fn verdict(context: &RunContext) -> (RunStatus, u8) {
    match context.stop.reason() {
        Some(StopReason::Interrupted) => return (RunStatus::Interrupted, 130),
        Some(StopReason::Timeout) => return (RunStatus::Timeout, 124),
        Some(StopReason::Budget) => return (RunStatus::Budget, 5),
        None => {}
    }
    let (failed, spent) = context.with_state(|state| {
        let failures = state
            .children
            .iter()
            .filter(|child| child.status != ChildStatus::Finished);
        let kinds: Vec<_> = failures
            .map(|child| child.failure.as_ref().map(|f| f.kind))
            .collect();
        (
            !kinds.is_empty(),
            kinds.contains(&Some(FailureKind::Budget)),
        )
    });
    match (failed, spent) {
        (_, true) => return (RunStatus::Budget, 5),
        (true, false) => return (RunStatus::Failed, 1),
        (false, false) => {}
    }
    let report = context.report();
    let rule = context.plan.verdict.as_ref();
    let Some(rule) = rule else {
        return (RunStatus::Finished, 0);
    };
    let mut known = rule.exit.iter();
    match known.find(|(name, _)| report.verdict.as_ref() == Some(name)) {
        Some((_, 0)) => (RunStatus::Finished, 0),
        Some((_, code)) => (RunStatus::Judged, *code),
        // A missing or unknown verdict must not count as approval.
        None => (RunStatus::Failed, 1),
    }
}
