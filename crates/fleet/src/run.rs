//! A run: children side by side, then the judge, then the report, whatever happens.

mod child;
mod eyes;
mod shared;
mod stop;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_status::{Code, Failure};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::child::run_child;
use self::shared::Shared;
pub use self::stop::{Stop, StopReason};
use crate::journal::{FleetEvent, Planned};
use crate::prompt;
use crate::{
    ChildFailure, ChildPlan, ChildStatus, Ending, FailureKind, Feed, Micros, Outcome, Plan, Record,
    Report, RunDir, RunState, RunStatus, Tokens,
};

/// What a fleet needs of the program it is in.
pub trait Host: Send + Sync {
    /// The program that runs children of `agent: pinion`.
    fn program(&self) -> PathBuf;

    /// What tokens cost on a model, if anybody knows.
    fn price(&self, model: &str, tokens: &Tokens) -> Option<Micros>;

    /// Takes the keys it knows out of a text that is to be told.
    fn hide(&self, text: &mut String);

    /// Starts a session in this process; what it says goes to the job's feed. The future ends when it has.
    fn task(&self, job: TaskJob) -> BoxFuture<'static, Ending>;
}

/// A child that is to run in this process.
#[derive(Debug)]
pub struct TaskJob {
    /// Its name.
    pub child: String,
    /// On which model.
    pub model: Option<String>,
    /// What it is asked.
    pub prompt: String,
    /// More arguments, as on a command line.
    pub args: Vec<String>,
    /// Files that go with the prompt.
    pub files: Vec<PathBuf>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Where its lines go.
    pub feed: Arc<Feed>,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Who watches a run. What is told is in the journal already.
pub trait Observer: Send + Sync {
    /// Something happened; `line` is its record as JSON, and `state` what it led to.
    fn notice(&self, record: &Record, line: &[u8], state: &RunState);
}

/// What a run is made of.
pub struct Options {
    /// Its directory, with the plan and the input in it.
    pub directory: RunDir,
    /// Its plan.
    pub plan: Plan,
    /// Where children run that do not say otherwise.
    pub working_directory: PathBuf,
    /// The program around it.
    pub host: Arc<dyn Host>,
    /// Who watches.
    pub observers: Vec<Box<dyn Observer>>,
    /// Ends it.
    pub stop: Stop,
    /// The file with the breakers of all runs, where this one is to share them.
    pub shared_breakers: Option<PathBuf>,
    /// From when its time counts.
    pub begun: std::time::Instant,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Runs a plan in a new directory to its end.
pub async fn start(options: Options) -> Result<Report, Failure> {
    options.directory.save_plan(&options.plan)?;
    let shared = Shared::new(options)?;
    let plan = &shared.plan;
    let planned = |child: &ChildPlan| Planned {
        name: child.name.clone(),
        agent: child.agent,
        isolation: child.isolation,
        tier: child.tier.clone(),
    };
    shared.tell(FleetEvent::RunStarted {
        run: shared.directory.id(),
        plan: plan.name.clone(),
        children: plan
            .children
            .iter()
            .chain(&plan.judge)
            .map(planned)
            .collect(),
        budget_micros: plan.budget,
    });
    execute(shared).await
}

/// Goes on with a run: children that finished keep their result, all others run again, and the judge if any of them does: what it
/// said was about other results.
pub async fn resume(options: Options) -> Result<Report, Failure> {
    let shared = Shared::new(options)?;
    if shared.with_state(|state| state.children.is_empty()) {
        let message = format!(
            "{}: the journal does not say how the run began; start it anew",
            shared.directory.path().display()
        );
        return Err(Failure::new(Code::DataLoss, message));
    }
    let open = shared.with_state(|state| {
        let children = state.children.iter();
        let open = children.filter(|child| child.status != ChildStatus::Finished);
        let mut open: Vec<String> = open.map(|child| child.planned.name.clone()).collect();
        let judge = shared.plan.judge.as_ref().map(|judge| &judge.name);
        open.extend(
            judge
                .filter(|judge| !open.is_empty() && !open.contains(judge))
                .cloned(),
        );
        open
    });
    shared.tell(FleetEvent::RunResumed { children: open });
    shared.tell_damage();
    execute(shared).await
}

async fn execute(shared: Arc<Shared>) -> Result<Report, Failure> {
    let clock = tokio::spawn(shared.clone().watch_time());
    run_children(&shared).await;
    if let Some(judge) = shared.plan.judge.clone()
        && !shared.is_finished(&judge.name)
    {
        judge_all(&shared, judge).await;
    }
    clock.abort();
    let (status, exit_code) = verdict(&shared);
    shared.tell(FleetEvent::RunEnded { status, exit_code });
    let report = shared.report();
    shared.directory.save_report(&report)?;
    match shared.journal_failure() {
        Some(failure) => Err(failure),
        None => Ok(report),
    }
}

async fn run_children(shared: &Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(shared.plan.parallel));
    let mut running = JoinSet::new();
    for child in &shared.plan.children {
        if shared.is_finished(&child.name) {
            continue;
        }
        let (shared, slots) = (Arc::clone(shared), Arc::clone(&slots));
        let child = Arc::new(child.clone());
        running.spawn(async move {
            let slot = tokio::select! {
                biased;
                () = shared.stop.stopped() => None,
                slot = slots.acquire_owned() => slot.ok(),
            };
            match slot {
                Some(_slot) => run_child(&shared, &child, None).await,
                None => shared.never_started(&child.name),
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            shared.stop.set(StopReason::Interrupted);
        }
    }
    shared.account_for_the_lost();
}

async fn judge_all(shared: &Arc<Shared>, judge: ChildPlan) {
    if shared.stop.reason().is_some() {
        return shared.never_started(&judge.name);
    }
    let (results, any) = shared.with_state(results);
    if !any {
        let message = "no child finished, so there is nothing to judge";
        let failure = ChildFailure::new(FailureKind::Aborted, message);
        return shared.ended(&judge.name, Outcome::Failed, Some(failure), None, None);
    }
    // The judge is given the text itself where the file cannot be had.
    let _ = shared.directory.write("results.md", results.as_bytes());
    let mut judge = judge;
    if !prompt::uses(&judge.prompt, "results") && !prompt::uses(&judge.prompt, "results_path") {
        judge.prompt.push_str("\n\n{{ results }}");
    }
    run_child(shared, &Arc::new(judge), Some(results)).await;
    shared.account_for_the_lost();
}

/// What the judge is shown, and whether there is anything to show.
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

/// How the run ended, and the exit code.
fn verdict(shared: &Shared) -> (RunStatus, u8) {
    match shared.stop.reason() {
        Some(StopReason::Interrupted) => return (RunStatus::Interrupted, 130),
        Some(StopReason::Timeout) => return (RunStatus::Timeout, 124),
        Some(StopReason::Budget) => return (RunStatus::Budget, 5),
        None => {}
    }
    let (failed, spent) = shared.with_state(|state| {
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
    let report = shared.report();
    let rule = shared.plan.verdict.as_ref();
    let Some(rule) = rule else {
        return (RunStatus::Finished, 0);
    };
    let mut known = rule.exit.iter();
    match known.find(|(name, _)| report.verdict.as_ref() == Some(name)) {
        Some((_, 0)) => (RunStatus::Finished, 0),
        Some((_, code)) => (RunStatus::Judged, *code),
        // A missing verdict is not a yes.
        None => (RunStatus::Failed, 1),
    }
}
