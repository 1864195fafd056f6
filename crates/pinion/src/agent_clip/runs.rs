//! What is going on: at most one run in a topic, and a limited number of them together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinion_agent::Handle;
use pinion_status::{Code, Failure};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::topics::Run;

/// How many runs there may be at a time.
pub(super) const MOST: usize = 16;
/// How many more by the clock, so that an event does not depend on how busy callers keep the hub.
pub(super) const MOST_BY_THE_CLOCK: usize = 4;
/// How long a run that was stopped may take to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Runs(Arc<Mutex<HashMap<String, Arc<Live>>>>);

/// A run.
#[derive(Debug)]
pub(super) struct Live {
    pub run: Run,
    /// Asks it to end.
    pub stop: CancellationToken,
    /// Told when it has ended, and nothing of it is left.
    pub over: CancellationToken,
    /// How to reach its engine, once there is one.
    pub session: watch::Sender<Option<Handle>>,
    /// Held while something is said into it; true when it listens no more.
    pub closed: tokio::sync::Mutex<bool>,
}

/// A run that is to begin.
#[derive(Debug)]
pub(super) struct Turn {
    run: Run,
    stop: CancellationToken,
    /// How many runs there may be with it.
    most: usize,
}

impl Turn {
    /// One that a caller begins; `stop` ends it.
    pub fn new(run: Run, stop: CancellationToken) -> Self {
        Self {
            run,
            stop,
            most: MOST,
        }
    }

    /// One that begins by the clock.
    pub fn by_the_clock(run: Run, stop: CancellationToken) -> Self {
        Self {
            most: MOST + MOST_BY_THE_CLOCK,
            ..Self::new(run, stop)
        }
    }
}

/// That a topic has a run. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    runs: Arc<Mutex<HashMap<String, Arc<Live>>>>,
    pub live: Arc<Live>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let topic = &self.live.run.topic_id;
        locked(&self.runs).remove(topic);
        self.live.over.cancel();
    }
}

fn locked(runs: &Mutex<HashMap<String, Arc<Live>>>) -> MutexGuard<'_, HashMap<String, Arc<Live>>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runs {
    /// What goes on in a topic.
    pub fn of(&self, topic: &str) -> Option<Arc<Live>> {
        locked(&self.0).get(topic).cloned()
    }

    /// The run of this id.
    pub fn get(&self, run: &str) -> Option<Arc<Live>> {
        let runs = locked(&self.0);
        runs.values().find(|live| live.run.id == run).cloned()
    }

    /// Begins a run, once what went on in its topic has been stopped.
    pub async fn begin(&self, turn: Turn) -> Result<Claim, Failure> {
        let Turn { run, stop, most } = turn;
        let live = Arc::new(Live {
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

    /// Takes the topic's place; gives whoever has it.
    fn claim(&self, live: &Arc<Live>, most: usize) -> Result<Option<Arc<Live>>, Failure> {
        let mut runs = locked(&self.0);
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

impl Live {
    /// Stops it and waits until it is over.
    pub async fn stop(&self) -> Result<(), Failure> {
        self.stop.cancel();
        let over = tokio::time::timeout(PATIENCE, self.over.cancelled()).await;
        over.map_err(|_| {
            let message = format!("the run in topic {} does not end", self.run.topic_id);
            Failure::new(Code::Unavailable, message)
        })
    }

    /// Its engine; `None` if it ends before there is one.
    pub async fn engine(&self) -> Option<Handle> {
        let mut session = self.session.subscribe();
        tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            found = session.wait_for(Option::is_some) => found.ok()?.clone(),
        }
    }
}
