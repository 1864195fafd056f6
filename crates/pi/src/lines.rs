//! The lines of events in all dialects, except updates of a streamed answer, which the dialects assemble from slices.
//!
//! Each line is a JSON object with a `type`; members are in the order in which pi prints them. `x-since` and `x-until`
//! name the first and the last dialect that has a line or a member (`schema.rs`).

use pinion_agent::{CompactionReason, CompactionResult, Event, SummaryPurpose, ToolOutput};
use pinion_jsonl::{Records, json};
use pinion_message::shape::UserBlock;
use pinion_message::{Block, ThinkingLevel, ToolResultMessage, Usage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::wire::{WireAnswer, WireMessage, WireMessages};

/// The output of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ToolOutput")]
pub(crate) struct OutputView<'a> {
    #[schemars(with = "Vec<UserBlock>")]
    content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    /// The result as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    structured_content: Option<&'a Value>,
    /// The call failed although it has a result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("x-since" = "modern"))]
    is_error: bool,
    /// The tool asks to end the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminate: bool,
}

impl<'a> OutputView<'a> {
    pub fn of(output: &'a ToolOutput, dialect: Dialect) -> Self {
        let is_modern = dialect == Dialect::Modern;
        Self {
            content: &output.content,
            details: output.details.as_ref(),
            structured_content: output.structured_content.as_ref().filter(|_| is_modern),
            is_error: output.is_error && is_modern,
            terminate: output.terminate,
        }
    }
}

/// The result of a compaction.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CompactionResult")]
pub(crate) struct CompactionView<'a> {
    /// The text that replaces the summarised part.
    summary: &'a str,
    /// The id of the first entry that is not summarised.
    first_kept_entry_id: &'a str,
    /// Size of the context before, in tokens.
    tokens_before: u64,
    /// Estimated size of the context after, in tokens, with the system prompt and the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern", "x-always" = true))]
    estimated_tokens_after: Option<u64>,
    /// The usage of the requests for the summary; missing if an extension wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    usage: Option<&'a Usage>,
    /// Files read and modified in the summarised part.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>", extend("properties" = {
        "readFiles": {"type": "array", "items": {"type": "string"}},
        "modifiedFiles": {"type": "array", "items": {"type": "string"}}
    }))]
    details: Option<&'a Value>,
}

impl<'a> CompactionView<'a> {
    pub fn of(result: &'a CompactionResult, dialect: Dialect) -> Self {
        let is_modern = dialect == Dialect::Modern;
        Self {
            summary: &result.summary,
            first_kept_entry_id: &result.first_kept_entry_id,
            tokens_before: result.tokens_before,
            estimated_tokens_after: is_modern.then_some(result.estimated_tokens_after),
            usage: result.usage.as_ref().filter(|_| is_modern),
            details: result.details.as_ref(),
        }
    }
}

/// The purpose of a summary.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SummarySource {
    Compaction,
    BranchSummary,
}

/// The line of an event.
#[derive(Serialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[schemars(extend("x-suffix" = "Event"))]
pub(crate) enum EventLine<'a> {
    /// A run begins. A prompt may take several runs: retries and continuations are runs too.
    AgentStart,
    /// A request to the model begins.
    TurnStart,
    /// A run ended.
    AgentEnd {
        /// The prompts of the run and everything it produced.
        messages: WireMessages<'a>,
        /// Another run follows by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-since" = "modern", "x-always" = true))]
        will_retry: Option<bool>,
    },
    /// The session is idle: no run, retry or compaction follows by itself.
    #[schemars(extend("x-since" = "classic"))]
    AgentSettled {
        /// An abort ended the work.
        aborted: bool,
    },
    /// The model has answered and the tool calls of the answer have run.
    TurnEnd {
        #[schemars(with = "WireAnswer<'a>")]
        message: WireMessage<'a>,
        /// The results of the tool calls, in call order.
        #[schemars(with = "Vec<ToolResultMessage>")]
        tool_results: WireMessages<'a>,
    },
    /// A message enters the conversation; an answer is still empty.
    MessageStart { message: WireMessage<'a> },
    /// A message is complete.
    MessageEnd { message: WireMessage<'a> },
    /// A tool call begins.
    ToolExecutionStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        /// The arguments as the model gave them.
        #[schemars(with = "Map<String, Value>")]
        args: &'a Value,
        /// The id of the call that made this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<&'a str>,
    },
    /// A running tool has new output.
    #[schemars(extend("x-since" = "classic"))]
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        #[schemars(with = "Map<String, Value>")]
        args: &'a Value,
        /// The whole output so far; it replaces earlier output.
        partial_result: OutputView<'a>,
        /// The id of the call that made this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<&'a str>,
    },
    /// A tool call ended, or was not run.
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: OutputView<'a>,
        is_error: bool,
        /// The running time in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-since" = "modern"))]
        duration_ms: Option<u64>,
        /// The id of the call that made this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<&'a str>,
    },
    /// A failed request will be repeated after a pause.
    #[schemars(extend("x-since" = "classic"))]
    AutoRetryStart {
        #[schemars(range(min = 1))]
        attempt: u32,
        #[schemars(range(min = 1))]
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// A retry succeeded, or no further retry follows.
    #[schemars(extend(
        "x-since" = "classic",
        "if" = {"properties": {"success": {"const": false}}},
        "then" = {"required": ["finalError"]},
        "else" = {"properties": {"finalError": false}}
    ))]
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        /// The error of the last retry.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    /// An automatic compaction begins.
    #[schemars(extend("x-since" = "classic", "x-until" = "classic"))]
    AutoCompactionStart {
        #[schemars(with = "AutomaticReason")]
        reason: CompactionReason,
    },
    /// An automatic compaction ended.
    #[schemars(extend("x-since" = "classic", "x-until" = "classic"))]
    AutoCompactionEnd {
        result: Option<CompactionView<'a>>,
        aborted: bool,
        /// The failed request is repeated now.
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        error_message: Option<&'a str>,
    },
    /// A compaction begins. Classic clients receive it only if extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    CompactionStart { reason: CompactionReason },
    /// A compaction ended. Classic clients receive it only if extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    CompactionEnd {
        reason: CompactionReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CompactionView<'a>>,
        aborted: bool,
        /// The failed request is repeated now.
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        error_message: Option<String>,
    },
    /// A failed request for a summary will be repeated after a pause.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryScheduled {
        /// The number of the retry, from 1.
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// The pause is over and the request is repeated. `reason` is set for a compaction.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryAttemptStart {
        source: SummarySource,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    /// The retries of a request for a summary ended, with or without success.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryFinished,
    /// Output of a shell command of the client. `id` is the one of the command.
    #[schemars(extend("x-since" = "modern"))]
    BashExecutionUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        delta: &'a str,
    },
    /// An entry was appended to the session: data of an extension, or an answer left out of the conversation.
    #[schemars(extend("x-since" = "modern"))]
    EntryAppended {
        #[schemars(with = "Map<String, Value>")]
        entry: &'a Value,
    },
    /// The texts in the queues, after a change. Classic clients receive it only if extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    QueueUpdate {
        steering: &'a [String],
        follow_up: &'a [String],
    },
    /// The thinking level changed. Classic clients receive it only if extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    ThinkingLevelChanged { level: ThinkingLevel },
    /// The session's name changed. Classic clients receive it only if extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    SessionInfoChanged {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    /// Something outside the conversation failed; the session continues.
    #[schemars(extend("x-since" = "classic"))]
    ExtensionError {
        extension_path: &'a str,
        event: &'a str,
        error: &'a str,
    },
}

/// The cause of an automatic compaction.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "for the schema: `CompactionReason` has one more")]
enum AutomaticReason {
    Threshold,
    Overflow,
}

impl<'a> EventLine<'a> {
    /// Returns the line of an event that all releases since pi 0.52 print in the same form.
    pub fn common(event: &'a Event, dialect: Dialect) -> Option<Self> {
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
                parent_tool_call_id: run.parent_call_id.as_deref(),
            },
            Event::ToolUpdate { run, output } => Self::ToolExecutionUpdate {
                tool_call_id: &run.call_id,
                tool_name: &run.name,
                args: &run.arguments,
                partial_result: OutputView::of(output, dialect),
                parent_tool_call_id: run.parent_call_id.as_deref(),
            },
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => Self::ToolExecutionEnd {
                tool_call_id: &run.call_id,
                tool_name: &run.name,
                result: OutputView::of(output, dialect),
                is_error: *is_error,
                duration_ms: None,
                parent_tool_call_id: run.parent_call_id.as_deref(),
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

    /// Returns the line of an event that releases from pi 0.53 to pi 0.73 added.
    pub fn since_classic(event: &'a Event, dialect: Dialect) -> Option<Self> {
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
                    result: result
                        .as_deref()
                        .map(|result| CompactionView::of(result, dialect)),
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

impl<'a> EventLine<'a> {
    /// Returns the line of an event that releases after pi 0.73 added.
    pub fn since_extensions(event: &'a Event) -> Option<Self> {
        Some(match event {
            Event::SummaryRetryScheduled {
                attempt,
                max_attempts,
                delay,
                error,
            } => Self::SummarizationRetryScheduled {
                attempt: *attempt,
                max_attempts: *max_attempts,
                delay_ms: delay.as_millis() as u64,
                error_message: error,
            },
            Event::SummaryRetryStart(purpose) => {
                let (source, reason) = match purpose {
                    SummaryPurpose::Compaction(reason) => {
                        (SummarySource::Compaction, Some(*reason))
                    }
                    SummaryPurpose::Branch => (SummarySource::BranchSummary, None),
                };
                Self::SummarizationRetryAttemptStart { source, reason }
            }
            Event::SummaryRetryFinished => Self::SummarizationRetryFinished,
            Event::EntryAppended(entry) => Self::EntryAppended { entry },
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
        // The memory of one huge line must not be held for the rest of the session.
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
        }
    }
}

/// The kind of a block in an update.
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

    /// Returns the types of the updates for its start, growth and end.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Text => ["text_start", "text_delta", "text_end"],
            Self::Thinking => ["thinking_start", "thinking_delta", "thinking_end"],
            Self::Call => ["toolcall_start", "toolcall_delta", "toolcall_end"],
        }
    }
}

/// Appends the complete text or tool call of a block.
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
