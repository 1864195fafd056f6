//! What waits to be written: engine events as they are, and the frames around them.

use std::time::Instant;

use pinion_agent::Event;
use pinion_jsonl::{DeltaText, Outgoing, Queue};

use crate::frames::Address;
use crate::patch::PatchMode;
use crate::pb::Text;
use crate::requests::{Code, DoneStatus};
use crate::translate::RunStart;
use crate::verdict::RunEnd;

/// About how many bytes of a line are not text.
pub(crate) const FRAME: usize = 1024;

/// One thing to write.
#[derive(Debug)]
pub enum Out {
    /// The engine told something.
    Event {
        /// What happened.
        event: Event,
        /// When.
        at: Instant,
        /// About how many bytes it takes on the wire.
        weight: usize,
    },
    /// A block of the answer grew; consecutive ones of one block merge while the reader is slow.
    Delta {
        /// Position of the block.
        index: usize,
        /// What was added.
        text: DeltaText,
        /// About how many bytes it takes on the wire.
        weight: usize,
    },
    /// A run begins.
    RunBegins {
        /// What is known of it.
        start: Box<RunStart>,
        /// The request that asked for it; empty where there is none.
        request_id: Text,
    },
    /// The run is over.
    RunEnded {
        /// How.
        end: RunEnd,
        /// When.
        at: Instant,
        /// What follows the terminal event.
        closing: Closing,
    },
    /// A frame that is not about an event.
    Control {
        /// Whose it is.
        address: Address,
        /// What it says.
        control: Control,
    },
}

/// What follows the terminal event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// A snapshot, an error if the run failed, and `done`.
    Request {
        /// Whether the error ends the stream.
        terminal: Terminal,
    },
    /// Nothing: the stream goes on with the next run.
    Nothing,
}

/// Whether an error ends the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// It does.
    Yes,
    /// It belongs to one request.
    No,
}

/// A frame that is not about an event.
#[derive(Debug, Clone)]
pub enum Control {
    /// The first frame.
    Hello(Surface),
    /// What the session looks like now.
    Snapshot,
    /// Something went wrong.
    Error {
        /// What, as a name that does not change.
        code: Code,
        /// What, in words.
        message: String,
        /// Whether that is the end.
        terminal: Terminal,
    },
    /// A request is over.
    Done(DoneStatus),
}

/// What kind of stream it is, which `hello` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// One run.
    OneShot,
    /// Requests on stdin.
    Stdin,
    /// A file beside what a person reads.
    DebugFile,
}

impl Surface {
    /// What a client may expect, in the order it is told.
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
                *weight = next_weight.max(FRAME + text.as_str().len());
                Ok(())
            }
            (_, next) => Err(next),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Event { weight, .. } | Self::Delta { weight, .. } => *weight,
            Self::RunBegins { start, .. } => FRAME + 3 * start.prompt.len(),
            Self::RunEnded { .. } | Self::Control { .. } => FRAME,
        }
    }
}

/// A run that was told to have begun. It ends exactly once: dropping it ends it as failed.
#[derive(Debug)]
pub struct ActiveRun {
    queue: Queue<Out>,
    closing: Closing,
    is_over: bool,
}

impl ActiveRun {
    /// Tells that a run begins.
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

    /// Tells that it is over.
    pub fn end(mut self, end: RunEnd) {
        self.tell(end);
    }

    fn tell(&mut self, end: RunEnd) {
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
        let words = "the run was given up before it had a result (internal error)";
        self.tell(RunEnd::Failed(words.into()));
    }
}

impl PatchMode {
    /// Whether every patch repeats what came before it.
    pub(crate) fn repeats(self) -> bool {
        self == Self::Snapshot
    }
}
