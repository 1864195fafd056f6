//! Events as lines of the classic protocol (pi 0.52).
//!
//! One JSON object per line, told apart by `type`, for example
//! `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,
//! "delta":"Hel","partial":{…}},"message":{…}}`. `partial` and `message` are the answer so far;
//! members are in the order pi prints them. Events that pi 0.52 did not have are left out, unless
//! extensions are loaded: those are written for pi 0.73, and so are the clients that use them.

use pinion_agent::{CompactionReason, CompactionResult, Event, ToolOutput, ToolRun};
use pinion_jsonl::{Project, Records, json};
use pinion_message::{Block, Message, ThinkingLevel};
use serde::Serialize;
use serde_json::Value;

use crate::growing::Growing;
use crate::outgoing::Out;
use crate::wire::{WireMessage, WireMessages};

/// A tool's output on the wire.
#[derive(Serialize)]
struct OutputView<'a> {
    content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminate: bool,
}

impl<'a> OutputView<'a> {
    fn of(output: &'a ToolOutput) -> Self {
        Self {
            content: &output.content,
            details: output.details.as_ref(),
            terminate: output.terminate,
        }
    }
}

/// Prints events the way pi 0.52 does.
#[derive(Debug, Default)]
pub struct Classic {
    growing: Growing,
    line: Vec<u8>,
    additions: Additions,
}

/// Whether events are told that pi 0.52 did not have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Additions {
    /// They are left out.
    #[default]
    None,
    /// Those of pi 0.73.
    OfExtensions,
}

impl Classic {
    /// A projection with the events in `additions`.
    pub fn new(additions: Additions) -> Self {
        Self {
            additions,
            ..Self::default()
        }
    }
}

impl Project for Classic {
    type Item = Out;

    fn project(&mut self, item: Out, records: &mut Records) {
        match item {
            Out::Record(line) => records.push(&[&line]),
            Out::Delta { index, text, .. } => self.delta(index, text.as_str(), records),
            Out::Event { event, .. } => self.event(&event, records),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolLine<'a> {
    r#type: &'static str,
    tool_call_id: &'a str,
    tool_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_result: Option<OutputView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<OutputView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
}

impl<'a> ToolLine<'a> {
    fn new(r#type: &'static str, run: &'a ToolRun) -> Self {
        Self {
            r#type,
            tool_call_id: &run.call_id,
            tool_name: &run.name,
            args: None,
            partial_result: None,
            result: None,
            is_error: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompactionEndLine<'a> {
    r#type: &'static str,
    result: Option<&'a CompactionResult>,
    aborted: bool,
    will_retry: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Line<'a> {
    AgentStart,
    TurnStart,
    AgentEnd {
        messages: WireMessages<'a>,
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

impl Classic {
    fn event(&mut self, event: &Event, records: &mut Records) {
        if self.additions == Additions::OfExtensions && self.added(event, records) {
            return;
        }
        match event {
            Event::AgentStart => self.print(&Line::AgentStart, records),
            Event::TurnStart => self.print(&Line::TurnStart, records),
            Event::AgentEnd { messages, .. } => {
                self.print(
                    &Line::AgentEnd {
                        messages: WireMessages(messages),
                    },
                    records,
                );
            }
            Event::TurnEnd {
                message,
                tool_results,
            } => {
                let message = WireMessage(message);
                let tool_results = WireMessages(tool_results);
                self.print(
                    &Line::TurnEnd {
                        message,
                        tool_results,
                    },
                    records,
                );
            }
            Event::MessageStart(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.growing.start(answer);
                }
                self.print(
                    &Line::MessageStart {
                        message: WireMessage(message),
                    },
                    records,
                );
            }
            Event::MessageEnd(message) => {
                self.print(
                    &Line::MessageEnd {
                        message: WireMessage(message),
                    },
                    records,
                );
            }
            Event::BlockStart { index, block } => self.block_start(*index, block, records),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, records),
            Event::BlockEnd { index, block } => self.block_end(*index, block, records),
            Event::UsageUpdate(usage) => self.growing.usage(*usage),
            Event::ToolStart(run) => {
                let line = ToolLine {
                    args: Some(&run.arguments),
                    ..ToolLine::new("tool_execution_start", run)
                };
                self.print(&line, records);
            }
            Event::ToolUpdate { run, output } => {
                let line = ToolLine {
                    args: Some(&run.arguments),
                    partial_result: Some(OutputView::of(output)),
                    ..ToolLine::new("tool_execution_update", run)
                };
                self.print(&line, records);
            }
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => {
                let line = ToolLine {
                    result: Some(OutputView::of(output)),
                    is_error: Some(*is_error),
                    ..ToolLine::new("tool_execution_end", run)
                };
                self.print(&line, records);
            }
            Event::RetryStart {
                attempt,
                max_attempts,
                delay,
                error,
            } => {
                let line = Line::AutoRetryStart {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    delay_ms: delay.as_millis() as u64,
                    error_message: error,
                };
                self.print(&line, records);
            }
            Event::RetryEnd {
                success,
                attempt,
                final_error,
            } => {
                let (success, attempt) = (*success, *attempt);
                let final_error = final_error.as_deref();
                self.print(
                    &Line::AutoRetryEnd {
                        success,
                        attempt,
                        final_error,
                    },
                    records,
                );
            }
            Event::CompactionStart { reason } if *reason != CompactionReason::Manual => {
                self.print(&Line::AutoCompactionStart { reason: *reason }, records);
            }
            Event::CompactionEnd {
                reason,
                result,
                aborted,
                will_retry,
                error,
            } if *reason != CompactionReason::Manual => {
                let line = CompactionEndLine {
                    r#type: "auto_compaction_end",
                    result: result.as_deref(),
                    aborted: *aborted,
                    will_retry: *will_retry,
                    error_message: error.as_deref(),
                };
                self.print(&line, records);
            }
            Event::Fault {
                source,
                during,
                error,
            } => {
                let line = Line::ExtensionError {
                    extension_path: source,
                    event: during,
                    error,
                };
                self.print(&line, records);
            }
            Event::CompactionStart { .. }
            | Event::CompactionEnd { .. }
            | Event::QueueUpdate { .. }
            | Event::ThinkingLevelChanged(_)
            | Event::SessionInfoChanged(_)
            | Event::Settled { .. } => {}
        }
    }

    /// Prints an event the way pi 0.73 does, if pi 0.52 did not have it.
    fn added(&mut self, event: &Event, records: &mut Records) -> bool {
        let line = match event {
            Event::CompactionStart { reason } => Line::CompactionStart { reason: *reason },
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
                Line::CompactionEnd {
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
            } => Line::QueueUpdate {
                steering,
                follow_up,
            },
            Event::ThinkingLevelChanged(level) => Line::ThinkingLevelChanged { level: *level },
            Event::SessionInfoChanged(name) => Line::SessionInfoChanged {
                name: name.as_deref(),
            },
            _ => return false,
        };
        self.print(&line, records);
        true
    }

    fn print(&mut self, line: &impl Serialize, records: &mut Records) {
        self.line.clear();
        json::append(&mut self.line, line);
        self.line.push(b'\n');
        records.push(&[&self.line]);
        // One huge line must not keep its memory for the rest of the session.
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
        }
    }

    fn block_start(&mut self, index: usize, block: &Block, records: &mut Records) {
        self.growing.block_start(index, block);
        let kind = match block {
            Block::Thinking(_) => "thinking_start",
            Block::ToolCall(_) => "toolcall_start",
            _ => "text_start",
        };
        self.open_update(kind, index);
        self.close_update(records);
    }

    fn delta(&mut self, index: usize, delta: &str, records: &mut Records) {
        let kind = if self.growing.grows_call(index) {
            "toolcall_delta"
        } else if self.growing.grows_thinking(index) {
            "thinking_delta"
        } else {
            "text_delta"
        };
        self.growing.delta(index, delta);
        self.open_update(kind, index);
        self.line.extend_from_slice(br#","delta":""#);
        json::append_escaped(&mut self.line, delta);
        self.line.push(b'"');
        self.close_update(records);
    }

    fn block_end(&mut self, index: usize, block: &Block, records: &mut Records) {
        self.growing.block_end(index, block);
        let (kind, text) = match block {
            Block::Thinking(thinking) => ("thinking_end", Some(&thinking.thinking)),
            Block::Text(text) => ("text_end", Some(&text.text)),
            _ => ("toolcall_end", None),
        };
        self.open_update(kind, index);
        match text {
            Some(text) => {
                self.line.extend_from_slice(br#","content":"#);
                json::append(&mut self.line, text);
            }
            None => {
                self.line.extend_from_slice(br#","toolCall":"#);
                json::append(&mut self.line, block);
            }
        }
        self.close_update(records);
    }

    fn open_update(&mut self, kind: &str, index: usize) {
        self.line.clear();
        self.line
            .extend_from_slice(br#"{"type":"message_update","assistantMessageEvent":{"type":""#);
        self.line.extend_from_slice(kind.as_bytes());
        self.line.extend_from_slice(br#"","contentIndex":"#);
        json::append(&mut self.line, &index);
    }

    /// Writes the update: what has been printed, then the answer so far, twice.
    fn close_update(&mut self, records: &mut Records) {
        let mut slices: Vec<&[u8]> = Vec::with_capacity(16);
        slices.push(&self.line);
        slices.push(br#","partial":"#);
        self.growing.slices(&mut slices);
        slices.push(br#"},"message":"#);
        self.growing.slices(&mut slices);
        slices.push(b"}\n");
        records.push(&slices);
    }
}
