//! Puts the engine's events into the queue of the writer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};
use pinion_jsonl::{DeltaText, Queue};
use pinion_message::{Block, Message};

use crate::outgoing::{FRAME_OVERHEAD, Out};
use crate::patch::PatchMode;

#[derive(Debug)]
pub struct ChatListener {
    queue: Queue<Out>,
    mode: PatchMode,
    /// Bytes of the block that grows.
    growing: AtomicUsize,
}

impl ChatListener {
    /// Creates a listener that fills `queue`; patches from it are written in `mode`.
    pub fn new(queue: Queue<Out>, mode: PatchMode) -> Self {
        Self {
            queue,
            mode,
            growing: AtomicUsize::new(0),
        }
    }

    fn weigh(&self, event: &Event) -> usize {
        match event {
            Event::BlockStart { .. } => {
                self.growing.store(0, Ordering::Relaxed);
                FRAME_OVERHEAD
            }
            Event::BlockEnd { block, .. } => FRAME_OVERHEAD + 2 * block_size(block),
            Event::MessageEnd(message) => match &**message {
                Message::Assistant(answer) => {
                    4 * FRAME_OVERHEAD + 2 * answer.content.iter().map(block_size).sum::<usize>()
                }
                _ => 0,
            },
            Event::ToolEnd { output, .. } => {
                2 * FRAME_OVERHEAD + output.content.iter().map(block_size).sum::<usize>()
            }
            _ => FRAME_OVERHEAD,
        }
    }
}

impl Listener for ChatListener {
    fn notice(&self, _ordinal: u64, event: &Event) {
        let out = match event {
            Event::BlockDelta { index, delta } => {
                let growing = self.growing.fetch_add(delta.len(), Ordering::Relaxed);
                let repeated = if self.mode.repeats() { growing } else { 0 };
                Out::Delta {
                    index: *index,
                    text: DeltaText::One(delta.clone()),
                    weight: FRAME_OVERHEAD + delta.len() + repeated,
                }
            }
            // A chat does not show them, and they may be large.
            Event::ToolUpdate { .. } => return,
            event => Out::Event {
                event: event.clone(),
                at: Instant::now(),
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

fn block_size(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.text.len(),
        Block::Thinking(thinking) => thinking.thinking.len(),
        Block::Image { data, .. } => data.len(),
        Block::ToolCall(_) => FRAME_OVERHEAD,
    }
}
