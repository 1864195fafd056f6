//! The early protocol (pi 0.12 and 0.13): three commands, events only.
//!
//! Commands get no response; failures are `error` events. A prompt produces one `agent_start` and one `agent_end`:
//! retries and other continuations, which later releases added, are part of one run, and `agent_end` is sent when the
//! session is idle.

mod attachments;
pub(crate) mod commands;
mod decode;

use std::sync::Arc;

use pinion_agent::{CompactionReason, CompactionResult, Event, ToolOutput};
use pinion_jsonl::{Records, json};
use pinion_message::{Block, Message};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::attachments::{DOCUMENT, blocks as attached_blocks};
pub(crate) use self::decode::decode;
use crate::classic::Classic;
use crate::dialect::Dialect;
use crate::lines::{EventLine, Printer};
use crate::wire::WireMessages;

/// Prints events as pi 0.13 does.
#[derive(Debug)]
pub(crate) struct Early {
    /// Prints the lines that the classic dialect has too.
    later: Classic,
    printer: Printer,
    run: Run,
}

/// The state of a prompt's run.
#[derive(Debug, Default)]
enum Run {
    #[default]
    None,
    Active(Vec<Arc<Message>>),
    /// The run ended, but another one may continue it.
    Ended(Vec<Arc<Message>>),
}

/// A line that only the early dialect has.
#[derive(Serialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[schemars(extend("x-suffix" = "Event"))]
pub(crate) enum EarlyLine<'a> {
    /// An invalid line, or a failed prompt or compaction.
    #[schemars(extend("x-until" = "early"))]
    Error {
        #[schemars(length(min = 1))]
        error: &'a str,
    },
    /// A compaction ended.
    #[schemars(extend("x-until" = "early"))]
    Compaction {
        timestamp: &'a str,
        summary: &'a str,
        /// Position of the first entry that is not summarised; the header of the session is 0.
        first_kept_entry_index: usize,
        /// Size of the context before, in tokens.
        tokens_before: u64,
        /// The compaction was automatic.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        auto: bool,
    },
    /// A tool call failed.
    #[schemars(title = "ToolExecutionFailedEvent", extend("x-until" = "early"))]
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        /// The text of the failed result.
        result: &'a str,
        #[schemars(extend("const" = true))]
        is_error: bool,
    },
}

impl EarlyLine<'_> {
    /// Prints the line with its LF.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut line = json::to_vec(self);
        line.push(b'\n');
        line
    }
}

impl Default for Early {
    fn default() -> Self {
        Self {
            later: Classic::for_early(),
            printer: Printer::default(),
            run: Run::None,
        }
    }
}

impl Early {
    /// Prints an event.
    pub fn event(&mut self, event: &Event, records: &mut Records) {
        match event {
            Event::AgentStart => self.start(records),
            Event::AgentEnd { messages, .. } => self.end(messages),
            Event::Settled { .. } => self.settle(records),
            Event::ToolEnd {
                run,
                output,
                is_error: true,
                ..
            } => {
                let line = EarlyLine::ToolExecutionEnd {
                    tool_call_id: &run.call_id,
                    tool_name: &run.name,
                    result: &text_of(output),
                    is_error: true,
                };
                self.printer.print(&line, records);
            }
            Event::CompactionEnd {
                reason,
                result,
                error,
                ..
            } => self.compaction(*reason, result.as_deref(), error.as_deref(), records),
            Event::Fault {
                source,
                during,
                error,
            } => self.error(&format!("{source}: {during}: {error}"), records),
            Event::TurnStart
            | Event::TurnEnd { .. }
            | Event::MessageStart(_)
            | Event::MessageEnd(_)
            | Event::BlockStart { .. }
            | Event::BlockDelta { .. }
            | Event::BlockEnd { .. }
            | Event::UsageUpdate(_)
            | Event::ToolStart(_)
            | Event::ToolEnd { .. } => self.later.event(event, records),
            // Retries show in the failed answer and the continued run; for the rest early clients have no command.
            Event::RetryStart { .. }
            | Event::RetryEnd { .. }
            | Event::CompactionStart { .. }
            | Event::SummaryRetryScheduled { .. }
            | Event::SummaryRetryStart(_)
            | Event::SummaryRetryFinished
            | Event::EntryAppended(_)
            | Event::ToolUpdate { .. }
            | Event::CallDetail(_)
            | Event::QueueUpdate { .. }
            | Event::ThinkingLevelChanged(_)
            | Event::SessionInfoChanged(_) => {}
        }
    }

    /// Prints a delta of a block.
    pub fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        self.later.delta(index, delta, records);
    }

    fn start(&mut self, records: &mut Records) {
        self.run = match std::mem::take(&mut self.run) {
            Run::None => {
                self.printer.print(&EventLine::AgentStart, records);
                Run::Active(Vec::new())
            }
            Run::Active(messages) | Run::Ended(messages) => Run::Active(messages),
        };
    }

    fn end(&mut self, messages: &[Arc<Message>]) {
        let (Run::Active(mut all) | Run::Ended(mut all)) = std::mem::take(&mut self.run) else {
            return;
        };
        all.extend_from_slice(messages);
        self.run = Run::Ended(all);
    }

    fn settle(&mut self, records: &mut Records) {
        if let Run::Active(messages) | Run::Ended(messages) = std::mem::take(&mut self.run) {
            let line = EventLine::AgentEnd {
                messages: WireMessages::of(&messages, Dialect::Early),
                will_retry: None,
            };
            self.printer.print(&line, records);
        }
    }

    fn compaction(
        &mut self,
        reason: CompactionReason,
        result: Option<&CompactionResult>,
        error: Option<&str>,
        records: &mut Records,
    ) {
        let auto = reason != CompactionReason::Manual;
        if let Some(result) = result {
            let line = EarlyLine::Compaction {
                timestamp: &result.saved.timestamp,
                summary: &result.summary,
                first_kept_entry_index: result.saved.first_kept_index,
                tokens_before: result.tokens_before,
                auto,
            };
            self.printer.print(&line, records);
        }
        // The error of a requested compaction is the answer to the command.
        if let Some(error) = error.filter(|_| auto) {
            self.error(error, records);
        }
    }

    fn error(&mut self, error: &str, records: &mut Records) {
        self.printer.print(&EarlyLine::Error { error }, records);
    }
}

fn text_of(output: &ToolOutput) -> String {
    let texts: Vec<&str> = output.content.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}
