//! What a client may ask, and the one answer it gets.

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

use crate::{CompactionResult, EngineError, ForkPosition, Origin};

/// What a client may ask of a session.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Command {
    /// Says something to the agent. Answered when accepted, not when done.
    Prompt(Prompt),
    /// Something said by who takes part in the session, which starts a run.
    Say(CustomMessage),
    /// Nothing: answered when the agent does nothing by itself.
    WaitForIdle,
    /// Queues a message for delivery into the active or next run.
    Queue {
        text: String,
        images: Vec<Block>,
        delivery: Delivery,
    },
    /// Stops whatever is going on. Answered when everything has settled.
    Abort,
    /// Stops waiting for a retry.
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
        /// Who is told what it prints, as it does.
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
        /// Run in the new session before anyone takes part in it.
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
    /// Goes to another entry of the session tree.
    Navigate(Navigation),
    /// Names an entry; without a label the name is taken away.
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
    /// What can be called with `/`.
    GetCommands,
    /// Nothing: answered in its turn, so that an answer made elsewhere keeps its place.
    Nothing,
}

/// Something said to the agent.
#[derive(Debug)]
pub struct Prompt {
    /// The words.
    pub text: String,
    /// Blocks that follow the words: images, documents.
    pub images: Vec<Block>,
    /// What the client attached, kept on the message as it came.
    pub attachments: Option<Value>,
    /// What to do when a run is active; `None` refuses.
    pub when_busy: Option<Delivery>,
    /// Who said it.
    pub origin: Origin,
}

impl Prompt {
    /// Words of a client, refused while a run is active.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            attachments: None,
            when_busy: None,
            origin: Origin::Client,
        }
    }
}

/// What is done in a new session before anyone takes part in it.
pub struct Preparation(Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>);

impl Preparation {
    /// Does what `prepare` returns.
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

/// A way through the session tree.
#[derive(Debug, Clone)]
pub struct Navigation {
    /// Where to go; a user's message means the place before it.
    pub target_id: String,
    /// Whether the branch that is left is summarised.
    pub summary: Option<BranchSummary>,
    /// Names the place that is reached.
    pub label: Option<String>,
}

/// How a branch that is left is summarised.
#[derive(Debug, Clone)]
pub enum BranchSummary {
    /// As usual.
    Default,
    /// As usual, with something to look at.
    Focused(String),
    /// By other instructions.
    Replaced(String),
}

/// When a queued message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As soon as the model can be told: after the running tool.
    Steer,
    /// When the run would stop.
    FollowUp,
}

/// What a command gave.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Answer {
    Done,
    /// A prompt or message was taken; what became of it.
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
    /// A session was replaced, or an extension said no.
    Cancelled(bool),
    Forked {
        /// The text of the message that was chosen; none when it was refused.
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
        /// The text of the user's message that was chosen, to be said again.
        text: Option<String>,
        /// Who takes part refused.
        cancelled: bool,
    },
    Exported(String),
    Commands(Value),
}

/// What became of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Disposition {
    Started,
    Queued,
    Handled,
}

/// A model reached by cycling.
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
    /// A run is active. False while waiting for a retry and during a compaction.
    pub is_streaming: bool,
    pub is_compacting: bool,
    /// `all` or `one-at-a-time`; what a client set is echoed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_up_mode: Option<String>,
    /// Where the session is or will be saved; missing if it is not.
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

/// The duty to answer one command. Dropping it answers with an error, so that no command is left
/// without an answer whatever happens on the way.
pub struct Reply {
    deliver: Option<Deliver>,
}

type Deliver = Box<dyn FnOnce(Result<Answer, EngineError>) + Send>;

impl Reply {
    /// A duty that is fulfilled by calling `deliver`. It must not block.
    pub fn new(deliver: impl FnOnce(Result<Answer, EngineError>) + Send + 'static) -> Self {
        Self {
            deliver: Some(Box::new(deliver)),
        }
    }

    /// Answers.
    pub fn send(mut self, result: Result<Answer, EngineError>) {
        if let Some(deliver) = self.deliver.take() {
            deliver(result);
        }
    }

    /// Answers that it is done and there is nothing to tell.
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
