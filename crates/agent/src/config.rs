//! What a session is made of, and the seams through which it reaches the rest of the program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_llm::{Authorization, CacheRetention, HttpRetry, Provider, Timeouts};
use pinion_message::{Mask, Model, ThinkingLevel};
use pinion_session::Store;
use pinion_tools::{Tool, ToolSettings};
use serde_json::Value;

use crate::{Gate, Hooks, Listener};

/// Everything a session starts with.
pub struct Config {
    /// The conversation on disk.
    pub store: Store,
    /// Where tools and commands run.
    pub cwd: PathBuf,
    /// Where sessions of this project are kept; `None` keeps them in memory.
    pub session_directory: Option<PathBuf>,
    /// Who is asked.
    pub model: Option<Arc<Model>>,
    /// How hard it thinks.
    pub thinking_level: ThinkingLevel,
    /// The models there are.
    pub models: Arc<dyn Models>,
    /// The tools there are.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Which of them the model may call.
    pub active_tools: Vec<String>,
    /// Tools that others bring along.
    pub added_tools: Vec<Arc<dyn Tool>>,
    /// Which tools may be added, now or later.
    pub tool_filter: ToolFilter,
    /// How shell commands of the user are run.
    pub shell: ToolSettings,
    /// What the model is told first.
    pub system_prompt: Arc<dyn SystemPrompt>,
    /// Keys that must not be written or sent.
    pub mask: Mask,
    /// Numbers and switches.
    pub settings: EngineSettings,
    /// Keeps what the user chose for the next start.
    pub preferences: Arc<dyn Preferences>,
    /// Expands skills and templates.
    pub expander: Arc<dyn Expander>,
    /// Who is told what happens.
    pub listeners: Vec<Arc<dyn Listener>>,
    /// Who takes part.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Who decides whether a tool call may be made; `None` lets all of them be made.
    pub gate: Option<Arc<dyn Gate>>,
}

/// Makes what the model is told first.
pub trait SystemPrompt: Send + Sync {
    /// The prompt while these tools are active.
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str>;
}

impl<F: Fn(&[Arc<dyn Tool>]) -> Arc<str> + Send + Sync> SystemPrompt for F {
    fn compose(&self, active: &[Arc<dyn Tool>]) -> Arc<str> {
        self(active)
    }
}

/// Which tools a session may have at all.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// Only these; `None` is all.
    pub only: Option<Vec<String>>,
    /// None of these.
    pub without: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool of this name may be used.
    pub fn permits(&self, name: &str) -> bool {
        let listed = |names: &Vec<String>| names.iter().any(|listed| listed == name);
        self.only.as_ref().is_none_or(listed) && !listed(&self.without)
    }
}

/// Switches the project has decided. What a client chooses is remembered, but changes nothing here.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Decided {
    pub auto_compaction: Option<bool>,
    pub auto_retry: Option<bool>,
}

/// Numbers and switches.
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
    pub decided: Decided,
    pub max_retries: u32,
    pub retry_base_delay: Duration,
    pub http_retry: HttpRetry,
    pub timeouts: Timeouts,
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    pub cache_retention: CacheRetention,
    pub block_images: bool,
    /// The longest answer, in tokens; `None` is the model's own rule.
    pub max_tokens: Option<u64>,
    /// How the answer is drawn; `None` is the provider's own rule.
    pub temperature: Option<f64>,
    /// A call that takes longer is ended.
    pub tool_timeout: Duration,
    /// The level a model that can think starts with when the one before it could not.
    pub default_thinking_level: ThinkingLevel,
    /// What a queued message does to the calls that have not run yet.
    pub steering: Steering,
    /// How the calls of one answer run.
    pub tool_order: ToolOrder,
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

/// What a steering message does to the calls of the answer that have not run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Steering {
    /// They are skipped.
    #[default]
    SkipsCalls,
    /// They run first.
    WaitsForTurn,
}

/// How the calls of one answer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolOrder {
    /// One after another.
    #[default]
    Sequential,
    /// Side by side, unless one of the tools objects.
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
            decided: Decided::default(),
            max_retries: 3,
            retry_base_delay: Duration::from_secs(2),
            http_retry: HttpRetry::default(),
            timeouts: Timeouts::default(),
            thinking_budgets: BTreeMap::new(),
            cache_retention: CacheRetention::default(),
            block_images: false,
            max_tokens: None,
            temperature: None,
            tool_timeout: Duration::from_secs(6 * 60 * 60),
            default_thinking_level: ThinkingLevel::Medium,
            steering: Steering::default(),
            tool_order: ToolOrder::default(),
            behaviour: EngineBehaviour::default(),
        }
    }
}

/// The models there are, and how to reach them.
pub trait Models: Send + Sync {
    /// The model with exactly this provider and id, if it has credentials.
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>>;
    /// Every model that has credentials.
    fn available(&self) -> Vec<Arc<Model>>;
    /// The models to cycle through, with the level each asks for; empty means all available.
    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)>;
    /// What a request to `model` needs; the error is for the user.
    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>>;
    /// Who answers for `model`.
    fn provider(&self, model: &Model) -> Arc<dyn Provider>;
    /// Whether credentials are set up for `model`; the error is for the user. Runs nothing.
    fn check_credentials(&self, model: &Model) -> Result<(), String>;
}

/// Keeps what the user chose for the next start.
pub trait Preferences: Send + Sync {
    /// Stores `changes` (dotted path, value), if it can be done soon before it returns: the command that made them is
    /// answered then. Must not block for long and never fails loudly.
    fn remember(&self, changes: Vec<(&'static str, Option<Value>)>);
}

/// Expands what a user typed: skills and templates.
pub trait Expander: Send + Sync {
    /// The text to send, and what went wrong while expanding it.
    fn expand(&self, text: &str) -> Expanded;

    /// The list of what can be called with `/`.
    fn commands(&self) -> Value;
}

/// An expanded text.
#[derive(Debug, Clone, Default)]
pub struct Expanded {
    /// What is sent.
    pub text: String,
    /// A file that could not be read, and why.
    pub fault: Option<(String, String)>,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
