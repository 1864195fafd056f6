//! Puts the engine's events into the queue of the writer.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};

use pinion_jsonl::{DeltaText, Queue};
use pinion_message::{Block, Message};

use crate::Dialect;
use crate::outgoing::{Out, Sink};

/// Estimated bytes of an update without its message.
const FRAME_BYTES: usize = 512;

/// Puts events into the queue of a pi front.
#[derive(Debug)]
pub struct PiListener<S: Sink = Queue<Out>> {
    queue: S,
    /// The number of times that an update repeats the answer so far.
    repeats: usize,
    /// Size of the streamed answer in bytes.
    growing: AtomicUsize,
}

impl<S: Sink> PiListener<S> {
    /// Creates a listener for a queue whose events are printed in `dialect`.
    pub fn new(queue: S, dialect: Dialect) -> Self {
        Self {
            queue,
            repeats: match dialect {
                Dialect::Early | Dialect::Classic => 2,
                Dialect::Modern => 0,
            },
            growing: AtomicUsize::new(0),
        }
    }

    fn weigh(&self, event: &Event) -> usize {
        match event {
            Event::MessageStart(message) => {
                self.growing.store(0, Ordering::Relaxed);
                FRAME_BYTES + message_size(message)
            }
            Event::MessageEnd(message) => FRAME_BYTES + message_size(message),
            Event::TurnEnd {
                message,
                tool_results,
            } => FRAME_BYTES + message_size(message) + sizes(tool_results),
            Event::AgentEnd { messages, .. } => FRAME_BYTES + sizes(messages),
            Event::BlockStart { .. } | Event::BlockEnd { .. } => {
                FRAME_BYTES + self.repeats * self.growing.load(Ordering::Relaxed)
            }
            Event::ToolUpdate { output, .. } | Event::ToolEnd { output, .. } => {
                FRAME_BYTES + output.content.iter().map(block_size).sum::<usize>()
            }
            _ => FRAME_BYTES,
        }
    }
}

impl<S: Sink> Listener for PiListener<S> {
    fn notice(&self, _ordinal: u64, event: &Event) {
        let out = match event {
            Event::BlockDelta { index, delta } => {
                let growing = self.growing.fetch_add(delta.len(), Ordering::Relaxed) + delta.len();
                let text = DeltaText::One(delta.clone());
                Out::Delta {
                    index: *index,
                    text,
                    weight: FRAME_BYTES + delta.len() + self.repeats * growing,
                }
            }
            event => Out::Event {
                event: event.clone(),
                weight: self.weigh(event),
            },
        };
        self.queue.push(out);
    }

    fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.queue.room())
    }
}

fn sizes(messages: &[std::sync::Arc<Message>]) -> usize {
    messages.iter().map(|message| message_size(message)).sum()
}

fn message_size(message: &Message) -> usize {
    match message {
        Message::User(user) => match &user.content {
            pinion_message::Content::Text(text) => text.len(),
            pinion_message::Content::Blocks(blocks) => blocks.iter().map(block_size).sum(),
        },
        Message::Assistant(answer) => answer.content.iter().map(block_size).sum(),
        Message::ToolResult(result) => result.content.iter().map(block_size).sum(),
        _ => 0,
    }
}

fn block_size(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.text.len(),
        Block::Thinking(thinking) => thinking.thinking.len(),
        Block::Image { data, .. } => data.len(),
        Block::ToolCall(_) => FRAME_BYTES,
    }
}
