//! The items of the output queue: events, and responses as complete lines.

use std::sync::Arc;

use pinion_agent::Event;
use pinion_jsonl::{DeltaText, Outgoing, Queue};
use serde_json::Value;

/// Bytes of a line with a command's output, without the output.
const PRINTED_FRAME_BYTES: usize = 64;

/// The output queue of a session.
pub trait Sink: Clone + Send + Sync + 'static {
    /// Adds an item. Never blocks.
    fn push(&self, out: Out);

    /// Reports whether the queue has room for more progress.
    fn has_room(&self) -> bool;

    /// Waits until the queue has room for more progress.
    fn room(&self) -> impl Future<Output = ()> + Send;

    /// Waits until the queue has room for the responses to more commands.
    fn room_for_answers(&self) -> impl Future<Output = ()> + Send;

    /// Returns when the client no longer reads; never, if the queue is watched elsewhere.
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

/// An item to write.
#[derive(Debug)]
pub enum Out {
    /// A complete line with its LF.
    Record(Vec<u8>),
    /// An event, printed by the writer.
    Event {
        event: Event,
        /// Estimated bytes on the wire.
        weight: usize,
    },
    /// A delta of a block; consecutive deltas of one block merge while the reader is slow.
    Delta {
        /// Position of the block.
        index: usize,
        /// The added text.
        text: DeltaText,
        /// Estimated bytes on the wire.
        weight: usize,
    },
    /// Output of a client's shell command; consecutive pieces of one command merge while the reader is slow.
    Printed {
        /// The command.
        by: Arc<CommandId>,
        /// The output.
        text: String,
    },
    /// Extensions have handled the start of the session; see [`Projection::quiet`](crate::Projection::quiet).
    Begun,
}

/// The request id of one command, if it has one. Two commands may have the same id; they are distinguished by the
/// address of this value.
#[derive(Debug)]
pub struct CommandId(pub(crate) Option<Value>);

impl Out {
    /// Creates a line from a record of an extension or an approval.
    pub fn line(record: String) -> Self {
        let mut line = record.into_bytes();
        line.push(b'\n');
        Self::Record(line)
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
            Self::Printed { text, .. } => PRINTED_FRAME_BYTES + text.len(),
            Self::Begun => 0,
        }
    }
}
