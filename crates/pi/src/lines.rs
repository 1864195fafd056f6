//! The lines that tell of events, of all dialects; updates of a growing answer are put together
//! from slices where they are printed.
//!
//! One JSON object per line, told apart by `type`; members are in the order pi prints them.

use pinion_agent::{CompactionReason, CompactionResult, Event, ToolOutput};
use pinion_jsonl::{Records, json};
use pinion_message::{Block, ThinkingLevel};
use serde::Serialize;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::wire::{WireMessage, WireMessages};

/// A tool's output on the wire.
#[derive(Serialize)]
pub(crate) struct OutputView<'a> {
    content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminate: bool,
}

impl<'a> OutputView<'a> {
    pub fn of(output: &'a ToolOutput) -> Self {
        Self {
            content: &output.content,
            details: output.details.as_ref(),
            terminate: output.terminate,
        }
    }
}

/// One line that tells of an event.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Line<'a> {
    AgentStart,
    TurnStart,
    AgentEnd {
        messages: WireMessages<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        will_retry: Option<bool>,
    },
    AgentSettled {
        aborted: bool,
    },
    TurnEnd {
        message: WireMessage<'a>,
        tool_results: WireMessages<'a>,
    },
    MessageStart {
        message: WireMessage<'a>,
    },
    MessageEnd {
        message: WireMessage<'a>,
    },
    ToolExecutionStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
    },
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
        partial_result: OutputView<'a>,
    },
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: OutputView<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    AutoCompactionStart {
        reason: CompactionReason,
    },
    AutoCompactionEnd {
        result: Option<&'a CompactionResult>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<&'a str>,
    },
    CompactionStart {
        reason: CompactionReason,
    },
    CompactionEnd {
        reason: CompactionReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a CompactionResult>,
        aborted: bool,
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    QueueUpdate {
        steering: &'a [String],
        follow_up: &'a [String],
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    SessionInfoChanged {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    ExtensionError {
        extension_path: &'a str,
        event: &'a str,
        error: &'a str,
    },
}

impl<'a> Line<'a> {
    /// The line of an event that all releases since pi 0.52 print alike.
    pub fn lasting(event: &'a Event, dialect: Dialect) -> Option<Self> {
        Some(match event {
            Event::AgentStart => Self::AgentStart,
            Event::TurnStart => Self::TurnStart,
            Event::AgentEnd { messages, .. } => Self::AgentEnd {
                messages: WireMessages::of(messages, dialect),
                will_retry: None,
            },
            Event::TurnEnd {
                message,
                tool_results,
            } => Self::TurnEnd {
                message: WireMessage::of(message, dialect),
                tool_results: WireMessages::of(tool_results, dialect),
            },
            Event::MessageStart(message) => Self::MessageStart {
                message: WireMessage::beginning(message, dialect),
            },
            Event::MessageEnd(message) => Self::MessageEnd {
                message: WireMessage::of(message, dialect),
            },
            Event::ToolStart(run) => Self::ToolExecutionStart {
                tool_call_id: &run.call_id,
                tool_name: &run.name,
                args: &run.arguments,
            },
            Event::ToolUpdate { run, output } => Self::ToolExecutionUpdate {
                tool_call_id: &run.call_id,
                tool_name: &run.name,
                args: &run.arguments,
                partial_result: OutputView::of(output),
            },
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => Self::ToolExecutionEnd {
                tool_call_id: &run.call_id,
                tool_name: &run.name,
                result: OutputView::of(output),
                is_error: *is_error,
                duration_ms: None,
            },
            Event::RetryStart {
                attempt,
                max_attempts,
                delay,
                error,
            } => Self::AutoRetryStart {
                attempt: *attempt,
                max_attempts: *max_attempts,
                delay_ms: delay.as_millis() as u64,
                error_message: error,
            },
            Event::RetryEnd {
                success,
                attempt,
                final_error,
            } => Self::AutoRetryEnd {
                success: *success,
                attempt: *attempt,
                final_error: final_error.as_deref(),
            },
            Event::Fault {
                source,
                during,
                error,
            } => Self::ExtensionError {
                extension_path: source,
                event: during,
                error,
            },
            _ => return None,
        })
    }

    /// The line of an event that came between pi 0.53 and pi 0.73.
    pub fn since_classic(event: &'a Event) -> Option<Self> {
        Some(match event {
            Event::CompactionStart { reason } => Self::CompactionStart { reason: *reason },
            Event::CompactionEnd {
                reason,
                result,
                aborted,
                will_retry,
                error,
            } => {
                let error = error.as_deref().filter(|_| !aborted);
                let error_message = match reason {
                    CompactionReason::Manual => {
                        error.map(|error| format!("Compaction failed: {error}"))
                    }
                    _ => error.map(str::to_owned),
                };
                Self::CompactionEnd {
                    reason: *reason,
                    result: result.as_deref(),
                    aborted: *aborted,
                    will_retry: *will_retry,
                    error_message,
                }
            }
            Event::QueueUpdate {
                steering,
                follow_up,
            } => Self::QueueUpdate {
                steering,
                follow_up,
            },
            Event::ThinkingLevelChanged(level) => Self::ThinkingLevelChanged { level: *level },
            Event::SessionInfoChanged(name) => Self::SessionInfoChanged {
                name: name.as_deref(),
            },
            _ => return None,
        })
    }
}

/// Prints lines into one buffer.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    pub line: Vec<u8>,
}

impl Printer {
    /// Writes `line` as one record.
    pub fn print(&mut self, line: &impl Serialize, records: &mut Records) {
        self.line.clear();
        json::append(&mut self.line, line);
        self.line.push(b'\n');
        records.push(&[&self.line]);
        // One huge line must not keep its memory for the rest of the session.
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
        }
    }
}

/// The part of a block that an update is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thinking,
    Call,
}

impl BlockKind {
    pub fn of(block: &Block) -> Self {
        match block {
            Block::Thinking(_) => Self::Thinking,
            Block::ToolCall(_) => Self::Call,
            _ => Self::Text,
        }
    }

    /// The words for its beginning, growth and end.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Text => ["text_start", "text_delta", "text_end"],
            Self::Thinking => ["thinking_start", "thinking_delta", "thinking_end"],
            Self::Call => ["toolcall_start", "toolcall_delta", "toolcall_end"],
        }
    }
}

/// Appends what is complete when a block ends: its text, or the call.
pub(crate) fn append_complete(line: &mut Vec<u8>, block: &Block) {
    let text = match block {
        Block::Thinking(thinking) => &thinking.thinking,
        Block::Text(text) => &text.text,
        _ => {
            line.extend_from_slice(br#","toolCall":"#);
            json::append(line, block);
            return;
        }
    };
    line.extend_from_slice(br#","content":"#);
    json::append(line, text);
}
