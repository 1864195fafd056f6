//! The items of the output queue: engine events, and the frames around them.

use std::time::Instant;

use pinion_agent::Event;
use pinion_jsonl::{DeltaText, Outgoing, Queue};

use crate::frames::Address;
use crate::patch::PatchMode;
use crate::pb::Text;
use crate::requests::{DoneStatus, ErrorCode};
use crate::run_end::RunEnd;
use crate::translate::RunStart;

/// Approximate bytes of a line besides its text.
pub(crate) const FRAME_OVERHEAD: usize = 1024;

/// One item to write.
#[derive(Debug)]
pub enum Out {
    /// An event of the engine.
    Event {
        event: Event,
        at: Instant,
        /// Approximate bytes on the wire.
        weight: usize,
    },
    /// A block of the answer grew. Consecutive deltas of one block merge while the reader is slow.
    Delta {
        /// The position of the block.
        index: usize,
        /// The added text.
        text: DeltaText,
        /// Approximate bytes on the wire.
        weight: usize,
    },
    /// A run begins.
    RunBegins {
        start: Box<RunStart>,
        /// The request that started it; empty if there is none.
        request_id: Text,
    },
    /// The run has ended.
    RunEnded {
        end: RunEnd,
        at: Instant,
        /// The frames after the terminal event.
        closing: Closing,
    },
    /// A frame that is not an event.
    Control { address: Address, control: Control },
}

/// The frames after the terminal event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// A snapshot, an error if the run failed, and `done`.
    Request {
        /// Decides whether the error ends the stream.
        terminal: Terminal,
    },
    /// No frames: the stream continues with the next run.
    Nothing,
}

/// The scope of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The error ends the stream.
    Yes,
    /// The error belongs to one request.
    No,
}

/// A frame that is not an event.
#[derive(Debug, Clone)]
pub enum Control {
    /// The first frame.
    Hello(Surface),
    /// The current state of the session.
    Snapshot,
    /// An error.
    Error {
        /// The stable name of the error.
        code: ErrorCode,
        /// A message for people.
        message: String,
        /// Decides whether the error ends the stream.
        terminal: Terminal,
    },
    /// The end of a request.
    Done(DoneStatus),
}

/// The kind of stream, which `hello` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// One run.
    OneShot,
    /// Requests on standard input.
    Stdin,
    /// A debug file beside the output for people.
    DebugFile,
}

impl Surface {
    /// Returns the capabilities for `hello`, in their order.
    pub fn capabilities(self) -> &'static [&'static str] {
        match self {
            Self::OneShot => &["ui-events", "snapshot", "done"],
            Self::Stdin => &[
                "ui-events",
                "snapshot",
                "done",
                "stdin-rpc",
                "single-session",
                "multi-turn",
                "cancel",
            ],
            Self::DebugFile => &["ui-events", "snapshot", "done", "debug-log"],
        }
    }
}

impl Outgoing for Out {
    fn absorb(&mut self, next: Self) -> Result<(), Self> {
        match (self, next) {
            (
                Self::Delta {
                    index,
                    text,
                    weight,
                },
                Self::Delta {
                    index: next_index,
                    text: more,
                    weight: next_weight,
                },
            ) if *index == next_index => {
                text.push(&more);
                *weight = next_weight.max(FRAME_OVERHEAD + text.as_str().len());
                Ok(())
            }
            (_, next) => Err(next),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Event { weight, .. } | Self::Delta { weight, .. } => *weight,
            Self::RunBegins { start, .. } => FRAME_OVERHEAD + 3 * start.prompt.len(),
            Self::RunEnded { .. } | Self::Control { .. } => FRAME_OVERHEAD,
        }
    }
}

/// A run whose beginning was reported. It ends exactly once: dropping it ends it as failed.
#[derive(Debug)]
pub struct ActiveRun {
    queue: Queue<Out>,
    closing: Closing,
    is_over: bool,
}

impl ActiveRun {
    /// Reports the beginning of a run.
    pub fn begin(queue: &Queue<Out>, start: RunStart, request_id: Text, closing: Closing) -> Self {
        queue.push(Out::RunBegins {
            start: Box::new(start),
            request_id,
        });
        Self {
            queue: queue.clone(),
            closing,
            is_over: false,
        }
    }

    /// Reports the end of the run.
    pub fn end(mut self, end: RunEnd) {
        self.report(end);
    }

    fn report(&mut self, end: RunEnd) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.queue.push(Out::RunEnded {
            end,
            at: Instant::now(),
            closing: self.closing,
        });
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let message = "the run ended without a result (internal error)";
        self.report(RunEnd::Failed(message.into()));
    }
}

impl PatchMode {
    /// Reports whether every patch repeats the text before it.
    pub(crate) fn repeats(self) -> bool {
        self == Self::Snapshot
    }
}
