//! What waits to be written: events as they are, responses as lines.

use std::sync::Arc;

use pinion_agent::Event;
use pinion_jsonl::{DeltaText, Outgoing, Queue};
use serde_json::Value;

/// What surrounds the text in a line that tells what a command printed.
const PRINTED_FRAME: usize = 64;

/// Where a session puts what is to be written.
pub trait Sink: Clone + Send + Sync + 'static {
    /// Adds one thing. Never blocks.
    fn push(&self, out: Out);

    /// Whether progress may go on.
    fn has_room(&self) -> bool;

    /// Waits until progress may go on.
    fn room(&self) -> impl Future<Output = ()> + Send;

    /// Waits until there is room for the answers to more questions.
    fn room_for_answers(&self) -> impl Future<Output = ()> + Send;

    /// Waits until nobody reads any more; for ever where that is somebody else's business.
    fn broken(&self) -> impl Future<Output = ()> + Send;
}

impl Sink for Queue<Out> {
    fn push(&self, out: Out) {
        self.push(out);
    }

    fn has_room(&self) -> bool {
        self.has_room()
    }

    fn room(&self) -> impl Future<Output = ()> + Send {
        self.room()
    }

    fn room_for_answers(&self) -> impl Future<Output = ()> + Send {
        self.room_for_answers()
    }

    fn broken(&self) -> impl Future<Output = ()> + Send {
        self.broken()
    }
}

/// One thing to write.
#[derive(Debug)]
pub enum Out {
    /// A line, with its LF.
    Record(Vec<u8>),
    /// An event that is written as it is.
    Event {
        /// What happened.
        event: Event,
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
    /// A command of the client printed something; consecutive pieces of one command merge while the
    /// reader is slow.
    Printed {
        /// Which command.
        by: Arc<AskedId>,
        /// What it printed.
        text: String,
    },
}

/// The id of one command of the client, if it had one. Commands are told apart by where it is kept.
#[derive(Debug)]
pub struct AskedId(pub(crate) Option<Value>);

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
                *weight = next_weight;
                Ok(())
            }
            // A tool's update replaces the one before.
            (
                Self::Event {
                    event: Event::ToolUpdate { run, output },
                    weight,
                },
                Self::Event {
                    event:
                        Event::ToolUpdate {
                            run: next_run,
                            output: newer,
                        },
                    weight: next_weight,
                },
            ) if Arc::ptr_eq(run, &next_run) => {
                *output = newer;
                *weight = next_weight;
                Ok(())
            }
            (
                Self::Printed { by, text },
                Self::Printed {
                    by: next_by,
                    text: more,
                },
            ) if Arc::ptr_eq(by, &next_by) => {
                text.push_str(&more);
                Ok(())
            }
            (_, next) => Err(next),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Record(line) => line.len(),
            Self::Event { weight, .. } | Self::Delta { weight, .. } => *weight,
            Self::Printed { text, .. } => PRINTED_FRAME + text.len(),
        }
    }
}
