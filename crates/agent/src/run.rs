//! A run: turns of requests, answers and tool calls, until the model makes no more calls.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use pinion_llm::{Request, RequestOptions, StreamEvent, Tap, TapHeaders, is_overflow};
use pinion_message::{
    AssistantMessage, Block, Message, Model, StopReason, ThinkingLevel, ToolSpec, Usage, now_millis,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::boundary::{Boundary, RunOutcome};
use crate::convert::{Images, for_model};
use crate::core::Core;
use crate::hooks::{Hooks, Moment, RequestContext};
use crate::spans;
use crate::state::Phase;
use crate::system_message::is_system;
use crate::{Delivery, Event};

/// The error text of an answer that was aborted before its request.
const ABORT_TEXT: &str = "Request was aborted.";

/// Deltas received in a row before the task yields to other work.
const DELTAS_PER_YIELD: u32 = 64;

/// An active run. Its model and thinking level are those at its start, for all of its turns.
pub(crate) struct Run<'a> {
    core: &'a Core,
    model: Arc<Model>,
    thinking_level: ThinkingLevel,
    cancel: CancellationToken,
    produced: Vec<Arc<Message>>,
}

/// The result of a run.
pub(crate) struct RunEnd {
    pub messages: Arc<[Arc<Message>]>,
    /// The last answer.
    pub last: Option<Arc<Message>>,
}

/// The receivers of the end of a turn so far.
enum TurnEndSent {
    ToAll,
    /// The listeners must still receive it.
    ToHooksOnly,
}

/// The time at which hooks receive the context of the next turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnContext {
    /// Before the listeners receive the end of this turn.
    Early,
    /// In the next turn, or never.
    Late,
}

/// Messages that enter the conversation at the beginning of a turn.
#[derive(Default)]
struct Pending {
    prompts: Vec<Arc<Message>>,
    steering: Vec<Arc<Message>>,
    follow_up: Vec<Arc<Message>>,
}

impl Pending {
    fn prompts(prompts: Vec<Arc<Message>>) -> Self {
        Self {
            prompts,
            ..Self::default()
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Message>> {
        let queued = self.steering.iter().chain(&self.follow_up);
        self.prompts.iter().chain(queued)
    }

    fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// Passes requests and responses of a provider to the hooks.
struct HookTap {
    hooks: Arc<dyn Hooks>,
    model: Arc<Model>,
}

impl Tap for HookTap {
    fn wants_payload(&self) -> bool {
        self.hooks.wants(Moment::Payload)
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        self.hooks.payload(payload)
    }

    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        if self.hooks.wants(Moment::Response) {
            self.hooks.response(status, headers)
        } else {
            Box::pin(std::future::ready(()))
        }
    }

    fn wants_headers(&self) -> bool {
        self.hooks.wants(Moment::Headers)
    }

    fn headers(&self, headers: TapHeaders) -> BoxFuture<'_, TapHeaders> {
        self.hooks.headers(headers)
    }

    fn wants_events(&self) -> bool {
        self.hooks.wants(Moment::ProviderEvent)
    }

    fn event(&self, data: Value) -> BoxFuture<'_, ()> {
        self.hooks.provider_event(&self.model, data)
    }
}

impl<'a> Run<'a> {
    pub fn new(core: &'a Core, model: Arc<Model>, cancel: CancellationToken) -> Self {
        let thinking_level = core.state().thinking_level;
        Self {
            core,
            model,
            thinking_level,
            cancel,
            produced: Vec::new(),
        }
    }

    /// Runs until the model makes no more calls, a request fails or the run is aborted. The caller emits the end of the
    /// run.
    pub async fn execute(mut self, prompts: Vec<Arc<Message>>) -> RunEnd {
        self.core.set_phase(Phase::Running);
        self.core.emit(Event::AgentStart);
        self.core.emit(Event::TurnStart);
        // Hooks may queue messages before the first request.
        self.core.emitter.drained(&self.cancel).await;
        let mut pending = Pending::prompts(prompts);
        pending.steering = self.core.state().take_queued(Delivery::Steer);
        let mut first_turn = true;
        let mut context = None;
        let mut last = None;
        loop {
            let mut continues = true;
            while continues {
                if !first_turn {
                    self.core.emit(Event::TurnStart);
                }
                first_turn = false;
                let late = self.core.settings.behaviour.context_after_messages;
                if context.is_none() && !late {
                    context = self.context(&pending).await;
                }
                self.append_pending(std::mem::take(&mut pending)).await;
                if late {
                    context = self.context(&pending).await;
                }

                let message = self.ask(context.take()).await;
                last = Some(Arc::clone(&message));
                let Message::Assistant(answer) = &*message else {
                    break;
                };
                if let outcome @ (RunOutcome::Aborted | RunOutcome::Failed) = outcome_of(answer) {
                    let turn_end = Event::TurnEnd {
                        message,
                        tool_results: Arc::new([]),
                    };
                    self.send_turn_end(&turn_end, outcome, TurnContext::Late)
                        .await;
                    return self.end(last);
                }
                let calls = self.core.execute_calls(answer, &self.cancel).await;
                let has_calls = !calls.results.is_empty() && !calls.terminate;
                self.produced.extend(calls.results.iter().cloned());
                let turn_end = Event::TurnEnd {
                    message: Arc::clone(&message),
                    tool_results: calls.results.into(),
                };
                pending.steering = calls.steering;
                let next_context = if late || self.core.hook(Moment::Context).is_none() {
                    TurnContext::Late
                } else {
                    TurnContext::Early
                };
                let (sent, again) = self
                    .send_turn_end(&turn_end, RunOutcome::Completed, next_context)
                    .await;
                if pending.steering.is_empty() {
                    pending.steering = self.core.state().take_queued(Delivery::Steer);
                }
                if again && !has_calls && pending.is_empty() {
                    // A follow-up is the other turn that the hooks request.
                    pending.follow_up = self.core.state().take_queued(Delivery::FollowUp);
                }
                continues = has_calls || !pending.is_empty() || again;
                if has_calls && !self.cancel.is_cancelled() {
                    self.core
                        .compact_between_turns(answer, &self.model, &self.cancel)
                        .await;
                }
                if continues && !late {
                    context = self.context(&pending).await;
                }
                if let TurnEndSent::ToHooksOnly = sent {
                    self.core.emitter.emit_to_listeners(&turn_end);
                }
            }
            pending.follow_up = self.core.state().take_queued(Delivery::FollowUp);
            if pending.is_empty() {
                return self.end(last);
            }
        }
    }

    fn end(self, last: Option<Arc<Message>>) -> RunEnd {
        RunEnd {
            messages: self.produced.into(),
            last,
        }
    }

    /// Sends the end of a turn and waits for the hooks, because messages that they queue now belong to this run. If
    /// hooks also filter the context early, the listeners receive the event later, after the context of the next turn is
    /// made. Also returns whether hooks request another turn.
    async fn send_turn_end(
        &self,
        turn_end: &Event,
        outcome: RunOutcome,
        next_context: TurnContext,
    ) -> (TurnEndSent, bool) {
        let core = self.core;
        core.emitter.drained(&self.cancel).await;
        // After an abort earlier events may still wait for hooks.
        if core.hook(Moment::TurnEnd).is_none() || self.cancel.is_cancelled() {
            core.emit(turn_end.clone());
            core.emitter.drained(&self.cancel).await;
            return (TurnEndSent::ToAll, false);
        }
        let changes = core
            .tell_hook(Moment::TurnEnd, &self.cancel, |hooks| {
                hooks.boundary(Boundary::TurnEnd(turn_end, outcome))
            })
            .await
            .unwrap_or_default();
        core.append_boundary_entries(changes.entries, &self.cancel)
            .await;
        if next_context == TurnContext::Early {
            return (TurnEndSent::ToHooksOnly, changes.continues);
        }
        core.emitter.emit_to_listeners(turn_end);
        (TurnEndSent::ToAll, changes.continues)
    }

    /// Returns the context that hooks let the model see; `None` stands for the whole conversation.
    async fn context(&self, pending: &Pending) -> Option<RequestContext> {
        self.core.hook(Moment::Context)?;
        let mut messages = self.core.messages_view();
        messages.retain(|message| !is_system(message));
        messages.extend(pending.all().cloned());
        let system_prompt = self.core.effective_prompt();
        self.core
            .ask_hook(Moment::Context, &self.cancel, |hooks| {
                hooks.context(RequestContext {
                    messages,
                    system_prompt,
                })
            })
            .await
    }

    async fn append_pending(&mut self, pending: Pending) {
        // Also in a turn without a message: a call of the turn before may have changed the tools.
        if let Some(message) = self.core.system_change() {
            self.append_one(message).await;
        }
        for message in pending.prompts {
            self.append_one(message).await;
        }
        for (delivery, queued) in [
            (Delivery::Steer, pending.steering),
            (Delivery::FollowUp, pending.follow_up),
        ] {
            for (at, message) in queued.iter().enumerate() {
                if matches!(**message, Message::User(_)) {
                    let update = self.core.queue_update(&queued[at + 1..], delivery);
                    self.core.emit(update);
                }
                self.append_one(Arc::clone(message)).await;
            }
        }
    }

    async fn append_one(&mut self, message: Arc<Message>) {
        if matches!(*message, Message::User(_)) {
            self.core.state().overflow_handled = false;
        }
        let message = self.core.append_message(message, &self.cancel).await;
        self.produced.push(message);
    }

    /// Stores a finished answer and emits its end. An answer that did not fail ends a series of retries.
    async fn finish_answer(&mut self, answer: AssistantMessage) -> Arc<Message> {
        let message = Arc::new(Message::Assistant(answer));
        let message = self.core.finish_message(message, &self.cancel).await;
        self.produced.push(Arc::clone(&message));
        let answer = message.as_assistant();
        let failed = answer.is_none_or(|answer| answer.stop_reason == StopReason::Error);
        let window = self.model.context_window;
        let fits = answer.is_some_and(|answer| !is_overflow(answer, window));
        if !failed {
            let mut state = self.core.state();
            // Without the test for `fits`, a model that answers in spite of an overflow would be asked again without
            // end.
            state.overflow_handled &= !fits;
            let attempt = std::mem::take(&mut state.retry_attempt);
            drop(state);
            if attempt > 0 {
                let success = Event::RetryEnd {
                    success: true,
                    attempt,
                    final_error: None,
                };
                self.core.emit(success);
            }
        }
        message
    }

    /// Requests an answer from the model and emits it while it streams.
    async fn ask(&mut self, context: Option<RequestContext>) -> Arc<Message> {
        let begun = Instant::now();
        let mut started = false;
        let answer = AssertUnwindSafe(self.stream_answer(context, &mut started)).catch_unwind();
        let answer =
            spans::request(&self.model, "answer", answer, |answer| answer.as_ref().ok()).await;
        let answer = answer.unwrap_or_else(|_| {
            self.failure("The provider's code failed unexpectedly (internal error).")
        });
        let answer = self.measured(answer, begun);
        if !started {
            let first = self.announcement(&answer);
            self.core
                .emit(Event::MessageStart(Arc::new(Message::Assistant(first))));
        }
        self.finish_answer(answer).await
    }

    /// Adds the duration and the thinking level to a finished answer and sets the text of an abort; or removes
    /// everything that only measured answers have.
    fn measured(&self, mut answer: AssistantMessage, begun: Instant) -> AssistantMessage {
        let behaviour = &self.core.settings.behaviour;
        if let (StopReason::Aborted, Some(text)) = (answer.stop_reason, behaviour.abort_text) {
            answer.error_message = Some(text.to_owned());
        }
        if behaviour.record_measurements {
            answer.duration_ms = Some(begun.elapsed().as_millis() as u64);
            answer.thinking_level = Some(self.thinking_level);
        } else {
            answer.remove_measurements();
        }
        answer
    }

    /// Returns the message that announces an answer which failed before its first byte: the failed answer, or an empty
    /// one for the APIs in [`EngineBehaviour::announce_failed_answer_empty`].
    ///
    /// [`EngineBehaviour::announce_failed_answer_empty`]: crate::EngineBehaviour::announce_failed_answer_empty
    fn announcement(&self, answer: &AssistantMessage) -> AssistantMessage {
        let behaviour = &self.core.settings.behaviour;
        if behaviour
            .announce_failed_answer_empty
            .contains(&self.model.api.as_str())
        {
            AssistantMessage {
                timestamp: answer.timestamp,
                ..self.blank()
            }
        } else {
            answer.clone()
        }
    }

    async fn stream_answer(
        &self,
        context: Option<RequestContext>,
        started: &mut bool,
    ) -> AssistantMessage {
        if self.cancel.is_cancelled() && self.core.settings.behaviour.fail_unsent_answers {
            let text = self.core.settings.behaviour.abort_text;
            return self.failure(text.unwrap_or(ABORT_TEXT));
        }
        let authorization = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return self.aborted(),
            authorization = self.core.models.access(&self.model) => authorization,
        };
        let mut options = RequestOptions {
            reasoning: (self.thinking_level != ThinkingLevel::Off).then_some(self.thinking_level),
            retry: self.core.settings.http_retry,
            timeouts: self.core.settings.timeouts,
            thinking_budgets: self.core.settings.thinking_budgets.clone(),
            cache_retention: self.core.settings.cache_retention,
            max_tokens: self.core.settings.max_tokens,
            temperature: self.core.settings.temperature,
            ..RequestOptions::default()
        };
        match authorization {
            Ok(authorization) => authorization.apply(&mut options),
            Err(error) => return self.failure(&error),
        }
        if let Some(hooks) = &self.core.hooks {
            self.core.emitter.drained(&self.cancel).await;
            options.tap = Some(Arc::new(HookTap {
                hooks: Arc::clone(hooks),
                model: Arc::clone(&self.model),
            }));
        }
        let request = self.request(context, options);
        let mut stream = self.core.models.provider(&self.model).stream(request);
        let mut deltas = 0u32;
        let begun = Instant::now();
        while let Some(event) = stream.next().await {
            match event {
                StreamEvent::Start(message) => {
                    *started = true;
                    self.core
                        .emit(Event::MessageStart(Arc::new(Message::Assistant(message))));
                }
                StreamEvent::BlockStart { index, block } => {
                    self.core.emit(Event::BlockStart {
                        index,
                        block: Arc::new(block),
                    });
                }
                StreamEvent::Delta { index, delta } => {
                    if deltas == 0 {
                        spans::first_output(begun);
                    }
                    self.core.emit(Event::BlockDelta { index, delta });
                    self.core.room(&self.cancel).await;
                    deltas += 1;
                    if deltas.is_multiple_of(DELTAS_PER_YIELD) {
                        tokio::task::yield_now().await;
                    }
                }
                StreamEvent::BlockEnd { index, mut block } => {
                    self.settle_argument_errors(std::slice::from_mut(&mut block));
                    if let Block::ToolCall(call) = &block
                        && self.core.settings.report_call_details
                    {
                        self.core.preview(call, &self.cancel).await;
                    }
                    self.core.emit(Event::BlockEnd {
                        index,
                        block: Arc::new(block),
                    });
                }
                StreamEvent::Usage(usage) => {
                    let usage = if self.core.settings.behaviour.record_measurements {
                        usage
                    } else {
                        usage.without_details()
                    };
                    self.core.emit(Event::UsageUpdate(usage));
                }
                StreamEvent::End(mut message) => {
                    self.settle_argument_errors(&mut message.content);
                    return message;
                }
            }
        }
        self.failure("The provider's stream ended without a result (server error).")
    }

    /// Removes the part of malformed tool arguments that could be read if such calls are rejected, else the error.
    fn settle_argument_errors(&self, blocks: &mut [Block]) {
        let rejects = self.core.settings.behaviour.reject_malformed_arguments;
        for block in blocks {
            if let Block::ToolCall(call) = block {
                if !rejects {
                    call.arguments_error = None;
                } else if call.arguments_error.is_some() {
                    call.arguments = Value::Object(Default::default());
                }
            }
        }
    }

    fn request(&self, context: Option<RequestContext>, mut options: RequestOptions) -> Request {
        let (messages, system_prompt) = match context {
            Some(context) => (Some(context.messages), context.system_prompt),
            None => (None, self.core.effective_prompt()),
        };
        let mut tools = self.core.toolbox().specs();
        let state = self.core.state();
        if !state.hidden_tools.is_empty() {
            let declared = |tool: &&ToolSpec| !state.hidden_tools.contains(&tool.name);
            tools = tools.iter().filter(declared).cloned().collect();
        }
        options.session_id = Some(state.store.id().to_owned());
        let images = if self.core.settings.block_images {
            Images::Blocked
        } else {
            Images::Sent
        };
        Request {
            model: Arc::clone(&self.model),
            system_prompt: Some(system_prompt),
            messages: for_model(messages.as_ref().unwrap_or(&state.messages), images),
            tools,
            options,
            cancel: self.cancel.clone(),
        }
    }

    fn blank(&self) -> AssistantMessage {
        AssistantMessage {
            content: Vec::new(),
            api: self.model.api.clone(),
            provider: self.model.provider.clone(),
            model: self.model.id.clone(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            timestamp: now_millis(),
            response_id: None,
            response_model: None,
            error_message: None,
            raw_stop_reason: None,
            refused: false,
            duration_ms: None,
            thinking_level: None,
        }
    }

    fn failure(&self, error: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(error.to_owned()),
            ..self.blank()
        }
    }

    fn aborted(&self) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Aborted,
            error_message: Some(ABORT_TEXT.to_owned()),
            ..self.blank()
        }
    }
}

/// Returns the outcome of a run that ends with this answer.
pub(crate) fn outcome_of(answer: &AssistantMessage) -> RunOutcome {
    match answer.stop_reason {
        StopReason::Aborted => RunOutcome::Aborted,
        StopReason::Error => RunOutcome::Failed,
        _ => RunOutcome::Completed,
    }
}
