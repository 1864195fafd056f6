//! Runs one child: chooses the models of its attempts and decides about retries.

mod attempt_io;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error_span, info};

use super::context::RunContext;
use super::watch::AttemptWatch;
use super::{StopReason, TaskJob};
use crate::attempt::{AttemptEnd, Limits, MAX_RESULT, follow};
use crate::journal::FleetEvent;
use crate::launch::{self, ChildHandle, ChildOutput, StartedChild};
use crate::plan::{Failback, Isolation};
use crate::{
    BatchLog, Chain, Charge, ChildFailure, ChildPlan, Choice, Consumer, FailureKind, Feed, Outcome,
    Permit, RunDir, TimeoutClock,
};

/// The addition to the prompt after an answer was cut off at the token limit.
const LENGTH_RETRY_PROMPT: &str = "\n\nYour last answer to this was cut off at the limit of tokens for one answer. \
Do the work in smaller steps and keep the final answer short enough to fit.";

/// Runs a child until it has finished, failed for good, or been stopped.
pub(super) async fn run_child(
    context: &Arc<RunContext>,
    child: &Arc<ChildPlan>,
    results: Option<String>,
) {
    let mut run = ChildRun {
        context,
        child,
        results,
        chain: Chain::new(if child.models.is_empty() {
            // The agent chooses the model; all such children of an agent have one breaker.
            vec![format!("({} default)", child.agent.as_str())]
        } else {
            child.models.clone()
        }),
        attempt: context.attempts(&child.name),
        retries: child.retries,
        length_retries: child.length_retries,
        backoff: child.backoff,
        changed: false,
        too_long: false,
    };
    let (outcome, failure, result, output) = run.execute().await;
    context.record_child_end(&child.name, outcome, failure, result, output);
}

type ChildEnd = (Outcome, Option<ChildFailure>, Option<String>, Option<Value>);

/// The reaction to a failed attempt.
enum NextStep {
    /// Continue with the model at this position of the chain or later.
    ChangeModel(usize),
    /// Retry after a pause, from the start of the chain.
    Retry(Duration),
    GiveUp,
}

/// The reason why an attempt did not start.
struct NotStarted {
    message: String,
    /// Another attempt would fail too.
    permanent: bool,
}

struct ChildRun<'a> {
    context: &'a Arc<RunContext>,
    child: &'a Arc<ChildPlan>,
    results: Option<String>,
    chain: Chain,
    attempt: u32,
    retries: u32,
    length_retries: u32,
    backoff: Duration,
    /// An attempt may have changed something outside of the child.
    changed: bool,
    /// The last answer was cut off at the token limit.
    too_long: bool,
}

impl ChildRun<'_> {
    async fn execute(&mut self) -> ChildEnd {
        let mut from = 0;
        loop {
            let (index, permit) = match self.choose(from).await {
                Ok(chosen) => chosen,
                Err((outcome, failure)) => return (outcome, Some(failure), None, None),
            };
            let end = self.attempt(index, permit).await;
            self.changed |= end.changed;
            let Some(failure) = end.failure else {
                let output = self.output(end.result.as_deref()).unwrap_or_default();
                return (Outcome::Finished, None, end.result, output);
            };
            if self.context.stop.reason().is_some() {
                return (Outcome::Stopped, Some(failure), end.result, None);
            }
            if end.permanent {
                return (Outcome::Failed, Some(failure), end.result, None);
            }
            match self.next(&failure, index) {
                NextStep::ChangeModel(index) => from = index,
                NextStep::Retry(pause) => {
                    from = 0;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.context.stop.stopped() => {}
                    }
                }
                NextStep::GiveUp => return (Outcome::Failed, Some(failure), end.result, None),
            }
        }
    }

    /// Waits for a model that its breaker admits.
    async fn choose(&self, from: usize) -> Result<(usize, Permit), (Outcome, ChildFailure)> {
        loop {
            match self.context.spent_budget(self.child) {
                Some(Charge::RunSpent) => self.context.stop.set(StopReason::Budget),
                Some(_) => {
                    let message = "its budget was spent before this attempt started";
                    let failure = ChildFailure::new(FailureKind::Budget, message);
                    return Err((Outcome::Failed, failure));
                }
                None => {}
            }
            if self.context.stop.reason().is_some() {
                return Err((Outcome::Stopped, self.context.stop.failure()));
            }
            let changed = self.context.breaker_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = match self.context.choose(&self.chain, from) {
                Choice::Run { index, permit } => return Ok((index, permit)),
                Choice::Wait { until } => until,
            };
            let now = self.context.breaker_time();
            let latest = now
                + self
                    .context
                    .time_left()
                    .saturating_sub(self.context.plan.retry_reserve);
            if until.is_some_and(|until| until > latest) {
                let models = self.chain.models().join(", ");
                let message = format!("every model it may run on is overloaded: {models}");
                let kind = FailureKind::Api {
                    status: None,
                    retryable: true,
                };
                return Err((Outcome::Failed, ChildFailure::new(kind, message)));
            }
            let interval = self.context.breaker_poll_interval();
            let pause = until.map_or(interval, |until| until.saturating_sub(now).min(interval));
            tokio::select! {
                () = changed => {}
                () = self.context.stop.stopped() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reports whether another attempt repeats no changes, or may repeat them.
    fn may_repeat(&self) -> bool {
        !self.changed || self.child.failback == Failback::Always
    }

    fn next(&mut self, failure: &ChildFailure, index: usize) -> NextStep {
        if !self.may_repeat() {
            return NextStep::GiveUp;
        }
        if failure.kind.should_fail_back()
            && self.child.failback != Failback::Never
            && self.context.has_alternative(&self.chain, index)
        {
            return NextStep::ChangeModel(index + 1);
        }
        if self.context.time_left() < self.context.plan.retry_reserve {
            return NextStep::GiveUp;
        }
        if failure.kind == FailureKind::OutputLength && self.length_retries > 0 {
            self.length_retries -= 1;
            self.too_long = true;
            return NextStep::Retry(Duration::ZERO);
        }
        if failure.retryable() && self.retries > 0 {
            self.retries -= 1;
            let pause = self.backoff;
            self.backoff = self.backoff.saturating_mul(2).min(Duration::from_secs(60));
            return NextStep::Retry(pause);
        }
        NextStep::GiveUp
    }

    async fn attempt(&mut self, index: usize, permit: Permit) -> AttemptEnd {
        self.attempt += 1;
        let model = self.child.models.get(index).cloned();
        let span = error_span!(
            "attempt",
            child = self.child.name.as_str(),
            number = self.attempt,
            model = model.as_deref(),
        );
        self.run_attempt(index, permit, model)
            .instrument(span)
            .await
    }

    async fn run_attempt(
        &mut self,
        index: usize,
        permit: Permit,
        model: Option<String>,
    ) -> AttemptEnd {
        info!("attempt started");
        self.context.record(FleetEvent::ChildStarted {
            child: self.child.name.clone(),
            attempt: self.attempt,
            model: model.clone(),
            probe: permit.is_probe(),
        });
        let mut watch = AttemptWatch {
            context: self.context,
            child: self.child,
            chain: &self.chain,
            index,
            attempt: self.attempt,
            model: model.as_deref(),
            permit,
            steps: 0,
            complete: false,
            may_repeat: self.may_repeat(),
        };
        let begun = Instant::now();
        let log = RunDir::log_name(&self.child.name, self.attempt);
        let mut end = match self.start(model.as_deref(), &log).await {
            Ok((started, consumer)) => {
                let stop = self.context.stop.token();
                let why = || self.context.stop.failure();
                follow(
                    started,
                    consumer,
                    self.limits(),
                    stop,
                    why,
                    self.child.events.done.is_empty(),
                    &mut watch,
                )
                .await
            }
            Err(NotStarted { message, permanent }) => AttemptEnd {
                failure: Some(ChildFailure::new(FailureKind::Protocol, message)),
                permanent,
                result: None,
                shortened_from: None,
                changed: false,
                session: None,
                counts: Default::default(),
                clocks: Default::default(),
                duration: begun.elapsed(),
            },
        };
        if end.failure.is_none() {
            // Not every child reports its steps.
            watch.answered();
        }
        watch.close();
        if end.failure.is_none()
            && let Err(failure) = self.output(end.result.as_deref())
        {
            end.failure = Some(failure);
        }
        if let Some(length) = end.shortened_from {
            let message = format!(
                "the answer of \"{}\" has {length} bytes; the report contains the first {MAX_RESULT}, and {log} all of it",
                self.child.name
            );
            self.context.record(FleetEvent::Warning { message });
        }
        let outcome = match (&end.failure, self.context.stop.reason()) {
            (None, _) => Outcome::Finished,
            (Some(_), Some(_)) => Outcome::Stopped,
            (Some(_), None) => Outcome::Failed,
        };
        info!(
            outcome = match outcome {
                Outcome::Finished => "finished",
                Outcome::Failed => "failed",
                Outcome::Stopped => "stopped",
            },
            failure = end.failure.as_ref().map(|failure| failure.kind.code()),
            duration_ms = end.duration.as_millis() as u64,
            "attempt ended"
        );
        self.context.record(FleetEvent::AttemptEnded {
            child: self.child.name.clone(),
            attempt: self.attempt,
            outcome,
            failure: end.failure.clone(),
            changed: end.changed,
            printed: end.counts,
            clocks: end.clocks,
            duration_ms: end.duration.as_millis() as u64,
            log,
            session: end.session.clone(),
        });
        end
    }

    fn limits(&self) -> Limits {
        let left = self.context.time_left();
        let (timeout, timeout_clock) = if left < self.child.timeout {
            // Normally the run's own timer ends the child; this limit applies if that timer is late.
            (left + Duration::from_secs(1), TimeoutClock::Run)
        } else {
            (self.child.timeout, TimeoutClock::Child)
        };
        Limits {
            timeout,
            timeout_clock,
            inactivity: self.child.inactivity,
            grace: self.child.grace,
        }
    }

    async fn start(
        &self,
        model: Option<&str>,
        log: &str,
    ) -> Result<(StartedChild, Consumer), NotStarted> {
        let child = self.child;
        let directory = &self.context.directory;
        let log = directory.path().join(log);
        let log = BatchLog::create(&log).map_err(|error| NotStarted {
            message: format!("{}: {error}", log.display()),
            permanent: false,
        })?;
        let consumer = Consumer::new(child.agent.adapter(&child.events), log);
        let prompt = self.prompt();
        let directory_of_child = child
            .directory
            .clone()
            .unwrap_or_else(|| self.context.working_directory.clone());
        let started = match child.isolation {
            Isolation::Process => {
                let words = launch::command_line(child, model, &self.context.host.program());
                let program = words
                    .first()
                    .map(|word| word.to_string_lossy().into_owned());
                let variables = self.variables(model, &directory_of_child);
                let stderr = directory.stderr(&child.name, self.attempt);
                launch::process(
                    words,
                    directory_of_child,
                    variables,
                    prompt.into_bytes(),
                    stderr,
                )
                .await
                .map_err(|error| NotStarted {
                    message: format!(
                        "\"{}\" cannot be started: {error}",
                        program.unwrap_or_default()
                    ),
                    permanent: launch::is_permanent(&error),
                })?
            }
            Isolation::Task => self.task(model, prompt, directory_of_child),
        };
        Ok((started, consumer))
    }

    fn task(
        &self,
        model: Option<&str>,
        prompt: String,
        directory_of_child: PathBuf,
    ) -> StartedChild {
        let feed = Arc::new(Feed::default());
        let stop = CancellationToken::new();
        let ended = self.context.host.task(TaskJob {
            child: self.child.name.clone(),
            model: model.map(str::to_owned),
            prompt,
            args: self.child.args.clone(),
            files: self.child.files.clone(),
            directory: directory_of_child,
            feed: Arc::clone(&feed),
            stop: stop.clone(),
        });
        StartedChild {
            output: ChildOutput::Feed(feed),
            handle: ChildHandle::Task {
                stop,
                ended,
                ended_already: false,
            },
        }
    }
}
