//! Prints events as lines of the modern dialect (pi 1.x).
//!
//! An update carries only the delta, for example
//! `{"type":"message_update","usage":{…},"assistantMessageEvent":{"type":"text_delta",
//! "contentIndex":0,"delta":"Hel"}}`, so the output is linear in the length of the answer. `usage` is the provider's
//! count so far. The `message_end` that follows has the whole answer.

use std::sync::Arc;

use pinion_agent::Event;
use pinion_jsonl::{Records, json};
use pinion_message::{AssistantMessage, Block, Message, StopReason, Usage};

use crate::dialect::Dialect;
use crate::lines::{BlockKind, EventLine, Printer, append_complete};
use crate::outgoing::CommandId;
use crate::wire::WireMessages;

/// Prints events as pi 1.x does.
#[derive(Debug, Default)]
pub(crate) struct Modern {
    printer: Printer,
    /// The kinds of the blocks of the streamed answer.
    blocks: Vec<BlockKind>,
    /// The JSON of the usage so far.
    usage: Vec<u8>,
    /// The beginning of an answer whose first block is not known yet.
    beginning: Option<Beginning>,
}

/// The beginning of an answer that is printed with its first piece, because the API sends both in one frame: pi prints
/// the answer as far as it has arrived.
#[derive(Debug)]
struct Beginning {
    answer: AssistantMessage,
    /// The updates of the first piece, to print after it.
    updates: Vec<Event>,
}

/// The APIs whose first frame has the beginning and the first piece of an answer.
const APIS_WITHOUT_START: [&str; 2] = ["google-generative-ai", "google-vertex"];

impl Modern {
    /// Prints an event.
    pub fn event(&mut self, event: &Event, records: &mut Records) {
        if self.begins(event) {
            return;
        }
        self.print_beginning(records);
        self.print(event, records);
    }

    /// Adds an event to the beginning of an answer. Returns false if the beginning is complete or there is none.
    fn begins(&mut self, event: &Event) -> bool {
        let Some(beginning) = &mut self.beginning else {
            let Event::MessageStart(message) = event else {
                return false;
            };
            let Message::Assistant(answer) = &**message else {
                return false;
            };
            let known_later = answer.stop_reason != StopReason::Error
                && APIS_WITHOUT_START.contains(&answer.api.as_str());
            self.beginning = known_later.then(|| Beginning {
                answer: answer.clone(),
                updates: Vec::new(),
            });
            return known_later;
        };
        match event {
            Event::UsageUpdate(usage) => beginning.answer.usage = *usage,
            Event::BlockStart { block, .. } if beginning.updates.is_empty() => {
                beginning.answer.content.push((**block).clone());
                beginning.updates.push(event.clone());
            }
            // A call arrives whole.
            Event::BlockDelta { .. }
                if matches!(beginning.answer.content.last(), Some(Block::ToolCall(_))) =>
            {
                beginning.updates.push(event.clone());
            }
            Event::BlockEnd { block, .. } => {
                if let Some(last) = beginning.answer.content.last_mut() {
                    *last = (**block).clone();
                }
                return false;
            }
            Event::BlockDelta { delta, .. } => {
                match beginning.answer.content.last_mut() {
                    Some(Block::Text(text)) => text.text.push_str(delta),
                    Some(Block::Thinking(thinking)) => thinking.thinking.push_str(delta),
                    _ => {}
                }
                return false;
            }
            _ => return false,
        }
        true
    }

    fn print_beginning(&mut self, records: &mut Records) {
        if let Some(Beginning { answer, updates }) = self.beginning.take() {
            self.print(
                &Event::MessageStart(Arc::new(Message::Assistant(answer))),
                records,
            );
            for update in &updates {
                self.print(update, records);
            }
        }
    }

    fn print(&mut self, event: &Event, records: &mut Records) {
        match event {
            Event::BlockStart { index, block } => self.block_start(*index, block, records),
            Event::BlockDelta { index, delta } => self.print_delta(*index, delta, records),
            Event::BlockEnd { index, block } => {
                let [.., end] = BlockKind::of(block).words();
                self.open_update(end, *index);
                append_complete(&mut self.printer.line, block);
                self.close_update(records);
            }
            Event::UsageUpdate(usage) => self.count(usage),
            event => {
                if let Event::MessageStart(message) = event
                    && let Message::Assistant(answer) = &**message
                {
                    self.blocks.clear();
                    self.count(&answer.usage);
                }
                if let Some(line) = line(event) {
                    self.printer.print(&line, records);
                }
            }
        }
    }

    fn count(&mut self, usage: &Usage) {
        self.usage.clear();
        json::append(&mut self.usage, usage);
    }

    fn block_start(&mut self, index: usize, block: &Block, records: &mut Records) {
        let kind = BlockKind::of(block);
        match self.blocks.get_mut(index) {
            Some(place) => *place = kind,
            None => self.blocks.push(kind),
        }
        let [start, ..] = kind.words();
        self.open_update(start, index);
        if let Block::ToolCall(call) = block {
            let line = &mut self.printer.line;
            line.extend_from_slice(br#","id":"#);
            json::append(line, &call.id);
            line.extend_from_slice(br#","toolName":"#);
            json::append(line, &call.name);
        }
        self.close_update(records);
    }

    /// Prints the output of a client's shell command.
    pub fn printed(&mut self, by: &CommandId, delta: &str, records: &mut Records) {
        let id = by.0.as_ref();
        self.printer
            .print(&EventLine::BashExecutionUpdate { id, delta }, records);
    }

    /// Prints a delta of a block.
    pub fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        if self.beginning.is_some() {
            let delta = delta.into();
            self.event(&Event::BlockDelta { index, delta }, records);
        } else {
            self.print_delta(index, delta, records);
        }
    }

    fn print_delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        let kind = self.blocks.get(index).copied().unwrap_or(BlockKind::Text);
        let [_, grown, _] = kind.words();
        self.open_update(grown, index);
        let line = &mut self.printer.line;
        line.extend_from_slice(br#","delta":""#);
        json::append_escaped(line, delta);
        line.push(b'"');
        self.close_update(records);
    }

    fn open_update(&mut self, kind: &str, index: usize) {
        let line = &mut self.printer.line;
        line.clear();
        line.extend_from_slice(br#"{"type":"message_update","usage":"#);
        line.extend_from_slice(&self.usage);
        line.extend_from_slice(br#","assistantMessageEvent":{"type":""#);
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(br#"","contentIndex":"#);
        json::append(line, &index);
    }

    fn close_update(&mut self, records: &mut Records) {
        self.printer.line.extend_from_slice(b"}}\n");
        records.push(&[&self.printer.line]);
    }
}

fn line(event: &Event) -> Option<EventLine<'_>> {
    match event {
        Event::AgentEnd {
            messages,
            will_retry,
        } => Some(EventLine::AgentEnd {
            messages: WireMessages::of(messages, Dialect::Modern),
            will_retry: Some(*will_retry),
        }),
        Event::Settled { aborted } => Some(EventLine::AgentSettled { aborted: *aborted }),
        Event::ToolEnd { duration, .. } => {
            let mut line = EventLine::common(event, Dialect::Modern);
            if let Some(EventLine::ToolExecutionEnd { duration_ms, .. }) = &mut line {
                *duration_ms = duration.map(|duration| duration.as_millis() as u64);
            }
            line
        }
        event => EventLine::since_extensions(event)
            .or_else(|| EventLine::since_classic(event, Dialect::Modern))
            .or_else(|| EventLine::common(event, Dialect::Modern)),
    }
}
