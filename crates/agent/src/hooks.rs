//! Hooks: code outside the engine that observes a session and can change what happens.
//!
//! The engine asks at fixed moments and continues with the answer. A hook cannot return an error; it reports failures
//! through [`SessionApi::fault`]. The engine stops waiting when the work is aborted, so a hook's future must be safe to
//! drop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, CustomMessage, Message, Model, ThinkingLevel};
use pinion_tools::{BashOutcome, ToolOutput};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::boundary::{Boundary, BoundaryChanges};
use crate::{CompactionReason, CompactionResult, Delivery, Event, Navigation, SessionApi, ToolRun};

/// A moment at which the engine calls the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Moment {
    AgentStart,
    AgentEnd,
    TurnStart,
    TurnEnd,
    MessageStart,
    MessageUpdate,
    MessageEnd,
    ToolStart,
    ToolUpdate,
    ToolEnd,
    Input,
    BeforeRun,
    Context,
    Payload,
    Response,
    ToolCall,
    ToolResult,
    BeforeReplace,
    BeforeCompaction,
    Compacted,
    BeforeNavigation,
    Navigated,
    ModelSelected,
    LevelSelected,
    UserBash,
    BeforeSettle,
    Settled,
    Renamed,
    CompactionFailed,
    Headers,
    ProviderEvent,
}

/// The hooks of a session. An implementation may combine several, such as all extensions.
///
/// A method that belongs to a [`Moment`] is called only if [`Hooks::wants`] returned true for it.
pub trait Hooks: Send + Sync {
    /// Receives access to the session. Called once, before every other method.
    fn attach(&self, session: SessionApi);

    /// Reports whether a hook is registered for `moment`. Called for every event, so it must be cheap.
    fn wants(&self, moment: Moment) -> bool;

    /// A prompt starts: a run with its retries and compactions. `cancel` is cancelled when it is aborted.
    fn running(&self, cancel: CancellationToken);

    /// The prompt ended.
    fn settled(&self);

    /// Receives an event of a run before the listeners: `AgentStart` to `ToolEnd`, except `MessageEnd`, which is
    /// [`Hooks::message_end`], and `Settled`. The end of a turn arrives here only after an abort, otherwise at
    /// [`Hooks::boundary`].
    fn observe<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, ()>;

    /// The run has reached a boundary.
    fn boundary<'a>(&'a self, boundary: Boundary<'a>) -> BoxFuture<'a, BoundaryChanges> {
        Box::pin(async move {
            if let Boundary::TurnEnd(event, _) = boundary {
                self.observe(event).await;
            }
            BoundaryChanges::default()
        })
    }

    /// A message is complete. The returned message replaces it.
    fn message_end(&self, message: Arc<Message>) -> BoxFuture<'_, Arc<Message>>;

    /// A client sent a prompt or a message for a queue; templates and skills are not expanded yet.
    fn input(&self, input: Input) -> BoxFuture<'_, InputOutcome>;

    /// A client is about to run a shell command.
    fn user_bash(&self, asked: UserBash) -> BoxFuture<'_, UserBashOutcome>;

    /// A prompt is about to start a run.
    fn before_run(&self, opening: RunStart) -> BoxFuture<'_, RunStartChanges>;

    /// The model is about to be asked. It sees the returned context in this request; the conversation does not change.
    fn context(&self, context: RequestContext) -> BoxFuture<'_, RequestContext>;

    /// Receives the headers of a request to a provider, without the key. The returned headers are sent; `None` removes
    /// a header.
    fn headers(
        &self,
        headers: BTreeMap<String, Option<String>>,
    ) -> BoxFuture<'_, BTreeMap<String, Option<String>>> {
        Box::pin(std::future::ready(headers))
    }

    /// Receives the body of a request to a provider. The returned body is sent.
    fn payload(&self, payload: Value) -> BoxFuture<'_, Value>;

    /// A provider's response begins.
    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()>;

    /// Receives an event of a provider's stream as the provider sent it.
    fn provider_event<'a>(&'a self, _model: &'a Model, _data: Value) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// A tool is about to be called with valid arguments.
    fn tool_call<'a>(&'a self, run: &'a ToolRun, arguments: Value) -> BoxFuture<'a, ToolGate>;

    /// A tool call ended. The returned result replaces its result.
    fn tool_result<'a>(
        &'a self,
        run: &'a ToolRun,
        arguments: &'a Value,
        result: ToolCallResult,
    ) -> BoxFuture<'a, ToolCallResult>;

    /// Decides whether the session may be replaced.
    fn before_replace<'a>(&'a self, change: &'a Replacement) -> BoxFuture<'a, bool>;

    /// Another session is about to replace the current one. `target` is its file.
    fn leaving<'a>(&'a self, change: &'a Replacement, target: Option<PathBuf>)
    -> BoxFuture<'a, ()>;

    /// Another session has replaced the previous one; `origin` requested it. Returns when the hooks of the new session
    /// have started.
    fn entered<'a>(
        &'a self,
        change: &'a Replacement,
        previous: Option<PathBuf>,
        origin: Origin,
    ) -> BoxFuture<'a, ()>;

    /// A compaction is about to start.
    fn before_compaction(
        &self,
        plan: CompactionPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, CompactionChoice>;

    /// A compaction ended.
    fn compacted(&self, compaction: Compacted) -> BoxFuture<'_, ()>;

    /// A compaction failed or was stopped.
    fn compaction_failed(&self, _failure: FailedCompaction) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Another entry of the session tree is about to become the current one.
    fn before_navigation(
        &self,
        plan: NavigationPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, NavigationChoice>;

    /// Another entry of the session tree is the current one.
    fn navigated(
        &self,
        old_leaf: Option<String>,
        new_leaf: Option<String>,
        summary: Option<Value>,
        by_hook: bool,
    ) -> BoxFuture<'_, ()>;

    /// Another model was selected. The command that selected it is answered when this returns.
    fn model_selected(
        &self,
        model: Arc<Model>,
        previous: Option<Arc<Model>>,
        source: SelectionSource,
    ) -> BoxFuture<'_, ()>;

    /// The session was renamed; `None` removed its name. Must not block: the engine does not await it.
    fn renamed(&self, _name: Option<&str>) {}

    /// Another thinking level was selected. Must not block: the engine does not await it.
    fn level_selected(&self, level: ThinkingLevel, previous: ThinkingLevel);

    /// Returns when the hooks have received every call so far. They may still be working on it.
    fn caught_up(&self) -> BoxFuture<'_, ()>;

    /// Returns a future that runs the hook command `name`; `None` if there is none. `arguments` is the text after the
    /// name.
    fn command(&self, name: &str, arguments: &str) -> Option<BoxFuture<'static, ()>>;

    /// The session ends. Returns when every hook has stopped.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// The sender of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A front, for its client.
    #[default]
    Client,
    /// A hook of the session.
    Hook,
}

/// The prompt or queued message of a client, before templates and skills are expanded.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Input {
    pub text: String,
    pub images: Vec<Block>,
    /// The queue for which the input is meant; `None` if it starts a run.
    pub delivery: Option<Delivery>,
}

/// A hook's decision about a prompt.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum InputOutcome {
    /// The prompt continues with this text and these images.
    Continue { text: String, images: Vec<Block> },
    /// The hook has handled the prompt; no run starts, and it enters no queue.
    Handled,
}

/// A shell command of a client.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct UserBash {
    pub command: String,
    pub exclude_from_context: bool,
    pub cwd: PathBuf,
}

/// The hooks' decision about a shell command that a client sent.
#[derive(Debug, Clone)]
pub enum UserBashOutcome {
    /// The engine runs it.
    Run,
    /// A hook ran it, or supplies its outcome.
    Done(BashOutcome),
    /// It does not run. The text is the error for the client.
    Refused(String),
}

/// A run that is about to start.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RunStart {
    /// The prompt as the model will see it; empty if a message of a hook starts the run.
    pub prompt: String,
    pub images: Vec<Block>,
    /// The message of a hook that starts the run; `None` for a prompt.
    pub custom: Option<CustomMessage>,
    pub system_prompt: Arc<str>,
}

/// A hook's changes to a run that is about to start.
#[derive(Debug, Clone, Default)]
pub struct RunStartChanges {
    /// Messages that follow the prompt.
    pub messages: Vec<CustomMessage>,
    /// The system prompt of this run; `None` leaves it unchanged.
    pub system_prompt: Option<String>,
    /// Active tools that the requests of this run do not declare.
    pub hidden_tools: Vec<String>,
}

/// The context of one request to the model.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// The system prompt.
    pub system_prompt: Arc<str>,
}

/// A hook's decision about a tool call.
#[derive(Debug, Clone)]
pub enum ToolGate {
    /// The tool runs with these arguments.
    Run(Value),
    /// The tool does not run. The text is the error that the model sees.
    Block(String),
    /// Like `Block`, and the run ends if every call of the answer requests it.
    BlockAndEnd(String),
}

/// The result of a tool call.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct ToolCallResult {
    pub output: ToolOutput,
    pub is_error: bool,
}

/// The replacement of the current session by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Replacement {
    New,
    Resume {
        file: PathBuf,
    },
    Fork {
        entry_id: String,
        position: ForkPosition,
    },
}

/// The end of the part that a fork copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkPosition {
    /// Before the entry, which must be a user's message.
    #[default]
    Before,
    /// After the entry, which is copied too.
    At,
}

/// The plan of a compaction.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CompactionPlan {
    pub reason: CompactionReason,
    pub first_kept_entry_id: String,
    pub messages_to_summarise: Vec<Arc<Message>>,
    pub turn_prefix: Vec<Arc<Message>>,
    pub is_split_turn: bool,
    pub tokens_before: u64,
    pub previous_summary: Option<String>,
    /// `{read, written, edited}`: names of files.
    pub files: Value,
    /// `{enabled, reserveTokens, keepRecentTokens}`.
    pub settings: Value,
    /// Every entry of the branch as it is in the session file.
    pub branch: Vec<Value>,
    pub instructions: Option<String>,
}

/// A compaction that succeeded.
#[derive(Debug, Clone)]
pub struct Compacted {
    /// The cause.
    pub reason: CompactionReason,
    /// The entry in the session file.
    pub entry: Value,
    /// A hook wrote the summary.
    pub by_hook: bool,
}

/// A compaction that did not succeed.
#[derive(Debug, Clone)]
pub struct FailedCompaction {
    /// The cause of the compaction.
    pub reason: CompactionReason,
    /// The error; `None` if the compaction was stopped.
    pub error: Option<String>,
    /// A hook wrote the summary.
    pub by_hook: bool,
}

/// A hook's decision about a compaction.
#[derive(Debug, Clone)]
pub enum CompactionChoice {
    /// The compaction continues.
    Go,
    /// The compaction is cancelled.
    Cancel,
    /// This result is used instead of a model's summary.
    Use(Box<CompactionResult>),
}

/// The plan of a navigation.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct NavigationPlan {
    pub navigation: Navigation,
    pub old_leaf: Option<String>,
    pub common_ancestor: Option<String>,
    /// The entries of the abandoned branch as they are in the session file.
    pub left: Vec<Value>,
}

/// A hook's decision about a navigation.
#[derive(Debug)]
pub enum NavigationChoice {
    /// The navigation continues.
    Go {
        /// The navigation, which the hook may have changed.
        navigation: Box<Navigation>,
        /// A summary of the abandoned branch with its details; `None` lets a model write it.
        summary: Option<(String, Option<Value>)>,
    },
    /// The navigation is cancelled.
    Cancel,
}

/// The command that selected a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SelectionSource {
    Set,
    Cycle,
}
