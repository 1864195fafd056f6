//! The result of a run, derived from the engine's events.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pinion_agent::{Event, Listener};
use pinion_message::{Message, StopReason};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The model finished.
    Finished,
    /// The user stopped the run.
    Stopped,
    /// The run failed, with this message.
    Failed(String),
}

impl RunEnd {
    /// Returns the status of the `done` frame.
    pub fn done_status(&self) -> &'static str {
        match self {
            Self::Finished => "ok",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }
}

/// Derives the result of a run from its events.
#[derive(Debug, Default)]
pub struct RunEndTracker {
    failure: Option<String>,
    aborted: bool,
    cancelled: bool,
}

impl RunEndTracker {
    /// Records an event of the run.
    pub fn notice(&mut self, event: &Event) {
        match event {
            Event::AgentStart => self.failure = None,
            Event::MessageEnd(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.aborted = answer.stop_reason == StopReason::Aborted;
                    let words = || answer.error_message.clone().unwrap_or_default();
                    self.failure = (answer.stop_reason == StopReason::Error).then(words);
                }
            }
            Event::Fault {
                source,
                during,
                error,
            } if source == "engine" && during == "run" => {
                self.failure = Some(error.clone());
            }
            Event::Settled { aborted } => self.aborted |= aborted,
            _ => {}
        }
    }

    /// Records that the user stopped the run. A run that fails afterwards counts as stopped.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub fn end(&self) -> RunEnd {
        match &self.failure {
            _ if self.aborted => RunEnd::Stopped,
            Some(_) if self.cancelled => RunEnd::Stopped,
            Some(failure) => RunEnd::Failed(failure.clone()),
            None => RunEnd::Finished,
        }
    }
}

/// Listens to a run and returns its result.
#[derive(Debug, Default)]
pub struct RunEndListener(Mutex<RunEndTracker>);

impl RunEndListener {
    /// Records that the user stopped the run.
    pub fn cancel(&self) {
        self.verdict().cancel();
    }

    /// Returns the result, once the engine has settled.
    pub fn end(&self) -> RunEnd {
        self.verdict().end()
    }

    fn verdict(&self) -> MutexGuard<'_, RunEndTracker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for RunEndListener {
    fn notice(&self, _ordinal: u64, event: &Event) {
        match event {
            Event::BlockDelta { .. } | Event::ToolUpdate { .. } => {}
            event => self.verdict().notice(event),
        }
    }
}
