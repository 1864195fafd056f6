//! What happened, in order. The engine's only outlet.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_message::{Block, Message, ThinkingLevel, Usage};
use pinion_tools::ToolOutput;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What happened. Cheap to clone: texts and messages are shared.
#[derive(Debug, Clone)]
pub enum Event {
    /// A run begins. A prompt may take several runs: retries and continuations are runs too.
    AgentStart,
    /// A run is over. `messages` are those it produced, its prompts first.
    AgentEnd {
        /// What the run produced.
        messages: Arc<[Arc<Message>]>,
        /// Another run follows by itself.
        will_retry: bool,
    },
    /// One question to the model begins.
    TurnStart,
    /// The question is answered and its tools have run.
    TurnEnd {
        /// The answer.
        message: Arc<Message>,
        /// The results of its calls, in call order.
        tool_results: Arc<[Arc<Message>]>,
    },
    /// A message enters the conversation; an answer is still empty.
    MessageStart(Arc<Message>),
    /// A message is complete.
    MessageEnd(Arc<Message>),
    /// A block of the growing answer begins.
    BlockStart {
        /// Position in the answer.
        index: usize,
        /// The block as it begins.
        block: Arc<Block>,
    },
    /// A block of the growing answer grows.
    BlockDelta {
        /// Position in the answer.
        index: usize,
        /// Text, thinking text, or raw JSON of tool arguments.
        delta: Arc<str>,
    },
    /// A block of the growing answer is complete.
    BlockEnd {
        /// Position in the answer.
        index: usize,
        /// The block as it ended.
        block: Arc<Block>,
    },
    /// The provider counted tokens before the end of the answer.
    UsageUpdate(Usage),
    /// A tool call begins.
    ToolStart(Arc<ToolRun>),
    /// A tool has produced something; replaces what it produced before.
    ToolUpdate {
        /// Which call.
        run: Arc<ToolRun>,
        /// Everything so far.
        output: Arc<ToolOutput>,
    },
    /// A tool call is over.
    ToolEnd {
        /// Which call.
        run: Arc<ToolRun>,
        /// What it returned.
        output: Arc<ToolOutput>,
        /// It failed.
        is_error: bool,
        /// How long it ran; `None` when it did not.
        duration: Option<Duration>,
    },
    /// A failed request will be made again after a pause.
    RetryStart {
        /// Which retry, from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// How long the pause is.
        delay: Duration,
        /// What failed.
        error: String,
    },
    /// Retrying is over.
    RetryEnd {
        /// It worked.
        success: bool,
        /// Which retry it was.
        attempt: u32,
        /// Why it did not work.
        final_error: Option<String>,
    },
    /// The conversation is being summarised.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// Summarising is over.
    CompactionEnd {
        /// Why it was done.
        reason: CompactionReason,
        /// What came of it.
        result: Option<Arc<CompactionResult>>,
        /// It was stopped.
        aborted: bool,
        /// The failed request is made again now.
        will_retry: bool,
        /// Why it failed.
        error: Option<String>,
    },
    /// A failed request for a summary will be made again after a pause.
    SummaryRetryScheduled {
        /// Which retry, from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// How long the pause is.
        delay: Duration,
        /// What failed.
        error: String,
    },
    /// The pause is over and the request for a summary is made again.
    SummaryRetryStart(SummaryPurpose),
    /// Retrying a request for a summary is over, however it ended.
    SummaryRetryFinished,
    /// Who takes part appended state of its own to the session.
    EntryAppended(Arc<Value>),
    /// A queue changed.
    QueueUpdate {
        /// Texts waiting to steer.
        steering: Vec<String>,
        /// Texts waiting for the end.
        follow_up: Vec<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged(ThinkingLevel),
    /// The session's name changed.
    SessionInfoChanged(Option<String>),
    /// Something beside the conversation went wrong; the session goes on.
    Fault {
        /// Where: a file or a part of the program.
        source: String,
        /// During what.
        during: Cow<'static, str>,
        /// What happened.
        error: String,
    },
    /// Nothing more will happen by itself.
    Settled {
        /// The user stopped it.
        aborted: bool,
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
}

/// Why a conversation is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// The user asked.
    Manual,
    /// The context is nearly full.
    Threshold,
    /// The provider refused the context as too long.
    Overflow,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryPurpose {
    /// To shorten the conversation.
    Compaction(CompactionReason),
    /// To remember a branch that is left.
    Branch,
}

/// What a compaction made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The summary.
    pub summary: String,
    /// The first entry that stays as it is.
    pub first_kept_entry_id: String,
    /// Size of the context before.
    pub tokens_before: u64,
    /// About how large the context is now, the system prompt left out.
    pub estimated_tokens_after: u64,
    /// What the requests for the summary took; `None` when nobody was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Files read and modified in what was summarised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// How the session file has it.
    #[serde(skip)]
    pub saved: SavedCompaction,
}

/// How the session file has a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedCompaction {
    /// When it was saved.
    pub timestamp: String,
    /// Position of the first entry that stays as it is, among those of the branch; the header is 0.
    pub first_kept_index: usize,
}

/// Someone who is told what happens.
pub trait Listener: Send + Sync {
    /// Takes an event; `ordinal` counts from 1. Must not block.
    fn notice(&self, ordinal: u64, event: &Event);

    /// Whether progress may go on; when not, the engine waits for [`Listener::room`].
    fn has_room(&self) -> bool {
        true
    }

    /// Waits until progress may go on.
    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
