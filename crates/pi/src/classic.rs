//! Prints events as lines of the classic dialect (pi 0.52).
//!
//! An update is, for example, `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,
//! "delta":"Hel","partial":{…}},"message":{…}}`. `partial` and `message` are the answer so far. Events that pi 0.52
//! does not have are left out, except `agent_settled`, unless extensions are loaded: extensions are written for pi 0.73,
//! and so are the clients that use them.

use pinion_agent::{CompactionReason, Event};
use pinion_jsonl::{Records, json};
use pinion_message::{Block, Message};

use crate::dialect::Dialect;
use crate::lines::{BlockKind, CompactionView, EventLine, Printer, append_complete};
use crate::partial_answer::PartialAnswer;

/// Prints events as pi 0.52 does.
#[derive(Debug, Default)]
pub(crate) struct Classic {
    partial: PartialAnswer,
    printer: Printer,
    additions: Additions,
    dialect: Dialect,
}

/// Events that are sent although pi 0.52 does not have them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Additions {
    #[default]
    None,
    /// The events of pi 0.73.
    OfExtensions,
}

impl Classic {
    /// Creates a projection with the events in `additions`.
    pub fn new(additions: Additions) -> Self {
        Self {
            additions,
            ..Self::default()
        }
    }

    /// Creates a projection for the lines that the early dialect has in common with this one.
    pub fn for_early() -> Self {
        Self {
            dialect: Dialect::Early,
            ..Self::default()
        }
    }

    /// Prints an event.
    pub fn event(&mut self, event: &Event, records: &mut Records) {
        match event {
            Event::BlockStart { index, block } => self.block_start(*index, block, records),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, records),
            Event::BlockEnd { index, block } => self.block_end(*index, block, records),
            Event::UsageUpdate(usage) => self.partial.usage(*usage),
            event => {
                if let Event::MessageStart(message) = event
                    && let Message::Assistant(answer) = &**message
                {
                    self.partial.start(answer);
                }
                if let Some(line) = self.line(event) {
                    self.printer.print(&line, records);
                }
            }
        }
    }

    fn line<'a>(&self, event: &'a Event) -> Option<EventLine<'a>> {
        // Clients of pi since 0.80 wait for it; older ones ignore events they do not know.
        if let Event::Settled { aborted } = event
            && self.dialect == Dialect::Classic
        {
            return Some(EventLine::AgentSettled { aborted: *aborted });
        }
        let dated = match self.additions {
            Additions::None => automatic_compaction(event),
            Additions::OfExtensions => EventLine::since_classic(event, self.dialect),
        };
        dated.or_else(|| EventLine::common(event, self.dialect))
    }

    fn block_start(&mut self, index: usize, block: &Block, records: &mut Records) {
        self.partial.block_start(index, block);
        let [start, ..] = BlockKind::of(block).words();
        self.open_update(start, index);
        self.close_update(records);
    }

    /// Prints a delta of a block.
    pub fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        let [_, grown, _] = self.partial.kind(index).words();
        self.partial.delta(index, delta);
        self.open_update(grown, index);
        let line = &mut self.printer.line;
        line.extend_from_slice(br#","delta":""#);
        json::append_escaped(line, delta);
        line.push(b'"');
        self.close_update(records);
    }

    fn block_end(&mut self, index: usize, block: &Block, records: &mut Records) {
        self.partial.block_end(index, block);
        let [.., end] = BlockKind::of(block).words();
        self.open_update(end, index);
        append_complete(&mut self.printer.line, block);
        self.close_update(records);
    }

    fn open_update(&mut self, kind: &str, index: usize) {
        let line = &mut self.printer.line;
        line.clear();
        line.extend_from_slice(br#"{"type":"message_update","assistantMessageEvent":{"type":""#);
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(br#"","contentIndex":"#);
        json::append(line, &index);
    }

    /// Writes the update: the printed beginning, then the answer so far, twice.
    fn close_update(&mut self, records: &mut Records) {
        let mut slices: Vec<&[u8]> = Vec::with_capacity(16);
        slices.push(&self.printer.line);
        slices.push(br#","partial":"#);
        self.partial.slices(&mut slices);
        slices.push(br#"},"message":"#);
        self.partial.slices(&mut slices);
        slices.push(b"}\n");
        records.push(&slices);
    }
}

/// Returns the line of an automatic compaction in the form of pi 0.52.
fn automatic_compaction(event: &Event) -> Option<EventLine<'_>> {
    match event {
        Event::CompactionStart { reason } if *reason != CompactionReason::Manual => {
            Some(EventLine::AutoCompactionStart { reason: *reason })
        }
        Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error,
        } if *reason != CompactionReason::Manual => Some(EventLine::AutoCompactionEnd {
            result: result
                .as_deref()
                .map(|result| CompactionView::of(result, Dialect::Classic)),
            aborted: *aborted,
            will_retry: *will_retry,
            error_message: error.as_deref(),
        }),
        _ => None,
    }
}
