//! Where something outside takes part in a session: it sees what happens, and may change it.
//!
//! The engine asks at fixed moments and goes on with the answer. Who takes part reports its own
//! failures through the [`Desk`]; a hook never fails here. The engine stops waiting for a hook when
//! the work it belongs to is aborted, so a hook must be safe to drop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, CustomMessage, Message, Model, ThinkingLevel};
use pinion_tools::{BashOutcome, ToolOutput};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{CompactionResult, Desk, Event, Navigation, ToolRun};

/// A moment of a session that may be of interest.
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
}

/// Someone who takes part in a session.
///
/// Every method but `attach`, `wants` and `command` is called only at moments it wants.
pub trait Hooks: Send + Sync {
    /// The session stands; `desk` reaches it. Called once, before anything else.
    fn attach(&self, desk: Desk);

    /// Whether anyone is interested in `moment`. Asked for every event, so it must be cheap.
    fn wants(&self, moment: Moment) -> bool;

    /// Something the agent does by itself begins: a run and what follows from it. `cancel` is
    /// cancelled when it is aborted.
    fn running(&self, cancel: CancellationToken);

    /// It is over.
    fn settled(&self);

    /// Is told of an event of a run before anyone else is: `AgentStart` to `ToolEnd`, but not
    /// `MessageEnd`, which is [`Hooks::message_end`].
    fn observe<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, ()>;

    /// A message is complete; what is returned takes its place.
    fn message_end(&self, message: Arc<Message>) -> BoxFuture<'_, Arc<Message>>;

    /// A client said something, before templates and skills are expanded.
    fn input(&self, input: Input) -> BoxFuture<'_, InputOutcome>;

    /// A client is about to run a shell command.
    fn user_bash(&self, asked: UserBash) -> BoxFuture<'_, UserBashOutcome>;

    /// A prompt is about to start a run.
    fn before_run(&self, opening: Opening) -> BoxFuture<'_, OpeningChanges>;

    /// The model is about to be asked; what is returned is what it sees, this time.
    fn context(&self, messages: Vec<Arc<Message>>) -> BoxFuture<'_, Vec<Arc<Message>>>;

    /// The body of a request to a provider; what is returned is sent.
    fn payload(&self, payload: Value) -> BoxFuture<'_, Value>;

    /// A provider's response begins.
    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()>;

    /// A tool is about to be called with valid arguments.
    fn tool_call<'a>(&'a self, run: &'a ToolRun, arguments: Value) -> BoxFuture<'a, ToolGate>;

    /// A tool was called; what is returned is its result.
    fn tool_result<'a>(
        &'a self,
        run: &'a ToolRun,
        arguments: &'a Value,
        result: ToolCallResult,
    ) -> BoxFuture<'a, ToolCallResult>;

    /// Whether the session may be replaced.
    fn before_replace<'a>(&'a self, change: &'a Replacement) -> BoxFuture<'a, bool>;

    /// The session is being left for another one.
    fn leaving<'a>(&'a self, change: &'a Replacement, target: Option<PathBuf>)
    -> BoxFuture<'a, ()>;

    /// Another session has taken its place; `origin` asked for it. Returns when everyone who takes
    /// part in the new one has begun.
    fn entered<'a>(
        &'a self,
        change: &'a Replacement,
        previous: Option<PathBuf>,
        origin: Origin,
    ) -> BoxFuture<'a, ()>;

    /// The conversation is about to be summarised.
    fn before_compaction(
        &self,
        plan: CompactionPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, CompactionChoice>;

    /// The conversation was summarised; `entry` is what the session file says.
    fn compacted(&self, entry: Value, by_hook: bool) -> BoxFuture<'_, ()>;

    /// Another place of the session tree is about to be gone to.
    fn before_navigation(
        &self,
        plan: NavigationPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, NavigationChoice>;

    /// Another place of the session tree was reached.
    fn navigated(
        &self,
        old_leaf: Option<String>,
        new_leaf: Option<String>,
        summary: Option<Value>,
        by_hook: bool,
    ) -> BoxFuture<'_, ()>;

    /// Another model was chosen. Awaited before the command that chose it is answered.
    fn model_selected(
        &self,
        model: Arc<Model>,
        previous: Option<Arc<Model>>,
        source: SelectionSource,
    ) -> BoxFuture<'_, ()>;

    /// Another thinking level was chosen. Must not block: nobody waits.
    fn level_selected(&self, level: ThinkingLevel, previous: ThinkingLevel);

    /// Returns when everything told so far has been heard, though perhaps not dealt with.
    fn caught_up(&self) -> BoxFuture<'_, ()>;

    /// The command `name`, ready to be run with everything after it; `None` if there is none.
    fn command(&self, name: &str, arguments: &str) -> Option<BoxFuture<'static, ()>>;

    /// The session ends for good. Returns when everyone who took part has said farewell.
    fn farewell(&self) -> BoxFuture<'_, ()>;
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A client.
    #[default]
    Client,
    /// Someone who takes part in the session.
    Hook,
}

/// Something said to the agent.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Input {
    pub text: String,
    pub images: Vec<Block>,
}

/// What becomes of an input.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum InputOutcome {
    /// It is said like this.
    Continue { text: String, images: Vec<Block> },
    /// It has been dealt with.
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
    /// It runs here.
    Run,
    /// A hook ran it, or answers for it.
    Done(BashOutcome),
    /// It does not run; the text tells the client why.
    Refused(String),
}

/// A run that is about to start.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Opening {
    /// The prompt as the model will see it.
    pub prompt: String,
    pub images: Vec<Block>,
    pub system_prompt: Arc<str>,
}

/// What is changed about a run.
#[derive(Debug, Clone, Default)]
pub struct OpeningChanges {
    /// Said after the prompt.
    pub messages: Vec<CustomMessage>,
    /// The system prompt of this run.
    pub system_prompt: Option<String>,
}

/// Whether a tool runs.
#[derive(Debug, Clone)]
pub enum ToolGate {
    /// It runs, with these arguments.
    Run(Value),
    /// It does not; the text tells the model why.
    Block(String),
}

/// What a tool call gave.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct ToolCallResult {
    pub output: ToolOutput,
    pub is_error: bool,
}

/// A change of session.
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

/// Where a fork begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkPosition {
    /// Before the entry, which must be a user's message.
    #[default]
    Before,
    /// With the entry.
    At,
}

/// What a compaction is going to do.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CompactionPlan {
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
    /// Every entry of the branch, as the session file says.
    pub branch: Vec<Value>,
    pub instructions: Option<String>,
}

/// What becomes of a compaction.
#[derive(Debug, Clone)]
pub enum CompactionChoice {
    /// It goes on.
    Go,
    /// It does not.
    Cancel,
    /// This takes its place.
    Use(Box<CompactionResult>),
}

/// What a navigation is going to do.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct NavigationPlan {
    pub navigation: Navigation,
    pub old_leaf: Option<String>,
    pub common_ancestor: Option<String>,
    /// The entries that are left, as the session file says.
    pub left: Vec<Value>,
}

/// What becomes of a navigation.
#[derive(Debug)]
pub enum NavigationChoice {
    /// It goes on, perhaps with a summary that is ready.
    Go {
        /// What is asked for, perhaps changed.
        navigation: Box<Navigation>,
        /// The summary and its details.
        summary: Option<(String, Option<Value>)>,
    },
    /// It does not.
    Cancel,
}

/// How a model was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SelectionSource {
    Set,
    Cycle,
}
