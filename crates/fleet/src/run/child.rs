//! One child: its attempts, on which models, and when it is enough.

mod asked;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::eyes::Eyes;
use super::shared::Shared;
use super::{StopReason, TaskJob};
use crate::attempt::{AttemptEnd, Limits, MAX_RESULT, follow};
use crate::journal::FleetEvent;
use crate::launch::{self, Life, Output as ChildOutput, Started};
use crate::plan::{Failback, Isolation};
use crate::{
    BatchLog, Chain, Charge, ChildFailure, ChildPlan, Choice, Clock, Consumer, FailureKind, Feed,
    Outcome, Pass, RunDir,
};

/// What a child is told whose answer was too long.
const SHORTER: &str = "\n\nYour last answer to this was cut off at the limit of tokens for one answer. \
Do the work in smaller steps and keep the final answer short enough to fit.";

/// Runs a child until it has finished, failed for good, or been stopped.
pub(super) async fn run_child(
    shared: &Arc<Shared>,
    child: &Arc<ChildPlan>,
    results: Option<String>,
) {
    let mut story = Story {
        shared,
        child,
        results,
        chain: Chain::new(match child.models.is_empty() {
            // The agent chooses; its choice has one breaker.
            true => vec![format!("({} default)", child.agent.as_str())],
            false => child.models.clone(),
        }),
        attempt: shared.attempts(&child.name),
        retries: child.retries,
        length_retries: child.length_retries,
        backoff: child.backoff,
        changed: false,
        too_long: false,
    };
    let (outcome, failure, result, output) = story.tell().await;
    shared.ended(&child.name, outcome, failure, result, output);
}

type End = (Outcome, Option<ChildFailure>, Option<String>, Option<Value>);

/// What is done after a failed attempt.
enum Next {
    /// Another model, at this place of the chain or later.
    Move(usize),
    /// The same again, after a pause.
    Again(Duration),
    GiveUp,
}

/// Why an attempt did not start.
struct NotStarted {
    message: String,
    /// Another try would end the same way.
    permanent: bool,
}

struct Story<'a> {
    shared: &'a Arc<Shared>,
    child: &'a Arc<ChildPlan>,
    results: Option<String>,
    chain: Chain,
    attempt: u32,
    retries: u32,
    length_retries: u32,
    backoff: Duration,
    /// Some attempt may have changed something outside.
    changed: bool,
    /// The last answer was.
    too_long: bool,
}

impl Story<'_> {
    async fn tell(&mut self) -> End {
        let mut from = 0;
        loop {
            let (index, pass) = match self.choose(from).await {
                Ok(chosen) => chosen,
                Err((outcome, failure)) => return (outcome, Some(failure), None, None),
            };
            let end = self.attempt(index, pass).await;
            self.changed |= end.changed;
            let Some(failure) = end.failure else {
                let output = self.output(end.result.as_deref()).unwrap_or_default();
                return (Outcome::Finished, None, end.result, output);
            };
            if self.shared.stop.reason().is_some() {
                return (Outcome::Stopped, Some(failure), end.result, None);
            }
            if end.permanent {
                return (Outcome::Failed, Some(failure), end.result, None);
            }
            match self.next(&failure, index) {
                Next::Move(index) => from = index,
                Next::Again(pause) => {
                    from = 0;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.shared.stop.stopped() => {}
                    }
                }
                Next::GiveUp => return (Outcome::Failed, Some(failure), end.result, None),
            }
        }
    }

    /// Waits for a model that may be asked.
    async fn choose(&self, from: usize) -> Result<(usize, Pass), (Outcome, ChildFailure)> {
        loop {
            match self.shared.is_broke(self.child) {
                Some(Charge::RunSpent) => self.shared.stop.set(StopReason::Budget),
                Some(_) => {
                    let message = "its money was spent before it could begin";
                    let failure = ChildFailure::new(FailureKind::Budget, message);
                    return Err((Outcome::Failed, failure));
                }
                None => {}
            }
            if self.shared.stop.reason().is_some() {
                return Err((Outcome::Stopped, self.shared.stop.failure()));
            }
            let changed = self.shared.breaker_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = match self.shared.choose(&self.chain, from) {
                Choice::Run { index, pass } => return Ok((index, pass)),
                Choice::Wait { until } => until,
            };
            let now = self.shared.breaker_time();
            let latest = now
                + self
                    .shared
                    .time_left()
                    .saturating_sub(self.shared.plan.retry_reserve);
            if until.is_some_and(|until| until > latest) {
                let models = self.chain.models().join(", ");
                let message = format!("every model it may run on is overloaded: {models}");
                let kind = FailureKind::Api {
                    status: None,
                    retryable: true,
                };
                return Err((Outcome::Failed, ChildFailure::new(kind, message)));
            }
            let patience = self.shared.patience();
            let pause = until.map_or(patience, |until| until.saturating_sub(now).min(patience));
            tokio::select! {
                () = changed => {}
                () = self.shared.stop.stopped() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Whether starting anew can repeat nothing that matters, or is allowed to.
    fn may_repeat(&self) -> bool {
        !self.changed || self.child.failback == Failback::Always
    }

    fn next(&mut self, failure: &ChildFailure, index: usize) -> Next {
        if !self.may_repeat() {
            return Next::GiveUp;
        }
        if failure.kind.should_fail_back()
            && self.child.failback != Failback::Never
            && self.shared.has_better(&self.chain, index)
        {
            return Next::Move(index + 1);
        }
        if self.shared.time_left() < self.shared.plan.retry_reserve {
            return Next::GiveUp;
        }
        if failure.kind == FailureKind::OutputLength && self.length_retries > 0 {
            self.length_retries -= 1;
            self.too_long = true;
            return Next::Again(Duration::ZERO);
        }
        if failure.retryable() && self.retries > 0 {
            self.retries -= 1;
            let pause = self.backoff;
            self.backoff = self.backoff.saturating_mul(2).min(Duration::from_secs(60));
            return Next::Again(pause);
        }
        Next::GiveUp
    }

    async fn attempt(&mut self, index: usize, pass: Pass) -> AttemptEnd {
        self.attempt += 1;
        let model = self.child.models.get(index).cloned();
        self.shared.tell(FleetEvent::ChildStarted {
            child: self.child.name.clone(),
            attempt: self.attempt,
            model: model.clone(),
            probe: pass.is_probe(),
        });
        let mut eyes = Eyes {
            shared: self.shared,
            child: self.child,
            chain: &self.chain,
            index,
            attempt: self.attempt,
            model: model.as_deref(),
            pass,
            steps: 0,
            complete: false,
            may_repeat: self.may_repeat(),
        };
        let begun = Instant::now();
        let log = RunDir::log_name(&self.child.name, self.attempt);
        let mut end = match self.start(model.as_deref(), &log).await {
            Ok((started, consumer)) => {
                let stop = self.shared.stop.token();
                let why = || self.shared.stop.failure();
                follow(
                    started,
                    consumer,
                    self.limits(),
                    stop,
                    why,
                    self.child.events.done.is_empty(),
                    &mut eyes,
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
            // Not every child tells its steps.
            eyes.answered();
        }
        eyes.close();
        if end.failure.is_none()
            && let Err(failure) = self.output(end.result.as_deref())
        {
            end.failure = Some(failure);
        }
        if let Some(length) = end.shortened_from {
            let message = format!(
                "the answer of {} has {length} bytes; its first {MAX_RESULT} are kept, and all of it is in {log}",
                self.child.name
            );
            self.shared.tell(FleetEvent::Warning { message });
        }
        let outcome = match (&end.failure, self.shared.stop.reason()) {
            (None, _) => Outcome::Finished,
            (Some(_), Some(_)) => Outcome::Stopped,
            (Some(_), None) => Outcome::Failed,
        };
        self.shared.tell(FleetEvent::AttemptEnded {
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
        let left = self.shared.time_left();
        let (timeout, timeout_clock) = match left < self.child.timeout {
            // The run's own clock ends it; this one is there in case that is late.
            true => (left + Duration::from_secs(1), Clock::Run),
            false => (self.child.timeout, Clock::Child),
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
    ) -> Result<(Started, Consumer), NotStarted> {
        let child = self.child;
        let directory = &self.shared.directory;
        let log = directory.path().join(log);
        let log = BatchLog::create(&log).map_err(|error| NotStarted {
            message: format!("{}: {error}", log.display()),
            permanent: false,
        })?;
        let consumer = Consumer::new(child.agent.adapter(&child.events), log);
        let prompt = self.prompt();
        let place = child
            .directory
            .clone()
            .unwrap_or_else(|| self.shared.working_directory.clone());
        let started = match child.isolation {
            Isolation::Process => {
                let words = launch::words(child, model, &self.shared.host.program());
                let program = words
                    .first()
                    .map(|word| word.to_string_lossy().into_owned());
                let variables = self.variables(model, &place);
                let stderr = directory.stderr(&child.name, self.attempt);
                launch::process(words, place, variables, prompt.into_bytes(), stderr)
                    .await
                    .map_err(|error| NotStarted {
                        message: format!(
                            "{} cannot be started: {error}",
                            program.unwrap_or_default()
                        ),
                        permanent: launch::is_permanent(&error),
                    })?
            }
            Isolation::Task => self.task(model, prompt, place),
        };
        Ok((started, consumer))
    }

    fn task(&self, model: Option<&str>, prompt: String, place: PathBuf) -> Started {
        let feed = Arc::new(Feed::default());
        let stop = CancellationToken::new();
        let ended = self.shared.host.task(TaskJob {
            child: self.child.name.clone(),
            model: model.map(str::to_owned),
            prompt,
            args: self.child.args.clone(),
            files: self.child.files.clone(),
            directory: place,
            feed: Arc::clone(&feed),
            stop: stop.clone(),
        });
        Started {
            output: ChildOutput::Feed(feed),
            life: Life::Task {
                stop,
                ended,
                over: false,
            },
        }
    }
}
