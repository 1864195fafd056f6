//! The process of a clip as one state machine, from no process to its exit.
//!
//! ```text
//!            supervise         started          ready
//!   Asleep ───────────► Supervised ───► Starting ───► Ready
//!     ▲                   │  ▲             │            │ shut_down
//!     └───────────────────┘  │             └──────┬─────┘
//!            sleep           │ ended              ▼
//!                            └──────────── ShuttingDown
//! ```
//!
//! `ended` leads from every stage with a process to `Supervised`. The fields are private: only the methods of this file
//! change a stage, and a transition that does not apply to the present stage changes nothing.

use std::sync::Arc;

use tokio::time::Instant;

use super::timed_out_calls::TimedOutCalls;
use crate::ClipError;
use crate::process::outbox::Outbox;

/// The stage of a clip's process, with the process if there is one.
#[derive(Debug, Default)]
pub(crate) struct ProcessStage(Stage);

#[derive(Debug, Default)]
enum Stage {
    /// No process runs and no task starts one.
    #[default]
    Asleep,
    /// A task starts a process when it may: now, or after a delay that follows crashes.
    Supervised,
    /// The process has printed nothing yet and must not be written to.
    Starting(ClipProcess),
    /// The process accepts calls.
    Ready(ClipProcess),
    /// The process accepts no more calls.
    ShuttingDown {
        process: ClipProcess,
        was_ready: bool,
    },
}

/// The need for a task that supervises the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Start {
    Needed,
    NotNeeded,
}

/// A request to end a process, in increasing strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shutdown {
    /// Stdin is closed; the process may finish its calls.
    Graceful,
    Immediate,
}

/// An error that requires the process to be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FatalError {
    pub(crate) error: ClipError,
    pub(crate) shutdown: Shutdown,
}

/// One started process, until its calls are settled.
#[derive(Debug)]
pub(crate) struct ClipProcess {
    pub(crate) outbox: Arc<Outbox>,
    /// The last time the process sent something for a pending call, or sent a request.
    pub(crate) progress: Instant,
    pub(super) timed_out_calls: TimedOutCalls,
    input: Input,
    output: Output,
    /// The first error that the supervisor has not handled yet.
    fatal: Option<FatalError>,
    shutdown: Option<Shutdown>,
    /// The process must end once it has no work, because its files or environment have changed.
    stale: bool,
}

/// The end of a process that reads calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// The process has closed its stdin.
    Closed,
    /// The process has exited; its output may still be read.
    Exited,
}

/// The output of a process up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Output {
    /// The process has printed no line that was understood.
    Silent,
    Understood,
    Registered,
}

impl ProcessStage {
    /// Asleep → supervised. The caller must start the task if it is needed.
    pub(crate) fn supervise(&mut self) -> Start {
        if let Stage::Asleep = self.0 {
            self.0 = Stage::Supervised;
            Start::Needed
        } else {
            Start::NotNeeded
        }
    }

    /// Supervised → asleep, when the supervising task ends.
    pub(crate) fn sleep(&mut self) {
        if let Stage::Supervised = self.0 {
            self.0 = Stage::Asleep;
        }
    }

    /// Supervised → starting.
    pub(crate) fn started(&mut self, outbox: Arc<Outbox>) {
        if let Stage::Supervised = self.0 {
            self.0 = Stage::Starting(ClipProcess::new(outbox));
        }
    }

    /// Starting → ready. Reports whether the process was starting.
    pub(crate) fn ready(&mut self) -> bool {
        match std::mem::take(&mut self.0) {
            Stage::Starting(process) => {
                self.0 = Stage::Ready(process);
                true
            }
            other => {
                self.0 = other;
                false
            }
        }
    }

    /// Starting or ready → shutting down.
    pub(crate) fn shut_down(&mut self) {
        let was_ready = self.was_ready();
        self.0 = match std::mem::take(&mut self.0) {
            Stage::Starting(process) | Stage::Ready(process) => {
                Stage::ShuttingDown { process, was_ready }
            }
            other => other,
        };
    }

    /// Every stage with a process → supervised. Returns the process.
    pub(crate) fn ended(&mut self) -> Option<ClipProcess> {
        match std::mem::take(&mut self.0) {
            Stage::Starting(process)
            | Stage::Ready(process)
            | Stage::ShuttingDown { process, .. } => {
                self.0 = Stage::Supervised;
                Some(process)
            }
            other => {
                self.0 = other;
                None
            }
        }
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.0, Stage::Asleep)
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.0, Stage::Starting(_))
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.0, Stage::Ready(_))
    }

    /// Reports whether the process has been ready for calls.
    pub(crate) fn was_ready(&self) -> bool {
        matches!(
            self.0,
            Stage::Ready(_)
                | Stage::ShuttingDown {
                    was_ready: true,
                    ..
                }
        )
    }

    /// Returns the process if calls may be written to it.
    pub(crate) fn accepting(&self) -> Option<&ClipProcess> {
        match &self.0 {
            Stage::Ready(process) if process.input != Input::Exited => Some(process),
            _ => None,
        }
    }

    pub(crate) fn process(&self) -> Option<&ClipProcess> {
        match &self.0 {
            Stage::Asleep | Stage::Supervised => None,
            Stage::Starting(process)
            | Stage::Ready(process)
            | Stage::ShuttingDown { process, .. } => Some(process),
        }
    }

    pub(crate) fn process_mut(&mut self) -> Option<&mut ClipProcess> {
        match &mut self.0 {
            Stage::Asleep | Stage::Supervised => None,
            Stage::Starting(process)
            | Stage::Ready(process)
            | Stage::ShuttingDown { process, .. } => Some(process),
        }
    }
}

impl ClipProcess {
    fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            progress: Instant::now(),
            timed_out_calls: TimedOutCalls::default(),
            input: Input::Open,
            output: Output::Silent,
            fatal: None,
            shutdown: None,
            stale: false,
        }
    }

    /// Notes that the process closed its stdin. Has no effect once the process has exited.
    pub(crate) fn close_stdin(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Closed;
        }
    }

    pub(crate) fn exit(&mut self) {
        self.input = Input::Exited;
    }

    /// Reports whether the process runs and has closed its stdin.
    pub(crate) fn is_stdin_closed(&self) -> bool {
        self.input == Input::Closed
    }

    /// Notes a line that was understood. Reports whether it is the first one.
    pub(crate) fn understood(&mut self) -> bool {
        let is_first = self.output == Output::Silent;
        self.output = self.output.max(Output::Understood);
        is_first
    }

    pub(crate) fn register(&mut self) {
        self.output = Output::Registered;
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.output == Output::Registered
    }

    /// Records an error for which the process must end. Only the first one takes effect.
    pub(crate) fn fail(&mut self, fatal: FatalError) {
        self.fatal.get_or_insert(fatal);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.fatal.is_some()
    }

    /// Hands the error to the supervisor, which ends the process.
    pub(crate) fn take_fatal(&mut self) -> Option<FatalError> {
        self.fatal.take()
    }

    /// Requests the end of the process. The strongest request takes effect.
    pub(crate) fn request(&mut self, shutdown: Shutdown) {
        self.shutdown = self.shutdown.max(Some(shutdown));
    }

    pub(crate) fn requested(&self) -> Option<Shutdown> {
        self.shutdown
    }

    pub(crate) fn make_stale(&mut self) {
        self.stale = true;
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }
}

#[cfg(test)]
mod tests;
