//! A run: turns of requests, answers and tool calls, until the model makes no more calls.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use pinion_llm::{Request, RequestOptions, StreamEvent, Tap, is_overflow};
use pinion_message::{
    AssistantMessage, Block, Message, Model, StopReason, ThinkingLevel, Usage, now_millis,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::convert::{Images, for_model};
use crate::core::Core;
use crate::hooks::{Hooks, Moment};
use crate::spans;
use crate::state::Phase;
use crate::{Delivery, Event};

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
struct HookTap(Arc<dyn Hooks>);

impl Tap for HookTap {
    fn wants_payload(&self) -> bool {
        self.0.wants(Moment::Payload)
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        self.0.payload(payload)
    }

    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        if self.0.wants(Moment::Response) {
            self.0.response(status, headers)
        } else {
            Box::pin(std::future::ready(()))
        }
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
                if context.is_none() {
                    context = self.context(&pending).await;
                }
                self.append_pending(std::mem::take(&mut pending)).await;

                let message = self.ask(context.take()).await;
                last = Some(Arc::clone(&message));
                let Message::Assistant(answer) = &*message else {
                    break;
                };
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                    self.core.emit(Event::TurnEnd {
                        message,
                        tool_results: Arc::new([]),
                    });
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
                let sent = self.send_turn_end(&turn_end).await;
                if pending.steering.is_empty() {
                    pending.steering = self.core.state().take_queued(Delivery::Steer);
                }
                continues = has_calls || !pending.is_empty();
                if continues {
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
    /// hooks also filter the context, the listeners receive the event later, after the context of the next turn is
    /// made.
    async fn send_turn_end(&self, turn_end: &Event) -> TurnEndSent {
        if self.core.hook(Moment::Context).is_none() || self.core.hook(Moment::TurnEnd).is_none() {
            self.core.emit(turn_end.clone());
            self.core.emitter.drained(&self.cancel).await;
            return TurnEndSent::ToAll;
        }
        self.core
            .ask_hook(Moment::TurnEnd, &self.cancel, |hooks| {
                hooks.observe(turn_end)
            })
            .await;
        TurnEndSent::ToHooksOnly
    }

    /// Returns the messages that hooks let the model see; `None` stands for the whole conversation.
    async fn context(&self, pending: &Pending) -> Option<Vec<Arc<Message>>> {
        self.core.hook(Moment::Context)?;
        let mut messages = self.core.messages_view();
        messages.extend(pending.all().cloned());
        self.core
            .ask_hook(Moment::Context, &self.cancel, |hooks| {
                hooks.context(messages)
            })
            .await
    }

    async fn append_pending(&mut self, pending: Pending) {
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
    async fn ask(&mut self, context: Option<Vec<Arc<Message>>>) -> Arc<Message> {
        let mut started = false;
        let answer = AssertUnwindSafe(self.stream_answer(context, &mut started)).catch_unwind();
        let answer =
            spans::request(&self.model, "answer", answer, |answer| answer.as_ref().ok()).await;
        let answer = answer.unwrap_or_else(|_| {
            self.failure("The provider's code failed unexpectedly (internal error).")
        });
        if !started {
            let first = self.announcement(&answer);
            self.core
                .emit(Event::MessageStart(Arc::new(Message::Assistant(first))));
        }
        self.finish_answer(answer).await
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
        context: Option<Vec<Arc<Message>>>,
        started: &mut bool,
    ) -> AssistantMessage {
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
            options.tap = Some(Arc::new(HookTap(Arc::clone(hooks))));
        }
        let request = self.request(context, options);
        let mut stream = self.core.models.provider(&self.model).stream(request);
        let mut deltas = 0u32;
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
                    self.core.emit(Event::BlockDelta { index, delta });
                    self.core.room(&self.cancel).await;
                    deltas += 1;
                    if deltas.is_multiple_of(DELTAS_PER_YIELD) {
                        tokio::task::yield_now().await;
                    }
                }
                StreamEvent::BlockEnd { index, mut block } => {
                    self.clear_argument_errors(std::slice::from_mut(&mut block));
                    self.core.emit(Event::BlockEnd {
                        index,
                        block: Arc::new(block),
                    });
                }
                StreamEvent::Usage(usage) => self.core.emit(Event::UsageUpdate(usage)),
                StreamEvent::End(mut message) => {
                    self.clear_argument_errors(&mut message.content);
                    return message;
                }
            }
        }
        self.failure("The provider's stream ended without a result (server error).")
    }

    /// Removes the errors of malformed tool arguments, unless such calls are rejected.
    fn clear_argument_errors(&self, blocks: &mut [Block]) {
        if self.core.settings.behaviour.reject_malformed_arguments {
            return;
        }
        for block in blocks {
            if let Block::ToolCall(call) = block {
                call.arguments_error = None;
            }
        }
    }

    fn request(&self, context: Option<Vec<Arc<Message>>>, mut options: RequestOptions) -> Request {
        let system_prompt = self.core.effective_prompt();
        let tools = self.core.toolbox().specs();
        let state = self.core.state();
        options.session_id = Some(state.store.id().to_owned());
        let images = if self.core.settings.block_images {
            Images::Blocked
        } else {
            Images::Sent
        };
        Request {
            model: Arc::clone(&self.model),
            system_prompt: Some(system_prompt),
            messages: for_model(context.as_ref().unwrap_or(&state.messages), images),
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
            error_message: Some("Request was aborted.".to_owned()),
            ..self.blank()
        }
    }
}
