//! The lines that tell of events, of all dialects; updates of a growing answer are put together
//! from slices where they are printed.
//!
//! One JSON object per line, told apart by `type`; members are in the order pi prints them. `x-since` and
//! `x-until` name the first and the last dialect that has a line or a member (`schema.rs`).

use pinion_agent::{CompactionReason, CompactionResult, Event, SummaryPurpose, ToolOutput};
use pinion_jsonl::{Records, json};
use pinion_message::shape::UserBlock;
use pinion_message::{Block, ThinkingLevel, ToolResultMessage, Usage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::wire::{WireAnswer, WireMessage, WireMessages};

/// What a tool gave.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolOutput")]
pub(crate) struct OutputView<'a> {
    #[schemars(with = "Vec<UserBlock>")]
    content: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    /// The run ends with this call.
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

/// What a compaction made.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CompactionResult")]
pub(crate) struct CompactionView<'a> {
    /// The summary.
    summary: &'a str,
    /// The first entry that stays as it is.
    first_kept_entry_id: &'a str,
    /// Size of the context before.
    tokens_before: u64,
    /// About how large the context is now, the system prompt left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern", "x-always" = true))]
    estimated_tokens_after: Option<u64>,
    /// What the requests for the summary took, if any were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    usage: Option<&'a Usage>,
    /// Files read and modified in what was summarised.
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

/// What a summary is for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SummarySource {
    Compaction,
    BranchSummary,
}

/// One line that tells of an event.
#[derive(Serialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[schemars(extend("x-suffix" = "Event"))]
pub(crate) enum Line<'a> {
    /// A run begins. A prompt may take several runs: retries and continuations are runs too.
    AgentStart,
    /// One question to the model begins.
    TurnStart,
    /// A run is over.
    AgentEnd {
        /// What the run produced, its prompts first.
        messages: WireMessages<'a>,
        /// Another run follows by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-since" = "modern", "x-always" = true))]
        will_retry: Option<bool>,
    },
    /// Nothing more will happen by itself.
    #[schemars(extend("x-since" = "modern"))]
    AgentSettled {
        /// The user stopped it.
        aborted: bool,
    },
    /// The question is answered and its tools have run.
    TurnEnd {
        #[schemars(with = "WireAnswer<'a>")]
        message: WireMessage<'a>,
        /// The results of its calls, in call order.
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
    },
    /// A tool has produced something.
    #[schemars(extend("x-since" = "classic"))]
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        #[schemars(with = "Map<String, Value>")]
        args: &'a Value,
        /// Everything so far; replaces what was told before.
        partial_result: OutputView<'a>,
    },
    /// A tool call is over.
    ToolExecutionEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: OutputView<'a>,
        is_error: bool,
        /// How long it took.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-since" = "modern"))]
        duration_ms: Option<u64>,
    },
    /// A failed request will be made again after a pause.
    #[schemars(extend("x-since" = "classic"))]
    AutoRetryStart {
        #[schemars(range(min = 1))]
        attempt: u32,
        #[schemars(range(min = 1))]
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// Retrying is over.
    #[schemars(extend(
        "x-since" = "classic",
        "if" = {"properties": {"success": {"const": false}}},
        "then" = {"required": ["finalError"]},
        "else" = {"properties": {"finalError": false}}
    ))]
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        /// Why it did not work.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<&'a str>,
    },
    /// The conversation is being summarised, without anybody asking for it.
    #[schemars(extend("x-since" = "classic", "x-until" = "classic"))]
    AutoCompactionStart {
        #[schemars(with = "AutomaticReason")]
        reason: CompactionReason,
    },
    /// Summarising is over.
    #[schemars(extend("x-since" = "classic", "x-until" = "classic"))]
    AutoCompactionEnd {
        result: Option<CompactionView<'a>>,
        aborted: bool,
        /// The failed request is made again now.
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        error_message: Option<&'a str>,
    },
    /// The conversation is being summarised. Classic clients are told where extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    CompactionStart { reason: CompactionReason },
    /// Summarising is over.
    #[schemars(extend("x-since" = "classic"))]
    CompactionEnd {
        reason: CompactionReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<CompactionView<'a>>,
        aborted: bool,
        /// The failed request is made again now.
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        error_message: Option<String>,
    },
    /// A failed request for a summary is made again after a pause.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryScheduled {
        /// Which retry, from 1.
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// The pause is over. `reason` is that of a compaction.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryAttemptStart {
        source: SummarySource,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    /// Retrying is over, however it ended.
    #[schemars(extend("x-since" = "modern"))]
    SummarizationRetryFinished,
    /// A command of the client printed something. `id` is that of the command.
    #[schemars(extend("x-since" = "modern"))]
    BashExecutionUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        delta: &'a str,
    },
    /// An extension appended state of its own to the session.
    #[schemars(extend("x-since" = "modern"))]
    EntryAppended {
        #[schemars(with = "Map<String, Value>")]
        entry: &'a Value,
    },
    /// What waits, after it changed. Classic clients are told where extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    QueueUpdate {
        steering: &'a [String],
        follow_up: &'a [String],
    },
    /// The thinking level changed. Classic clients are told where extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    ThinkingLevelChanged { level: ThinkingLevel },
    /// The session's name changed. Classic clients are told where extensions are loaded.
    #[schemars(extend("x-since" = "classic"))]
    SessionInfoChanged {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    /// Something beside the conversation went wrong; the session goes on.
    #[schemars(extend("x-since" = "classic"))]
    ExtensionError {
        extension_path: &'a str,
        event: &'a str,
        error: &'a str,
    },
}

/// Why a conversation is summarised that nobody wanted to have summarised.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "for the schema: `CompactionReason` has one more")]
enum AutomaticReason {
    Threshold,
    Overflow,
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

impl<'a> Line<'a> {
    /// The line of an event that came after pi 0.73.
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
