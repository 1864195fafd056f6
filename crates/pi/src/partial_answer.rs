//! The streamed answer as JSON that is only appended to.
//!
//! Every classic update repeats the whole answer twice. Printing it again each time would take time quadratic in its
//! length. Instead each block's JSON is stored up to the end of its text, an update appends the escaped delta, and a
//! line is assembled from slices.

use pinion_jsonl::json;
use pinion_message::{AssistantMessage, Block, Message, Usage};

use crate::dialect::Dialect;
use crate::lines::BlockKind;
use crate::partial_arguments::PartialArguments;
use crate::wire::WireMessage;

/// The JSON of a streamed answer.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    blocks: Vec<PartialBlock>,
    message: Option<AssistantMessage>,
    /// The JSON from the end of the blocks to the end of the message.
    tail: Vec<u8>,
}

#[derive(Debug)]
struct PartialBlock {
    /// The block's JSON up to the point where it grows; the whole JSON of a complete block.
    head: Vec<u8>,
    kind: PartialKind,
}

#[derive(Debug)]
enum PartialKind {
    Complete,
    /// A text or thinking block: `head` ends inside the string.
    Text,
    /// A tool call: `head` ends before the arguments.
    Call(Box<PartialArguments>),
}

const ANSWER_START: &[u8] = br#"{"role":"assistant","content":["#;
const COMMA: &[u8] = b",";
const TEXT_END: &[u8] = br#""}"#;
const CALL_END: &[u8] = b"}";

impl PartialAnswer {
    /// Starts a new answer.
    pub fn start(&mut self, message: &AssistantMessage) {
        self.blocks.clear();
        self.message = Some(AssistantMessage {
            content: Vec::new(),
            ..message.clone()
        });
        self.print_tail();
    }

    /// Sets the usage that the provider reported.
    pub fn usage(&mut self, usage: Usage) {
        if let Some(message) = &mut self.message {
            message.usage = usage;
        }
        self.print_tail();
    }

    fn print_tail(&mut self) {
        let Some(message) = &self.message else { return };
        let printed = json::to_vec(&WireMessage::of(
            &Message::Assistant(message.clone()),
            Dialect::Classic,
        ));
        self.tail.clear();
        self.tail
            .extend_from_slice(printed.get(ANSWER_START.len()..).unwrap_or(b"]}"));
    }

    /// Adds a block.
    pub fn block_start(&mut self, index: usize, block: &Block) {
        let mut head = Vec::new();
        let kind = match block {
            Block::Text(text) => {
                head.extend_from_slice(br#"{"type":"text","text":""#);
                json::append_escaped(&mut head, &text.text);
                PartialKind::Text
            }
            Block::Thinking(thinking) if thinking.redacted.is_none() => {
                head.extend_from_slice(br#"{"type":"thinking","thinking":""#);
                json::append_escaped(&mut head, &thinking.thinking);
                PartialKind::Text
            }
            Block::ToolCall(call) => {
                head.extend_from_slice(br#"{"type":"toolCall","id":"#);
                json::append(&mut head, &call.id);
                head.extend_from_slice(br#","name":"#);
                json::append(&mut head, &call.name);
                head.extend_from_slice(br#","arguments":"#);
                PartialKind::Call(Box::default())
            }
            other => {
                json::append(&mut head, other);
                PartialKind::Complete
            }
        };
        self.put(index, PartialBlock { head, kind });
    }

    /// Appends to a block.
    pub fn delta(&mut self, index: usize, delta: &str) {
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        match &mut block.kind {
            PartialKind::Text => json::append_escaped(&mut block.head, delta),
            PartialKind::Call(arguments) => arguments.push(delta),
            PartialKind::Complete => {}
        }
    }

    /// Replaces a block by its complete form.
    pub fn block_end(&mut self, index: usize, block: &Block) {
        let head = json::to_vec(block);
        self.put(
            index,
            PartialBlock {
                head,
                kind: PartialKind::Complete,
            },
        );
    }

    fn put(&mut self, index: usize, block: PartialBlock) {
        match self.blocks.get_mut(index) {
            Some(place) => *place = block,
            None => self.blocks.push(block),
        }
    }

    /// Returns the kind of the block at `index`.
    pub fn kind(&self, index: usize) -> BlockKind {
        match self.blocks.get(index) {
            Some(block) if matches!(block.kind, PartialKind::Call(_)) => BlockKind::Call,
            Some(block) if block.head.starts_with(br#"{"type":"thinking""#) => BlockKind::Thinking,
            _ => BlockKind::Text,
        }
    }

    /// Adds the slices of the current message.
    pub fn slices<'a>(&'a self, slices: &mut Vec<&'a [u8]>) {
        slices.push(ANSWER_START);
        for (at, block) in self.blocks.iter().enumerate() {
            if at > 0 {
                slices.push(COMMA);
            }
            slices.push(&block.head);
            match &block.kind {
                PartialKind::Complete => {}
                PartialKind::Text => slices.push(TEXT_END),
                PartialKind::Call(arguments) => {
                    let (head, tail) = arguments.snapshot();
                    slices.push(head);
                    slices.push(tail);
                    slices.push(CALL_END);
                }
            }
        }
        slices.push(&self.tail);
    }
}
