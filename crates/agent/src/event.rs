//! The events of a session, numbered in order. They are the engine's only output besides answers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_message::{Block, Message, ThinkingLevel, Usage};
use pinion_tools::{TextChange, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Something that happened in a session. Cheap to clone: texts and messages are shared.
#[derive(Debug, Clone)]
pub enum Event {
    /// A run begins. A prompt may take several runs: retries and continuations are runs too.
    AgentStart,
    /// A run ended.
    AgentEnd {
        /// The prompts of the run and everything it produced.
        messages: Arc<[Arc<Message>]>,
        /// Another run follows by itself.
        will_retry: bool,
    },
    /// A request to the model begins.
    TurnStart,
    /// The model has answered and the tool calls of the answer have run.
    TurnEnd {
        /// The model's answer.
        message: Arc<Message>,
        /// The results of the tool calls, in call order.
        tool_results: Arc<[Arc<Message>]>,
    },
    /// A message enters the conversation; an answer is still empty.
    MessageStart(Arc<Message>),
    /// A message is complete.
    MessageEnd(Arc<Message>),
    /// A block of the streamed answer begins.
    BlockStart {
        /// Position in the answer.
        index: usize,
        /// The block as it begins.
        block: Arc<Block>,
    },
    /// A block of the streamed answer grows.
    BlockDelta {
        /// Position in the answer.
        index: usize,
        /// Text, thinking text, or raw JSON of tool arguments.
        delta: Arc<str>,
    },
    /// A block of the streamed answer is complete.
    BlockEnd {
        /// Position in the answer.
        index: usize,
        /// The block as it ended.
        block: Arc<Block>,
    },
    /// The provider reported usage before the end of the answer.
    UsageUpdate(Usage),
    /// A tool call begins.
    ToolStart(Arc<ToolRun>),
    /// A running tool has new output, which replaces its earlier output.
    ToolUpdate {
        /// The call.
        run: Arc<ToolRun>,
        /// The whole output so far.
        output: Arc<ToolOutput>,
    },
    /// A tool call ended, or was not run.
    ToolEnd {
        /// The call.
        run: Arc<ToolRun>,
        /// The final output.
        output: Arc<ToolOutput>,
        /// The call failed.
        is_error: bool,
        /// The running time; `None` if the tool was not run.
        duration: Option<Duration>,
    },
    /// A detail of a tool call; only with [`EngineSettings::report_call_details`](crate::EngineSettings).
    CallDetail(CallDetail),
    /// A failed request will be repeated after a pause.
    RetryStart {
        /// The number of the retry, from 1.
        attempt: u32,
        /// The limit on retries.
        max_attempts: u32,
        /// The pause before the retry.
        delay: Duration,
        /// The error of the failed request.
        error: String,
    },
    /// A retry succeeded, or no further retry follows.
    RetryEnd {
        /// The retry succeeded.
        success: bool,
        /// The number of the last retry.
        attempt: u32,
        /// The error of the last retry.
        final_error: Option<String>,
    },
    /// A compaction begins.
    CompactionStart {
        /// The cause.
        reason: CompactionReason,
    },
    /// A compaction ended.
    CompactionEnd {
        /// The cause.
        reason: CompactionReason,
        /// The summary; `None` if the compaction failed or was stopped.
        result: Option<Arc<CompactionResult>>,
        /// The compaction was stopped.
        aborted: bool,
        /// The failed request is repeated now.
        will_retry: bool,
        /// The error; `None` also if there was nothing to compact.
        error: Option<String>,
    },
    /// A failed request for a summary will be repeated after a pause.
    SummaryRetryScheduled {
        /// The number of the retry, from 1.
        attempt: u32,
        /// The limit on retries.
        max_attempts: u32,
        /// The pause before the retry.
        delay: Duration,
        /// The error of the failed request.
        error: String,
    },
    /// The pause is over and the request for a summary is repeated.
    SummaryRetryStart(SummaryPurpose),
    /// The retries of a request for a summary ended, with or without success.
    SummaryRetryFinished,
    /// A hook appended data of its own to the session, or an answer was left out of the conversation.
    EntryAppended(Arc<Value>),
    /// A queue changed.
    QueueUpdate {
        /// Texts of waiting steering messages.
        steering: Vec<String>,
        /// Texts of waiting follow-ups.
        follow_up: Vec<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged(ThinkingLevel),
    /// The session's name changed.
    SessionInfoChanged(Option<String>),
    /// Something outside the conversation failed; the session continues.
    Fault {
        /// The file or the part of the program that failed.
        source: String,
        /// The operation that failed.
        during: Cow<'static, str>,
        /// The error.
        error: String,
    },
    /// The session is idle: no run, retry or compaction follows by itself.
    Settled {
        /// An abort ended the work.
        aborted: bool,
    },
}

/// A detail of a tool call for clients that show calls before and while they run.
#[derive(Debug, Clone)]
pub enum CallDetail {
    /// The model has written a call that would change a text file. Sent before the end of its block.
    Preview {
        /// The provider's id of the call.
        call_id: Arc<str>,
        /// The change, which has not been made.
        change: Arc<TextChange>,
    },
    /// The hooks and the gate permit the call, which starts now. Between [`Event::ToolStart`] and this event the user may
    /// be asked.
    Admitted(Arc<ToolRun>),
    /// The command of the call printed text, at most twenty times a second.
    Printed {
        /// The call.
        run: Arc<ToolRun>,
        /// The text since the last event.
        text: Arc<str>,
    },
}

/// A tool call as it is being run.
#[derive(Debug)]
pub struct ToolRun {
    /// The provider's id of the call.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model gave them.
    pub arguments: Value,
    /// The id of the call that made this one; `None` if the model made it.
    pub parent_call_id: Option<Arc<str>>,
}

/// The cause of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// A client or a hook requested it.
    Manual,
    /// The context is nearly full.
    Threshold,
    /// The provider refused the context as too long.
    Overflow,
}

/// The purpose of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryPurpose {
    /// A compaction.
    Compaction(CompactionReason),
    /// The summary of an abandoned branch.
    Branch,
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The text that replaces the summarised part.
    pub summary: String,
    /// The id of the first entry that is not summarised.
    pub first_kept_entry_id: String,
    /// Size of the context before, in tokens.
    pub tokens_before: u64,
    /// Estimated size of the context after, in tokens, with the system prompt if the session records it.
    pub estimated_tokens_after: u64,
    /// The usage of the requests for the summary; `None` if a hook wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Files read and modified in the summarised part, or data of the hook that wrote the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The entry in the session file.
    #[serde(skip)]
    pub saved: SavedCompaction,
}

/// The entry of a compaction in the session file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedCompaction {
    /// The time of the entry, ISO 8601.
    pub timestamp: String,
    /// Position on the branch of the first entry that is not summarised; the header is 0.
    pub first_kept_index: usize,
}

/// Receives the events of a session.
pub trait Listener: Send + Sync {
    /// Receives an event; `ordinal` counts from 1. Must not block.
    fn notice(&self, ordinal: u64, event: &Event);

    /// Reports whether the listener can receive more progress. If not, the engine waits for [`Listener::room`].
    fn has_room(&self) -> bool {
        true
    }

    /// Waits until the listener can receive more progress.
    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
