//! The part of a session that faces the client: what has been sent, the turns, and what the client must be told.
//!
//! Events, answers of the client and requests change it from several threads. Everything that is sent while its lock is
//! held goes out in that order.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};
use pinion_message::{AssistantMessage, Message, StopReason, Usage};
use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::capabilities::ClientCapabilities;
use crate::client_requests::{ClientRequests, PendingRequest};
use crate::content::PromptBlock;
use crate::error::AcpError;
use crate::outbox::Outbox;
use crate::projection::{NoticeKind, Projection};
use crate::turns::{Answered, Stop, Turns};
use crate::v1::V1;
use crate::{time, title};

/// Limit on the lines that wait for the next turn.
const MAX_HELD_WORDS: usize = 64;

/// A session as its client sees it.
pub(crate) struct SessionView {
    id: Arc<str>,
    client: Arc<ClientCapabilities>,
    out: Arc<Outbox>,
    requests: Arc<ClientRequests>,
    /// The answers to prompts contain the tokens of the turn.
    reports_usage: bool,
    state: Mutex<ViewState>,
    /// A turn can begin, or the engine became idle.
    pub changed: Notify,
    /// The active turn was cancelled.
    pub cancelled: Notify,
    /// Something happened after which the options or commands may differ.
    pub stale: Notify,
}

pub(crate) struct ViewState {
    pub projection: Box<dyn Projection>,
    pub turns: Turns<Vec<PromptBlock>>,
    /// The engine works on a run, for a turn or for an extension.
    is_running: bool,
    /// User messages that follow and that the client has written.
    expected: usize,
    last_answer: Option<Arc<Message>>,
    retries: u32,
    usage: Usage,
    /// Words for a client without notices, said in the next turn.
    held_words: Vec<String>,
    title: Option<String>,
    has_sent_title: bool,
    /// Problems that are reported after the commands; `None` once the client knows the commands.
    early_faults: Option<Vec<Fault>>,
    /// A request changes options and reports them itself.
    pub is_changing: bool,
}

/// A problem outside the conversation.
struct Fault {
    source: String,
    during: String,
    error: String,
}

impl SessionView {
    pub fn new(
        id: &str,
        cwd: &Path,
        client: &Arc<ClientCapabilities>,
        out: Outbox,
        requests: &Arc<ClientRequests>,
        reports_usage: bool,
    ) -> Self {
        let out = Arc::new(out);
        let projection = V1::new(Arc::clone(client), cwd, Arc::clone(&out));
        Self {
            id: id.into(),
            client: Arc::clone(client),
            out,
            requests: Arc::clone(requests),
            reports_usage,
            state: Mutex::new(ViewState {
                projection: Box::new(projection),
                turns: Turns::default(),
                is_running: false,
                expected: 0,
                last_answer: None,
                retries: 0,
                usage: Usage::default(),
                held_words: Vec::new(),
                title: None,
                has_sent_title: false,
                early_faults: Some(Vec::new()),
                is_changing: false,
            }),
            changed: Notify::new(),
            cancelled: Notify::new(),
            stale: Notify::new(),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn client(&self) -> &ClientCapabilities {
        &self.client
    }

    pub fn out(&self) -> &Arc<Outbox> {
        &self.out
    }

    pub fn state(&self) -> MutexGuard<'_, ViewState> {
        lock(&self.state)
    }

    /// Sends a request to the client.
    pub fn request(&self, method: &str, params: &Value) -> PendingRequest {
        self.requests.send(&self.out, method, params)
    }

    /// Returns a call for a question about it.
    pub fn call(&self, id: &str) -> Option<Value> {
        self.state().projection.call(id)
    }

    /// Begins the next turn, if one waits and the engine is idle.
    pub fn begin_turn(&self) -> Option<Vec<PromptBlock>> {
        let mut state = self.state();
        if state.is_running {
            return None;
        }
        let prompt = state.turns.begin()?;
        state.last_answer = None;
        state.retries = 0;
        state.usage = Usage::default();
        state.projection.begin_turn();
        for words in std::mem::take(&mut state.held_words) {
            state.projection.say(&words);
        }
        Some(prompt)
    }

    /// Ends the active turn and answers its request.
    pub fn end_turn(&self, outcome: Result<Stop, AcpError>) {
        let mut state = self.state();
        self.end_turn_in(&mut state, outcome);
    }

    fn end_turn_in(&self, state: &mut ViewState, outcome: Result<Stop, AcpError>) {
        let usage = self.reports_usage.then_some(state.usage);
        let answers = state.turns.end(outcome);
        state.expected = 0;
        self.answer(answers, usage);
        self.changed.notify_one();
        self.stale.notify_one();
    }

    /// Answers prompts.
    pub fn answer(&self, answers: Vec<Answered>, usage: Option<Usage>) {
        for (request, outcome) in answers {
            let result = outcome.map(|stop| {
                let mut result = json!({"stopReason": stop.name()});
                if let Some(usage) = usage.filter(|usage| usage.context_tokens() > 0) {
                    result["usage"] = usage_value(&usage);
                }
                result
            });
            let result = result.map_err(|error| self.with_methods(error));
            self.out.respond(&request, &result);
        }
    }

    /// Adds the methods of authentication to an error about a key.
    fn with_methods(&self, error: AcpError) -> AcpError {
        if error.is_about_authentication() {
            error.with("authMethods", self.client.auth_methods())
        } else {
            error
        }
    }

    /// Sends the title if the client does not know it, and the time.
    pub fn send_info(&self) {
        let mut state = self.state();
        Self::send_info_in(&mut state);
    }

    fn send_info_in(state: &mut ViewState) {
        let title = state.title.clone().filter(|_| !state.has_sent_title);
        state.has_sent_title |= title.is_some();
        state
            .projection
            .session_info(title.as_deref().map(Some), Some(&time::now()));
    }

    /// The client knows this title.
    pub fn set_known_title(&self, title: Option<String>) {
        let mut state = self.state();
        state.has_sent_title = title.is_some();
        state.title = title;
    }

    /// A message that the client has written goes to the engine.
    pub fn expect_message(&self) {
        self.state().expected += 1;
    }

    /// The engine did not take it.
    pub fn expect_no_message(&self) {
        let mut state = self.state();
        state.expected = state.expected.saturating_sub(1);
    }

    pub fn is_running(&self) -> bool {
        self.state().is_running
    }

    pub fn is_cancelled(&self) -> bool {
        self.state().turns.is_cancelled()
    }

    /// Sends words in the active turn, or in the next one.
    pub fn say(&self, text: &str) {
        let mut state = self.state();
        if state.turns.is_active() {
            state.projection.say(text);
        }
    }

    /// Reports a problem outside the conversation: by a notice, else in words if `must_be_told`.
    pub fn notice(
        &self,
        kind: NoticeKind,
        title: &str,
        description: Option<&str>,
        must_be_told: bool,
    ) {
        let mut state = self.state();
        Self::notice_in(&mut state, kind, title, description, must_be_told);
    }

    fn notice_in(
        state: &mut ViewState,
        kind: NoticeKind,
        title: &str,
        description: Option<&str>,
        must_be_told: bool,
    ) {
        if state.projection.notice(kind, title, description) || !must_be_told {
            return;
        }
        let words = match description {
            Some(description) => format!("{title}: {description}\n"),
            None => format!("{title}\n"),
        };
        if state.turns.is_active() {
            state.projection.say(&words);
        } else if state.held_words.len() < MAX_HELD_WORDS {
            state.held_words.push(words);
        }
    }

    /// Sends the commands, and then the problems that occurred before.
    pub fn send_commands(&self, commands: &Value) {
        let mut state = self.state();
        state.projection.commands(commands);
        for Fault {
            source,
            during,
            error,
        } in state.early_faults.take().into_iter().flatten()
        {
            Self::fault(&mut state, &source, &during, &error);
        }
    }

    fn fault(state: &mut ViewState, source: &str, during: &str, error: &str) {
        if let Some(early) = &mut state.early_faults {
            if early.len() < MAX_HELD_WORDS {
                early.push(Fault {
                    source: source.to_owned(),
                    during: during.to_owned(),
                    error: error.to_owned(),
                });
            }
            return;
        }
        let is_server = during == "mcp";
        // The error of a server of mcp.json names the server, and its source is the file.
        let named = error.strip_prefix("MCP server \"");
        let (name, error) = match named.and_then(|named| named.split_once("\": ")) {
            Some((name, error)) if is_server => (name, error),
            _ => (source, error),
        };
        let title = if is_server {
            format!("MCP server \"{name}\" is not available")
        } else {
            format!("{source}: {during}")
        };
        Self::notice_in(state, NoticeKind::Warning, &title, Some(error), is_server);
    }

    fn settled(&self, state: &mut ViewState, aborted: bool) {
        state.is_running = false;
        if state.turns.is_active() {
            let last = state.last_answer.take();
            let answer = last.as_deref().and_then(Message::as_assistant);
            let outcome = outcome(answer, aborted, state.retries);
            self.end_turn_in(state, outcome);
        } else {
            self.changed.notify_one();
            self.stale.notify_one();
        }
        Self::send_info_in(state);
    }

    fn message_start(state: &mut ViewState, message: &Message) {
        let Message::User(user) = message else { return };
        if state.title.is_none() {
            state.title = title::of_message(&user.content.joined_text("\n"));
        }
        if state.expected > 0 {
            state.expected -= 1;
        } else {
            state.projection.user_message(message);
        }
    }
}

impl Listener for SessionView {
    fn notice(&self, _ordinal: u64, event: &Event) {
        let mut state = self.state();
        let state = &mut *state;
        match event {
            Event::AgentStart => state.is_running = true,
            Event::MessageStart(message) => Self::message_start(state, message),
            Event::MessageEnd(message) => {
                if let Message::Assistant(answer) = &**message {
                    state.usage.add(&answer.usage);
                    state.last_answer = Some(Arc::clone(message));
                }
            }
            Event::RetryStart { attempt, .. } => state.retries = *attempt,
            Event::SessionInfoChanged(name) => {
                state.title.clone_from(name);
                state.has_sent_title = true;
            }
            Event::Fault {
                source,
                during,
                error,
            } => Self::fault(state, source, during, error),
            _ => {}
        }
        // The size of the context after a turn that was cancelled is not known.
        let is_cut = matches!(event, Event::TurnEnd { .. }) && state.turns.is_cancelled();
        if !is_cut {
            state.projection.event(event);
        }
        match event {
            Event::Settled { aborted } => self.settled(state, *aborted),
            Event::ThinkingLevelChanged(_) if !state.is_changing => self.stale.notify_one(),
            _ => {}
        }
    }

    fn has_room(&self) -> bool {
        self.out.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.out.room())
    }
}

impl std::fmt::Debug for SessionView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionView")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Returns the outcome of a turn that ended with this answer.
fn outcome(
    answer: Option<&AssistantMessage>,
    aborted: bool,
    retries: u32,
) -> Result<Stop, AcpError> {
    if aborted {
        return Ok(Stop::Cancelled);
    }
    let Some(answer) = answer else {
        let words = "The run ended without an answer of the model.";
        return Err(AcpError::internal(words, "no_answer"));
    };
    match answer.stop_reason {
        StopReason::Stop | StopReason::ToolUse => Ok(Stop::EndTurn),
        StopReason::Length => Ok(Stop::MaxTokens),
        StopReason::Aborted => Ok(Stop::Cancelled),
        StopReason::Error if answer.refused => Ok(Stop::Refusal),
        StopReason::Error => {
            let words = answer.error_message.as_deref();
            let words = words.unwrap_or("The request to the model failed.");
            Err(if is_about_key(words) {
                AcpError::authentication_required(words)
            } else {
                AcpError::internal(words, "provider_error").with("retries", retries)
            })
        }
    }
}

/// Reports whether the error of a request to a model is about its key.
fn is_about_key(error: &str) -> bool {
    const WORDS: [&str; 7] = [
        "authentication_error",
        "invalid x-api-key",
        "invalid api key",
        "incorrect api key",
        "no api key",
        "api key not valid",
        "unauthorized",
    ];
    let error = error.to_ascii_lowercase();
    error.starts_with("401") || WORDS.iter().any(|words| error.contains(words))
}

fn usage_value(usage: &Usage) -> Value {
    let mut value = json!({
        "totalTokens": usage.context_tokens(),
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    });
    if let Some(reasoning) = usage.reasoning {
        value["thoughtTokens"] = reasoning.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_keys_ask_for_authentication() {
        for (error, about_key) in [
            (
                "401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}",
                true,
            ),
            ("No API key for provider: anthropic", true),
            ("overloaded_error: Overloaded", false),
            ("rate limit reached", false),
        ] {
            assert_eq!(is_about_key(error), about_key, "{error}");
        }
    }
}
