//! Runs in progress: at most one per topic, and a limited number in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinion_agent::Handle;
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::topics::Run;

/// Maximum number of concurrent runs.
pub(super) const MAX_RUNS: usize = 16;
/// Additional concurrent runs for events, so that callers cannot block the scheduler.
pub(super) const MAX_EVENT_RUNS: usize = 4;
/// Time that a stopped run may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The runs in progress, by topic id.
#[derive(Debug, Default)]
pub(super) struct Runs(Arc<Mutex<HashMap<String, Arc<LiveRun>>>>);

/// A run in progress.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub run: Run,
    /// Cancelled to stop the run.
    pub stop: CancellationToken,
    /// Cancelled after the run has ended and released everything.
    pub over: CancellationToken,
    /// A handle to the run's engine, once the engine exists.
    pub session: watch::Sender<Option<Handle>>,
    /// Locked while a message is added to the run; true once the run does not accept messages any more.
    pub closed: tokio::sync::Mutex<bool>,
}

/// A run that has not started.
#[derive(Debug)]
pub(super) struct PendingRun {
    run: Run,
    stop: CancellationToken,
    /// Maximum number of concurrent runs, including this one.
    most: usize,
}

impl PendingRun {
    /// Creates a run for a caller; `stop` ends it.
    pub fn new(run: Run, stop: CancellationToken) -> Self {
        Self {
            run,
            stop,
            most: MAX_RUNS,
        }
    }

    /// Creates a run for an event.
    pub fn for_event(run: Run, stop: CancellationToken) -> Self {
        Self {
            most: MAX_RUNS + MAX_EVENT_RUNS,
            ..Self::new(run, stop)
        }
    }
}

/// The exclusive claim of a run on its topic. Dropping it releases the topic.
#[derive(Debug)]
pub(super) struct Claim {
    runs: Arc<Mutex<HashMap<String, Arc<LiveRun>>>>,
    pub live: Arc<LiveRun>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let topic = &self.live.run.topic_id;
        lock(&self.runs).remove(topic);
        self.live.over.cancel();
    }
}

impl Runs {
    /// Returns the run in progress in a topic.
    pub fn of(&self, topic: &str) -> Option<Arc<LiveRun>> {
        lock(&self.0).get(topic).cloned()
    }

    /// Returns the run of this id.
    pub fn get(&self, run: &str) -> Option<Arc<LiveRun>> {
        let runs = lock(&self.0);
        runs.values().find(|live| live.run.id == run).cloned()
    }

    /// Starts a run, after stopping the run in progress in its topic.
    pub async fn begin(&self, turn: PendingRun) -> Result<Claim, Failure> {
        let PendingRun { run, stop, most } = turn;
        let live = Arc::new(LiveRun {
            run,
            stop,
            over: CancellationToken::new(),
            session: watch::Sender::new(None),
            closed: tokio::sync::Mutex::new(false),
        });
        loop {
            let Some(before) = self.claim(&live, most)? else {
                return Ok(Claim {
                    runs: Arc::clone(&self.0),
                    live,
                });
            };
            before.stop().await?;
        }
    }

    /// Registers the run for its topic, or returns the run that the topic already has.
    fn claim(&self, live: &Arc<LiveRun>, most: usize) -> Result<Option<Arc<LiveRun>>, Failure> {
        let mut runs = lock(&self.0);
        let topic = &live.run.topic_id;
        if let Some(before) = runs.get(topic) {
            return Ok(Some(Arc::clone(before)));
        }
        if runs.len() >= most {
            return Err(Failure::new(
                Code::ResourceExhausted,
                format!("{most} runs are going on already; wait for one to end or abort it"),
            ));
        }
        runs.insert(topic.clone(), Arc::clone(live));
        Ok(None)
    }
}

impl LiveRun {
    /// Stops the run and waits until it has ended. Fails if that takes longer than `STOP_TIMEOUT`.
    pub async fn stop(&self) -> Result<(), Failure> {
        self.stop.cancel();
        let over = tokio::time::timeout(STOP_TIMEOUT, self.over.cancelled()).await;
        over.map_err(|_| {
            let message = format!("the run in topic {} does not end", self.run.topic_id);
            Failure::new(Code::Unavailable, message)
        })
    }

    /// Waits for the engine and returns it; `None` if the run ends first.
    pub async fn engine(&self) -> Option<Handle> {
        let mut session = self.session.subscribe();
        tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            found = session.wait_for(Option::is_some) => found.ok()?.clone(),
        }
    }
}
