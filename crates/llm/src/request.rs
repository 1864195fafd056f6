//! What is asked of a model, and what comes back.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use pinion_message::{AssistantMessage, Block, Message, Model, Secret, ThinkingLevel, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Environment, Sampling};

/// One request to a model.
#[derive(Clone)]
pub struct Request {
    /// Who is asked.
    pub model: Arc<Model>,
    /// The system prompt, if any.
    pub system_prompt: Option<Arc<str>>,
    /// User, assistant and tool-result messages; other kinds are left out.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// Everything optional.
    pub options: RequestOptions,
    /// Ends the request; the stream then closes with an `aborted` message.
    pub cancel: CancellationToken,
}

/// Shows who is asked and how much; texts and headers stay out of logs.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field(
                "model",
                &format_args!("{}/{}", self.model.provider, self.model.id),
            )
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Everything optional about a request.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// The key; absent for models that need none.
    pub api_key: Option<Secret>,
    /// The variables that parts of the address come from (Azure, Cloudflare).
    pub environment: Environment,
    /// How hard to think; `None` is off.
    pub reasoning: Option<ThinkingLevel>,
    /// Names the session for caches.
    pub session_id: Option<String>,
    /// How long a provider should keep the prompt cached.
    pub cache_retention: CacheRetention,
    /// Output cap; `None` is the default rule.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// How the answer is drawn and shaped otherwise.
    pub sampling: Option<Arc<Sampling>>,
    /// Headers that win over all others.
    pub headers: BTreeMap<String, String>,
    /// Overrides of the token budgets per level.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    /// Tool choice, passed through where the API has one (openai-completions).
    pub tool_choice: Option<Value>,
    /// Names the end user, where the API takes such a name (anthropic-messages).
    pub user_id: Option<String>,
    /// Retries of the HTTP request itself.
    pub retry: HttpRetry,
    /// How long each wait may take.
    pub timeouts: Timeouts,
    /// Someone who takes part in the exchange.
    pub tap: Option<Arc<dyn Tap>>,
}

/// Someone who sees a request before it goes out, and its response when it begins.
pub trait Tap: Send + Sync {
    /// Whether [`Tap::payload`] is worth parsing the body for.
    fn wants_payload(&self) -> bool;

    /// The body of the request; what is returned is sent.
    fn payload(&self, payload: Value) -> BoxFuture<'_, Value>;

    /// The response begins; names of headers are lower case.
    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()>;
}

/// Headers are shown by name: their values may be keys.
impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("reasoning", &self.reasoning)
            .field("session_id", &self.session_id)
            .field("max_tokens", &self.max_tokens)
            .field("headers", &self.headers.keys())
            .field("retry", &self.retry)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// How long a provider should keep the prompt cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CacheRetention {
    None,
    #[default]
    Short,
    Long,
}

/// Retries of the HTTP request itself, before any byte of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRetry {
    /// Extra attempts.
    pub max_retries: u32,
    /// A server that asks for a longer wait makes the request fail at once.
    pub max_delay: Duration,
}

impl Default for HttpRetry {
    fn default() -> Self {
        Self {
            max_retries: 2,
            max_delay: Duration::from_secs(60),
        }
    }
}

/// How long each wait may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the response headers are there.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// For the whole request.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            total: None,
        }
    }
}

/// What happens while a model answers.
///
/// `Start` comes first, once the response headers are there; a request that fails earlier yields
/// only `End`. `End` comes exactly once and last. `index` is the position in `message.content`.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// The answer begins; the message is still empty. Carries api, provider, model, timestamp.
    Start(AssistantMessage),
    /// A block begins. Text and thinking blocks are empty; a tool call has its id and name.
    BlockStart {
        /// Position in the message.
        index: usize,
        /// The block as it begins.
        block: Block,
    },
    /// The open block grows: text, thinking text, or raw JSON of tool arguments.
    Delta {
        /// Position in the message.
        index: usize,
        /// What is added.
        delta: Arc<str>,
    },
    /// A block is complete.
    BlockEnd {
        /// Position in the message.
        index: usize,
        /// The block as it ended.
        block: Block,
    },
    /// Tokens counted so far, where a provider tells before the end.
    Usage(pinion_message::Usage),
    /// The answer is over: done, failed or aborted, as its stop reason says.
    End(AssistantMessage),
}

/// The events of one answer.
pub type EventStream = Pin<Box<dyn Stream<Item = StreamEvent> + Send>>;

/// Something that answers requests.
pub trait Provider: Send + Sync {
    /// Starts a request. Failures arrive as the `End` event; this never panics or blocks.
    fn stream(&self, request: Request) -> EventStream;
}
