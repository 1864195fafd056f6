//! Commands of clients and hooks, and the one answer that each gets.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, CustomMessage, Message, Model, ThinkingLevel};
use pinion_session::Stats;
use pinion_tools::{BashOutcome, Follower};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::Span;

use crate::{CompactionResult, EngineError, ForkPosition, Origin};

/// A request to a session.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Command {
    /// Starts a run, or queues a message while one is active. Answered when accepted, not when the run ends.
    Prompt(Prompt),
    /// Starts a run with a message of a hook, or steers the active run.
    CustomPrompt(CustomMessage),
    /// Answered when the session is idle.
    WaitForIdle,
    /// Queues a message for delivery into the active or next run.
    Queue {
        text: String,
        images: Vec<Block>,
        delivery: Delivery,
    },
    /// Stops the run, compaction or navigation. Answered when it has ended.
    Abort,
    /// Ends the wait for a retry; the run is not retried.
    AbortRetry,
    /// Stops the newest shell command.
    AbortBash,
    ClearQueue,
    Compact {
        instructions: Option<String>,
    },
    Bash {
        command: String,
        exclude_from_context: bool,
        /// Receives the output while the command runs.
        follower: Option<Arc<dyn Follower>>,
    },
    GetState,
    GetMessages,
    GetStats,
    GetLastAssistantText,
    SetModel {
        provider: String,
        id: String,
    },
    CycleModel,
    GetAvailableModels,
    SetThinkingLevel(Option<ThinkingLevel>),
    CycleThinkingLevel,
    GetThinkingLevels,
    SetSteeringMode(Option<String>),
    SetFollowUpMode(Option<String>),
    SetAutoCompaction(bool),
    SetAutoRetry(bool),
    SetName(String),
    NewSession {
        parent: Option<String>,
        /// Runs in the new session before its hooks start.
        prepare: Option<Preparation>,
        origin: Origin,
    },
    SwitchSession {
        path: PathBuf,
        origin: Origin,
    },
    Fork {
        entry_id: String,
        position: ForkPosition,
        origin: Origin,
    },
    CloneSession,
    GetForkMessages,
    /// Makes another entry of the session tree the current one.
    Navigate(Navigation),
    /// Sets the label of an entry; `None` removes it.
    SetLabel {
        entry_id: String,
        label: Option<String>,
    },
    GetEntries {
        since: Option<String>,
    },
    GetTree,
    ExportHtml {
        path: Option<String>,
    },
    /// Lists the commands that start with `/`.
    GetCommands,
    /// Does nothing. Its answer comes in order, so a front can send a response of its own between those of commands.
    Noop,
}

/// A message that starts a run.
#[derive(Debug)]
pub struct Prompt {
    /// The text, before skills and templates are expanded.
    pub text: String,
    /// Blocks that follow the text: images, documents.
    pub images: Vec<Block>,
    /// The client's attachments, stored with the message unchanged.
    pub attachments: Option<Value>,
    /// The queue to use while a run is active; `None` rejects the prompt then.
    pub when_busy: Option<Delivery>,
    /// The sender. Hooks do not see prompts of hooks.
    pub origin: Origin,
    /// A hook's prompt calls commands, skills and templates as a client's does.
    pub expands: bool,
}

impl Prompt {
    /// Creates a prompt of a client that is rejected while a run is active.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            attachments: None,
            when_busy: None,
            origin: Origin::Client,
            expands: false,
        }
    }
}

/// Work to do in a new session before its hooks start.
pub struct Preparation(Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>);

impl Preparation {
    /// Wraps `prepare`, which is called once in the new session.
    pub fn new(prepare: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static) -> Self {
        Self(Box::new(prepare))
    }

    pub(crate) async fn run(self) {
        (self.0)().await;
    }
}

impl std::fmt::Debug for Preparation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Preparation")
    }
}

/// A move to another entry of the session tree.
#[derive(Debug, Clone)]
pub struct Navigation {
    /// The entry to move to. For a user's message its parent becomes the current entry.
    pub target_id: String,
    /// The summary to write of the abandoned branch; `None` writes none.
    pub summary: Option<BranchSummary>,
    /// A label for the new current entry.
    pub label: Option<String>,
}

/// The instructions for the summary of an abandoned branch.
#[derive(Debug, Clone)]
pub enum BranchSummary {
    /// The default instructions.
    Default,
    /// The default instructions and an additional focus.
    Focused(String),
    /// Instructions that replace the default ones.
    Replaced(String),
}

/// The moment at which a queued message enters the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Before the next turn: after the running tool call, or after all calls of the answer.
    Steer,
    /// At the end of the run, which then continues.
    FollowUp,
}

/// The result of a command.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Answer {
    Done,
    /// The session accepted a prompt or message.
    Taken(Disposition),
    State(Box<StateView>),
    Messages(Vec<Arc<Message>>),
    Stats(Box<Stats>),
    Text(Option<String>),
    Model(Arc<Model>),
    Cycled(Option<Cycled>),
    Models(Vec<Arc<Model>>),
    Level(Option<ThinkingLevel>),
    Levels(Vec<ThinkingLevel>),
    Compacted(Arc<CompactionResult>),
    Bash(BashOutcome),
    /// The session was replaced (`false`), or a hook refused (`true`).
    Cancelled(bool),
    Forked {
        /// The text of the chosen message; `None` if a hook refused.
        text: Option<String>,
        cancelled: bool,
    },
    ForkMessages(Vec<(String, String)>),
    Queues {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    Entries {
        entries: Vec<Box<RawValue>>,
        leaf_id: Option<String>,
    },
    Tree {
        tree: Box<RawValue>,
        leaf_id: Option<String>,
    },
    Navigated {
        /// The text of the chosen user message, to be edited and sent again.
        text: Option<String>,
        /// A hook refused.
        cancelled: bool,
    },
    Exported(String),
    Commands(Value),
}

/// The effect of a prompt: it started a run, waits in a queue, or a hook handled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Disposition {
    Started,
    Queued,
    Handled,
}

/// The model that cycling selected.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Cycled {
    pub model: Arc<Model>,
    pub thinking_level: ThinkingLevel,
    pub is_scoped: bool,
}

/// A session as `get_state` shows it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct StateView {
    pub model: Option<Arc<Model>>,
    pub thinking_level: ThinkingLevel,
    /// A run is active. False during a compaction. The dialect decides whether the wait for a retry counts as a run.
    pub is_streaming: bool,
    pub is_compacting: bool,
    /// `all` or `one-at-a-time`; other values that a client set are echoed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_up_mode: Option<String>,
    /// Path of the session file, also before it exists; missing for a session in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    #[schemars(length(min = 1))]
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub session_name: Option<String>,
    pub auto_compaction_enabled: bool,
    pub message_count: usize,
    pub pending_message_count: usize,
}

/// Sends the answer to one command. Dropping it answers with [`EngineError::Dropped`], so every command gets an answer.
pub struct Reply {
    deliver: Option<Deliver>,
    /// The span in which the command was sent.
    caller: Span,
}

type Deliver = Box<dyn FnOnce(Result<Answer, EngineError>) + Send>;

impl Reply {
    /// Passes the answer to `deliver`, which must not block.
    pub fn new(deliver: impl FnOnce(Result<Answer, EngineError>) + Send + 'static) -> Self {
        Self {
            deliver: Some(Box::new(deliver)),
            caller: Span::current(),
        }
    }

    /// Returns the span in which the command was sent.
    pub(crate) fn caller(&self) -> &Span {
        &self.caller
    }

    /// Sends the answer.
    pub fn send(mut self, result: Result<Answer, EngineError>) {
        if let Some(deliver) = self.deliver.take() {
            deliver(result);
        }
    }

    /// Sends [`Answer::Done`].
    pub fn done(self) {
        self.send(Ok(Answer::Done));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(deliver) = self.deliver.take() {
            deliver(Err(EngineError::Dropped));
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}
