//! The growing answer, kept as JSON that is only ever appended to.
//!
//! Every classic update repeats the whole answer twice. Printing it anew each time would cost the
//! square of its length in work; here each block's JSON is kept up to the end of its text, an update
//! appends the escaped delta, and a line is put together from slices.

use pinion_jsonl::json;
use pinion_message::{AssistantMessage, Block, Message, Usage};

use crate::arguments::Arguments;
use crate::dialect::Dialect;
use crate::lines::BlockKind;
use crate::wire::WireMessage;

/// The JSON of an answer while it grows.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    blocks: Vec<GrowingBlock>,
    message: Option<AssistantMessage>,
    /// From the end of the blocks to the end of the message.
    tail: Vec<u8>,
}

#[derive(Debug)]
struct GrowingBlock {
    /// The block's JSON up to where it grows, or all of it once it is complete.
    head: Vec<u8>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Complete,
    /// A text or thinking block: `head` ends inside the string.
    Text,
    /// A tool call: `head` ends before the arguments.
    Call(Box<Arguments>),
}

const OPEN: &[u8] = br#"{"role":"assistant","content":["#;
const COMMA: &[u8] = b",";
const TEXT_END: &[u8] = br#""}"#;
const CALL_END: &[u8] = b"}";

impl Growing {
    /// Begins a new answer.
    pub fn start(&mut self, message: &AssistantMessage) {
        self.blocks.clear();
        self.message = Some(AssistantMessage {
            content: Vec::new(),
            ..message.clone()
        });
        self.print_tail();
    }

    /// The provider counted tokens.
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
            .extend_from_slice(printed.get(OPEN.len()..).unwrap_or(b"]}"));
    }

    /// A block begins.
    pub fn block_start(&mut self, index: usize, block: &Block) {
        let mut head = Vec::new();
        let kind = match block {
            Block::Text(text) => {
                head.extend_from_slice(br#"{"type":"text","text":""#);
                json::append_escaped(&mut head, &text.text);
                Kind::Text
            }
            Block::Thinking(thinking) if thinking.redacted.is_none() => {
                head.extend_from_slice(br#"{"type":"thinking","thinking":""#);
                json::append_escaped(&mut head, &thinking.thinking);
                Kind::Text
            }
            Block::ToolCall(call) => {
                head.extend_from_slice(br#"{"type":"toolCall","id":"#);
                json::append(&mut head, &call.id);
                head.extend_from_slice(br#","name":"#);
                json::append(&mut head, &call.name);
                head.extend_from_slice(br#","arguments":"#);
                Kind::Call(Box::default())
            }
            other => {
                json::append(&mut head, other);
                Kind::Complete
            }
        };
        self.put(index, GrowingBlock { head, kind });
    }

    /// A block grows.
    pub fn delta(&mut self, index: usize, delta: &str) {
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        match &mut block.kind {
            Kind::Text => json::append_escaped(&mut block.head, delta),
            Kind::Call(arguments) => arguments.push(delta),
            Kind::Complete => {}
        }
    }

    /// A block is complete.
    pub fn block_end(&mut self, index: usize, block: &Block) {
        let head = json::to_vec(block);
        self.put(
            index,
            GrowingBlock {
                head,
                kind: Kind::Complete,
            },
        );
    }

    fn put(&mut self, index: usize, block: GrowingBlock) {
        match self.blocks.get_mut(index) {
            Some(place) => *place = block,
            None => self.blocks.push(block),
        }
    }

    /// What kind of block grows at `index`.
    pub fn kind(&self, index: usize) -> BlockKind {
        match self.blocks.get(index) {
            Some(block) if matches!(block.kind, Kind::Call(_)) => BlockKind::Call,
            Some(block) if block.head.starts_with(br#"{"type":"thinking""#) => BlockKind::Thinking,
            _ => BlockKind::Text,
        }
    }

    /// Adds the slices of the message as it is now.
    pub fn slices<'a>(&'a self, slices: &mut Vec<&'a [u8]>) {
        slices.push(OPEN);
        for (at, block) in self.blocks.iter().enumerate() {
            if at > 0 {
                slices.push(COMMA);
            }
            slices.push(&block.head);
            match &block.kind {
                Kind::Complete => {}
                Kind::Text => slices.push(TEXT_END),
                Kind::Call(arguments) => {
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
