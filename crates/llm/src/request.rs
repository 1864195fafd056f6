//! A request to a model, and the events of its answer.

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

use crate::{CloudIdentity, Environment, Sampling};

#[derive(Clone)]
pub struct Request {
    pub model: Arc<Model>,
    pub system_prompt: Option<Arc<str>>,
    /// User, assistant and tool-result messages; other kinds are left out.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may call.
    pub tools: Arc<[ToolSpec]>,
    pub options: RequestOptions,
    /// Ends the request; the stream then closes with an `aborted` message.
    pub cancel: CancellationToken,
}

/// Shows the model and sizes only; texts and headers stay out of logs.
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

#[derive(Clone, Default)]
pub struct RequestOptions {
    /// The key; absent for models that need none.
    pub api_key: Option<Secret>,
    /// The variables that parts of the address come from (Azure, Cloudflare, clouds).
    pub environment: Environment,
    /// The address that replaces that of the model.
    pub base_url: Option<String>,
    /// The identity at a cloud, for APIs that take one instead of a key.
    pub identity: Option<CloudIdentity>,
    /// `None` is off.
    pub reasoning: Option<ThinkingLevel>,
    /// Names the session to the provider's caches.
    pub session_id: Option<String>,
    pub cache_retention: CacheRetention,
    /// Output cap; `None` is the default rule.
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// Further parameters of sampling and of the answer's form.
    pub sampling: Option<Arc<Sampling>>,
    /// Headers that override all others.
    pub headers: BTreeMap<String, String>,
    /// Overrides of the token budgets per level.
    pub thinking_budgets: BTreeMap<ThinkingLevel, u64>,
    /// Tool choice, passed through where the API has one (openai-completions).
    pub tool_choice: Option<Value>,
    /// Names the end user, where the API takes such a name (anthropic-messages).
    pub user_id: Option<String>,
    /// Retries of the HTTP request itself.
    pub retry: HttpRetry,
    pub timeouts: Timeouts,
    /// Intercepts the request and its response.
    pub tap: Option<Arc<dyn Tap>>,
}

/// Intercepts a request before it is sent, and its response.
pub trait Tap: Send + Sync {
    /// Reports whether [`Tap::payload`] is worth parsing the body for.
    fn wants_payload(&self) -> bool;

    /// Receives the body of the request and returns the body to send.
    fn payload(&self, payload: Value) -> BoxFuture<'_, Value>;

    /// Called when the response begins. Names of headers are lower case.
    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()>;

    /// Reports whether [`Tap::headers`] is worth collecting the headers for.
    fn wants_headers(&self) -> bool {
        false
    }

    /// Receives the headers of the request without the key, with names in lower case, and returns the headers to send.
    fn headers(&self, headers: TapHeaders) -> BoxFuture<'_, TapHeaders> {
        Box::pin(std::future::ready(headers))
    }

    /// Reports whether [`Tap::event`] is worth parsing events for.
    fn wants_events(&self) -> bool {
        false
    }

    /// Receives an event of the response as the server sent it.
    fn event(&self, _data: Value) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Headers of a request by name; `None` removes a header.
pub type TapHeaders = BTreeMap<String, Option<String>>;

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

/// The time for which a provider should cache the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Limits of the single waits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is open.
    pub connect: Duration,
    /// Until the response headers have arrived.
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

/// An event of an answer.
///
/// `Start` comes first, once the response headers have arrived; a request that fails earlier yields
/// only `End`. `End` comes exactly once and last. `index` is the position in `message.content`.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// The answer begins; the message is still empty. Carries api, provider, model, timestamp.
    Start(AssistantMessage),
    /// A block begins. Text and thinking blocks are empty; a tool call has its id and name.
    BlockStart { index: usize, block: Block },
    /// The open block grows: text, thinking text, or raw JSON of tool arguments.
    Delta { index: usize, delta: Arc<str> },
    /// A block is complete.
    BlockEnd { index: usize, block: Block },
    /// Tokens counted so far, from providers that report them before the end.
    Usage(pinion_message::Usage),
    /// The answer is over: done, failed or aborted, according to its stop reason.
    End(AssistantMessage),
}

/// The events of one answer.
pub type EventStream = Pin<Box<dyn Stream<Item = StreamEvent> + Send>>;

/// A source of answers.
pub trait Provider: Send + Sync {
    /// Starts a request. Failures arrive as the `End` event; this never panics or blocks.
    fn stream(&self, request: Request) -> EventStream;
}
