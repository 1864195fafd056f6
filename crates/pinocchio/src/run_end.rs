//! How a run ended, as far as the engine's events tell.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pinion_agent::{Event, Listener};
use pinion_message::{Message, StopReason};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The model was done.
    Finished,
    /// The user stopped it.
    Stopped,
    /// It failed, with these words.
    Failed(String),
}

impl RunEnd {
    /// The status of the `done` frame.
    pub fn done_status(&self) -> &'static str {
        match self {
            Self::Finished => "ok",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }
}

/// Follows a run and says how it ended.
#[derive(Debug, Default)]
pub struct Verdict {
    failure: Option<String>,
    aborted: bool,
    cancelled: bool,
}

impl Verdict {
    /// Takes an event of the run.
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

    /// The user asked for the run to stop. A run that failed afterwards counts as stopped.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// How the run ended.
    pub fn end(&self) -> RunEnd {
        match &self.failure {
            _ if self.aborted => RunEnd::Stopped,
            Some(_) if self.cancelled => RunEnd::Stopped,
            Some(failure) => RunEnd::Failed(failure.clone()),
            None => RunEnd::Finished,
        }
    }
}

/// Listens to a run and says how it ended.
#[derive(Debug, Default)]
pub struct Judge(Mutex<Verdict>);

impl Judge {
    /// The user asked for the run to stop.
    pub fn cancel(&self) {
        self.verdict().cancel();
    }

    /// How the run ended, once the engine has settled.
    pub fn end(&self) -> RunEnd {
        self.verdict().end()
    }

    fn verdict(&self) -> MutexGuard<'_, Verdict> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Judge {
    fn notice(&self, _ordinal: u64, event: &Event) {
        match event {
            Event::BlockDelta { .. } | Event::ToolUpdate { .. } => {}
            event => self.verdict().notice(event),
        }
    }
}
