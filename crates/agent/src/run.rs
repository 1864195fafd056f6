//! One run: question and answer, tools and their results, until the model is done.

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
use crate::state::Phase;
use crate::{Delivery, Event};

/// Deltas taken in a row before other work gets a turn.
const DELTAS_PER_TURN: u32 = 64;

/// A run in progress. What it snapshots at its start stays for all of its turns.
pub(crate) struct Run<'a> {
    core: &'a Core,
    model: Arc<Model>,
    thinking_level: ThinkingLevel,
    cancel: CancellationToken,
    produced: Vec<Arc<Message>>,
}

/// How a run ended.
pub(crate) struct RunEnd {
    pub messages: Arc<[Arc<Message>]>,
    /// The last answer, if there was one.
    pub last: Option<Arc<Message>>,
}

/// Who has heard of the end of a turn.
enum Told {
    /// Everyone.
    ToAll,
    /// Who takes part; clients have not.
    ToHooks,
}

/// What is said at the beginning of a turn.
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

/// Lets who takes part in the session see the request and the response.
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

    /// Runs until the model is done, fails or is stopped. The caller tells that it is over.
    pub async fn execute(mut self, prompts: Vec<Arc<Message>>) -> RunEnd {
        self.core.set_phase(Phase::Running);
        self.core.emit(Event::AgentStart);
        self.core.emit(Event::TurnStart);
        // Who takes part may have something to say before the model is asked.
        self.core.outlet.drained(&self.cancel).await;
        let mut pending = Pending::prompts(prompts);
        pending.steering = self.core.state().take_queued(Delivery::Steer);
        let mut first_turn = true;
        let mut sight = None;
        let mut last = None;
        loop {
            let mut goes_on = true;
            while goes_on {
                if !first_turn {
                    self.core.emit(Event::TurnStart);
                }
                first_turn = false;
                if sight.is_none() {
                    sight = self.sight(&pending).await;
                }
                self.take_in(std::mem::take(&mut pending)).await;

                let message = self.ask(sight.take()).await;
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
                let told = self.tell_turn_end(&turn_end).await;
                if pending.steering.is_empty() {
                    pending.steering = self.core.state().take_queued(Delivery::Steer);
                }
                goes_on = has_calls || !pending.is_empty();
                if goes_on {
                    sight = self.sight(&pending).await;
                }
                if let Told::ToHooks = told {
                    self.core.outlet.tell_listeners(&turn_end);
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

    /// Tells that a turn is over, and waits for what who takes part says then: it belongs to the
    /// run. Who filters the context of the turn that follows does so before clients hear of it.
    async fn tell_turn_end(&self, turn_end: &Event) -> Told {
        if self.core.hook(Moment::Context).is_none() || self.core.hook(Moment::TurnEnd).is_none() {
            self.core.emit(turn_end.clone());
            self.core.outlet.drained(&self.cancel).await;
            return Told::ToAll;
        }
        self.core
            .ask_hook(Moment::TurnEnd, &self.cancel, |hooks| {
                hooks.observe(turn_end)
            })
            .await;
        Told::ToHooks
    }

    /// What the model is to see, where that differs from the conversation.
    async fn sight(&self, pending: &Pending) -> Option<Vec<Arc<Message>>> {
        self.core.hook(Moment::Context)?;
        let mut messages = self.core.messages_view();
        messages.extend(pending.all().cloned());
        self.core
            .ask_hook(Moment::Context, &self.cancel, |hooks| {
                hooks.context(messages)
            })
            .await
    }

    async fn take_in(&mut self, pending: Pending) {
        for message in pending.prompts {
            self.take_in_one(message).await;
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
                self.take_in_one(Arc::clone(message)).await;
            }
        }
    }

    async fn take_in_one(&mut self, message: Arc<Message>) {
        if matches!(*message, Message::User(_)) {
            self.core.state().overflow_handled = false;
        }
        let message = self.core.take_in(message, &self.cancel).await;
        self.produced.push(message);
    }

    /// Puts a finished answer on disk and into the conversation, and tells everyone.
    async fn keep_answer(&mut self, answer: AssistantMessage) -> Arc<Message> {
        let message = Arc::new(Message::Assistant(answer));
        let message = self.core.complete(message, &self.cancel).await;
        self.produced.push(Arc::clone(&message));
        let answer = message.as_assistant();
        let failed = answer.is_none_or(|answer| answer.stop_reason == StopReason::Error);
        let window = self.model.context_window;
        let fits = answer.is_some_and(|answer| !is_overflow(answer, window));
        if !failed {
            let mut state = self.core.state();
            // A model that answers although not everything fits would else be asked again and again.
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

    /// Asks the model and passes on what it answers, piece by piece.
    async fn ask(&mut self, sight: Option<Vec<Arc<Message>>>) -> Arc<Message> {
        let mut started = false;
        let answer = AssertUnwindSafe(self.stream_answer(sight, &mut started))
            .catch_unwind()
            .await;
        let answer = answer.unwrap_or_else(|_| {
            self.failure("The provider's code failed unexpectedly (internal error).")
        });
        if !started {
            let first = self.announcement(&answer);
            self.core
                .emit(Event::MessageStart(Arc::new(Message::Assistant(first))));
        }
        self.keep_answer(answer).await
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
        sight: Option<Vec<Arc<Message>>>,
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
            self.core.outlet.drained(&self.cancel).await;
            options.tap = Some(Arc::new(HookTap(Arc::clone(hooks))));
        }
        let request = self.request(sight, options);
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
                    if deltas.is_multiple_of(DELTAS_PER_TURN) {
                        tokio::task::yield_now().await;
                    }
                }
                StreamEvent::BlockEnd { index, mut block } => {
                    self.forgive(std::slice::from_mut(&mut block));
                    self.core.emit(Event::BlockEnd {
                        index,
                        block: Arc::new(block),
                    });
                }
                StreamEvent::Usage(usage) => self.core.emit(Event::UsageUpdate(usage)),
                StreamEvent::End(mut message) => {
                    self.forgive(&mut message.content);
                    return message;
                }
            }
        }
        self.failure("The provider's stream ended without a result (server error).")
    }

    /// Removes the errors of malformed tool arguments, unless such calls are rejected.
    fn forgive(&self, blocks: &mut [Block]) {
        if self.core.settings.behaviour.reject_malformed_arguments {
            return;
        }
        for block in blocks {
            if let Block::ToolCall(call) = block {
                call.arguments_error = None;
            }
        }
    }

    fn request(&self, sight: Option<Vec<Arc<Message>>>, mut options: RequestOptions) -> Request {
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
            messages: for_model(sight.as_ref().unwrap_or(&state.messages), images),
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
