//! The configuration of a session, and the traits through which it uses the rest of the program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_llm::{Authorization, CacheRetention, HttpRetry, Provider, Timeouts};
use pinion_message::{Mask, Message, Model, ThinkingLevel};
use pinion_session::Store;
use pinion_tools::{Tool, ToolSettings};
use serde_json::Value;

use crate::{Gate, Hooks, Listener, ToolSupply};

/// The parts and settings that a session starts with.
pub struct Config {
    /// The session file.
    pub store: Store,
    /// The conversation at the store's leaf. The caller reads it, on a thread that may block: [`Store::context`].
    pub messages: Vec<Arc<Message>>,
    /// The working directory of tools and shell commands.
    pub cwd: PathBuf,
    /// The directory for new session files; `None` holds new sessions in memory.
    pub session_directory: Option<PathBuf>,
    /// The model of the first run; a client must select one if it is `None`.
    pub model: Option<Arc<Model>>,
    /// The thinking level of the first run.
    pub thinking_level: ThinkingLevel,
    /// Lists models and connects to their providers.
    pub models: Arc<dyn Models>,
    /// The built-in tools, active or not.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The names of the tools that the model may call.
    pub active_tools: Vec<String>,
    /// Further tools, such as those of extensions and clips; they start active.
    pub added_tools: Vec<Arc<dyn Tool>>,
    /// Supplies further tools while the session runs.
    pub tool_supply: Option<Arc<dyn ToolSupply>>,
    /// The tools that may be used, including those added later.
    pub tool_filter: ToolFilter,
    /// Settings for shell commands of the user.
    pub shell: ToolSettings,
    /// Composes the system prompt.
    pub system_prompt: Arc<dyn SystemPrompt>,
    /// Masks keys in everything that is stored or sent.
    pub mask: Mask,
    /// Limits, timeouts and switches.
    pub settings: EngineSettings,
    /// Stores the user's choices for the next start.
    pub preferences: Arc<dyn Preferences>,
    /// Expands skills and templates.
    pub expander: Arc<dyn Expander>,
    /// Receive every event.
    pub listeners: Vec<Arc<dyn Listener>>,
    /// Receives events of runs first, and can change what happens.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Decides about each tool call; `None` permits all.
    pub gate: Option<Arc<dyn Gate>>,
}

/// Composes the system prompt.
pub trait SystemPrompt: Send + Sync {
    /// Returns the system prompt for these active tools.
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str>;

    /// Returns the sections of the same prompt, by name.
    fn sections(&self, active: &[Arc<dyn Tool>]) -> Vec<(String, String)> {
        vec![("preamble".to_owned(), self.compose(active).to_string())]
    }
}

impl<F: Fn(&[Arc<dyn Tool>]) -> Arc<str> + Send + Sync> SystemPrompt for F {
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str> {
        self(active)
    }
}

/// The tools that a session may have.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// The only permitted names; `None` permits all.
    pub only: Option<Vec<String>>,
    /// Names that are not permitted.
    pub without: Vec<String>,
}

impl ToolFilter {
    /// Reports whether the session may have a tool of this name.
    pub fn permits(&self, name: &str) -> bool {
        let listed = |names: &Vec<String>| names.iter().any(|listed| listed == name);
        self.only.as_ref().is_none_or(listed) && !listed(&self.without)
    }
}

/// Switches that the project's settings fix. A client's choice is stored for other projects but has no effect here.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct ProjectSwitches {
    pub auto_compaction: Option<bool>,
    pub auto_retry: Option<bool>,
}

/// Limits, timeouts and switches of the engine.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct EngineSettings {
    pub steering_mode: Option<String>,
    pub follow_up_mode: Option<String>,
    pub auto_compaction: bool,
    pub reserve_tokens: u64,
    pub keep_recent_tokens: u64,
    pub branch_summary_reserve_tokens: u64,
    pub auto_retry: bool,
    pub project_switches: ProjectSwitches,
    pub max_retries: u32,
    pub retry_base_delay: Duration,
    pub http_retry: HttpRetry,
    pub timeouts: Timeouts,
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    pub cache_retention: CacheRetention,
    pub block_images: bool,
    /// Scales down the images of prompts that are too large for models.
    pub resize_prompt_images: bool,
    /// Token limit of an answer; `None` uses the model's limit.
    pub max_tokens: Option<u64>,
    /// Sampling temperature; `None` uses the provider's default.
    pub temperature: Option<f64>,
    /// Time limit of a tool call.
    pub tool_timeout: Duration,
    /// The thinking level after a switch from a model that cannot think to one that can.
    pub default_thinking_level: ThinkingLevel,
    /// The effect of a steering message on calls that have not run yet.
    pub steering: Steering,
    /// The order in which the calls of one answer run.
    pub tool_order: ToolOrder,
    /// Emits [`Event::CallDetail`](crate::Event::CallDetail), and adds changes of files to results.
    pub report_call_details: bool,
    /// Switches for behaviour on which clients differ.
    pub behaviour: EngineBehaviour,
}

/// Switches for behaviour on which clients differ. Each front sets the values that its clients expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineBehaviour {
    /// A tool call whose arguments are not JSON fails. Otherwise the tool gets the part that could be parsed.
    pub reject_malformed_arguments: bool,
    /// The values of [`Model::api`] for which an answer that failed before its first byte is announced by an empty
    /// message. For all others the failed answer itself is announced.
    pub announce_failed_answer_empty: &'static [&'static str],
    /// A failed request for a summary is retried like a failed request of a run. Otherwise it is made once.
    pub retry_summaries: bool,
    /// A compaction fails if there is nothing to summarise. Otherwise the model summarises an empty conversation.
    pub reject_empty_compaction: bool,
    /// The entry of a summary has the token usage of the requests that made it.
    pub store_summary_usage: bool,
    /// [`StateView::is_streaming`](crate::StateView::is_streaming) stays true during the wait before a retry.
    pub count_retry_wait_as_streaming: bool,
    /// The messages that [`Command::GetStats`](crate::Command::GetStats) counts.
    pub stats_scope: StatsScope,
    /// Hooks receive the context of a request when all messages of its turn are in the conversation. Otherwise they
    /// receive it before.
    pub context_after_messages: bool,
    /// Hooks receive messages of clients for a queue as they receive prompts.
    pub ask_hooks_about_queued_messages: bool,
    /// Hooks are asked before a run that a message of a hook starts.
    pub ask_hooks_about_custom_runs: bool,
    /// Answers have their duration, thinking level, raw stop reason and the details of their usage, and tool results
    /// their duration. Otherwise these members are removed.
    pub record_measurements: bool,
    /// A system message with the prompt and the tools enters the conversation before the first message of a run if it
    /// has changed. Otherwise a conversation has no system messages, also if its file has some.
    pub record_system_prompt: bool,
    /// An entry in the session file leaves an answer out of the conversation when it is repeated, followed by a
    /// compaction, or was cut off without a tool call. Otherwise only the running session leaves it out.
    pub record_omitted_answers: bool,
    /// The tool calls of an answer that was cut off by the output limit fail. Otherwise they run.
    pub reject_cut_off_calls: bool,
    /// A compaction that is due after a turn with tool calls runs before the next turn. Otherwise it waits for the end
    /// of the run.
    pub compact_between_turns: bool,
    /// A compaction after an overflow summarises the whole conversation. Otherwise the newest part stays.
    pub summarise_all_on_overflow: bool,
    /// The end of a run does not announce the run that follows a compaction after an overflow. Otherwise it does.
    pub hide_run_after_overflow: bool,
    /// The error text of aborted answers; with `None` they have that of the provider.
    pub abort_text: Option<&'static str>,
    /// An answer that is aborted before its request is sent has failed. Otherwise it is aborted like others.
    pub fail_unsent_answers: bool,
    /// [`Command::AbortRetry`](crate::Command::AbortRetry) is answered before the session settles. Otherwise after it.
    pub answer_retry_abort_at_once: bool,
    /// The model and the thinking level that a client selects stay in the session. Otherwise they are also stored for
    /// the next start.
    pub keep_choices_in_session: bool,
    /// [`Command::ClearQueue`](crate::Command::ClearQueue) emits the queues also if both were empty.
    pub announce_every_cleared_queue: bool,
    /// Runs of white space in the name of a session become one blank.
    pub fold_session_names: bool,
    /// The summary of a branch names the entry that was left. Otherwise the entry from which the session continues.
    pub name_left_entry_in_summary: bool,
    /// A new session begins with its model and its thinking level. Otherwise the model is stored only for hooks.
    pub store_model_in_new_session: bool,
    /// The file of a session that was made here and ends without a message of the conversation is removed.
    pub remove_sessions_without_messages: bool,
    /// The names of variables that describe the session to the commands of tools.
    pub session_variables: Option<SessionVariables>,
}

impl EngineBehaviour {
    /// Every switch is off.
    pub const PLAIN: Self = Self {
        reject_malformed_arguments: false,
        announce_failed_answer_empty: &[],
        retry_summaries: false,
        reject_empty_compaction: false,
        store_summary_usage: false,
        count_retry_wait_as_streaming: false,
        stats_scope: StatsScope::Context,
        context_after_messages: false,
        ask_hooks_about_queued_messages: false,
        ask_hooks_about_custom_runs: false,
        record_measurements: false,
        record_system_prompt: false,
        record_omitted_answers: false,
        reject_cut_off_calls: false,
        compact_between_turns: false,
        summarise_all_on_overflow: false,
        hide_run_after_overflow: false,
        abort_text: None,
        fail_unsent_answers: false,
        answer_retry_abort_at_once: false,
        keep_choices_in_session: false,
        announce_every_cleared_queue: false,
        fold_session_names: false,
        name_left_entry_in_summary: false,
        store_model_in_new_session: false,
        remove_sessions_without_messages: false,
        session_variables: None,
    };
}

/// The names of environment variables that describe the session to the commands of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SessionVariables {
    pub session_id: &'static str,
    /// Absent for a session in memory.
    pub session_file: &'static str,
    pub provider: &'static str,
    pub model: &'static str,
    pub thinking_level: &'static str,
}

/// The messages that statistics count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatsScope {
    /// The messages that the model sees next.
    #[default]
    Context,
    /// Every message of the session file, including those on other branches and those replaced by a summary.
    Session,
}

/// The effect of a steering message on the calls of the answer that have not run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Steering {
    /// They fail as skipped, and the message enters the conversation at once.
    #[default]
    SkipsCalls,
    /// They run before the message enters the conversation.
    WaitsForTurn,
}

/// The order in which the calls of one answer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolOrder {
    /// One after another.
    #[default]
    Sequential,
    /// In parallel, unless one of the tools requires sequential calls.
    Parallel,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            steering_mode: Some("one-at-a-time".into()),
            follow_up_mode: Some("one-at-a-time".into()),
            auto_compaction: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            branch_summary_reserve_tokens: 16_384,
            auto_retry: true,
            project_switches: ProjectSwitches::default(),
            max_retries: 3,
            retry_base_delay: Duration::from_secs(2),
            http_retry: HttpRetry::default(),
            timeouts: Timeouts::default(),
            thinking_budgets: BTreeMap::new(),
            cache_retention: CacheRetention::default(),
            block_images: false,
            resize_prompt_images: false,
            max_tokens: None,
            temperature: None,
            tool_timeout: Duration::from_secs(6 * 60 * 60),
            default_thinking_level: ThinkingLevel::Medium,
            steering: Steering::default(),
            tool_order: ToolOrder::default(),
            report_call_details: false,
            behaviour: EngineBehaviour::default(),
        }
    }
}

/// The available models and the access to their providers.
pub trait Models: Send + Sync {
    /// Returns the model with exactly this provider and id, if it has credentials.
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>>;
    /// Returns every model that has credentials.
    fn available(&self) -> Vec<Arc<Model>>;
    /// Returns the models to cycle through, each with its thinking level; empty stands for all available models.
    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)>;
    /// Returns the authorization for a request to `model`. The error is a sentence for the user.
    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>>;
    /// Returns the provider of `model`.
    fn provider(&self, model: &Model) -> Arc<dyn Provider>;
    /// Checks that `model` has credentials, without running a command that would fetch them. The error is a sentence
    /// for the user.
    fn check_credentials(&self, model: &Model) -> Result<(), String>;
}

/// Stores the user's choices for the next start.
pub trait Preferences: Send + Sync {
    /// Stores `changes` (dotted path, value), before it returns if that takes little time: the command that made them
    /// is answered after the call. Must not block for long; failures are not reported to the engine.
    fn remember(&self, changes: Vec<(&'static str, Option<Value>)>);
}

/// Expands skills and templates in the text of a prompt.
pub trait Expander: Send + Sync {
    /// Returns the text to send, and a fault if a file could not be read.
    fn expand(&self, text: &str) -> Expanded;

    /// Returns the list of commands that start with `/`.
    fn commands(&self) -> Value;
}

/// The result of [`Expander::expand`].
#[derive(Debug, Clone, Default)]
pub struct Expanded {
    /// The text to send.
    pub text: String,
    /// The path of a file that could not be read, and the error.
    pub fault: Option<(String, String)>,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
