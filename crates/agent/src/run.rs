//! One run: question and answer, tools and their results, until the model is done.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use pinion_llm::{Request, RequestOptions, StreamEvent};
use pinion_message::{
    AssistantMessage, Message, Model, StopReason, ThinkingLevel, Usage, now_millis,
};
use tokio_util::sync::CancellationToken;

use crate::convert::{Images, for_model};
use crate::core::Core;
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
        self.take_in(prompts);
        let mut pending = self.core.take_queued(Delivery::Steer);
        let mut first_turn = true;
        let mut last = None;
        loop {
            let mut has_calls = true;
            while has_calls || !pending.is_empty() {
                if !first_turn {
                    self.core.emit(Event::TurnStart);
                }
                first_turn = false;
                self.take_in(std::mem::take(&mut pending));

                let answer = self.ask().await;
                let message = Arc::new(Message::Assistant(answer));
                self.keep_answer(&message);
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
                has_calls = !calls.results.is_empty();
                self.produced.extend(calls.results.iter().cloned());
                let tool_results = calls.results.into();
                self.core.emit(Event::TurnEnd {
                    message: Arc::clone(&message),
                    tool_results,
                });
                pending = calls.steering;
                if pending.is_empty() {
                    pending = self.core.take_queued(Delivery::Steer);
                }
            }
            pending = self.core.take_queued(Delivery::FollowUp);
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

    fn take_in(&mut self, messages: Vec<Arc<Message>>) {
        for message in messages {
            if matches!(*message, Message::User(_)) {
                self.core.state().overflow_handled = false;
            }
            self.core.take_in(&message);
            self.produced.push(message);
        }
    }

    /// Puts a finished answer on disk and into the conversation, and tells everyone.
    fn keep_answer(&mut self, message: &Arc<Message>) {
        self.core.keep(message);
        self.produced.push(Arc::clone(message));
        self.core.emit(Event::MessageEnd(Arc::clone(message)));
        let failed = message
            .as_assistant()
            .is_none_or(|answer| answer.stop_reason == StopReason::Error);
        if !failed {
            let mut state = self.core.state();
            state.overflow_handled = false;
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
    }

    /// Asks the model and passes on what it answers, piece by piece.
    async fn ask(&self) -> AssistantMessage {
        let mut started = false;
        let answer = AssertUnwindSafe(self.stream_answer(&mut started))
            .catch_unwind()
            .await;
        let answer = answer.unwrap_or_else(|_| {
            self.failure("The provider's code failed unexpectedly (internal error).")
        });
        if !started {
            let first = self.first_sight(&answer);
            self.core
                .emit(Event::MessageStart(Arc::new(Message::Assistant(first))));
        }
        answer
    }

    /// How an answer that failed before its first byte is announced.
    ///
    /// Over Anthropic's protocol clients have always seen an empty message first; over the others
    /// the failed one.
    fn first_sight(&self, answer: &AssistantMessage) -> AssistantMessage {
        if self.model.api == "anthropic-messages" {
            AssistantMessage {
                timestamp: answer.timestamp,
                ..self.blank()
            }
        } else {
            answer.clone()
        }
    }

    async fn stream_answer(&self, started: &mut bool) -> AssistantMessage {
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
            ..RequestOptions::default()
        };
        match authorization {
            Ok(authorization) => authorization.apply(&mut options),
            Err(error) => return self.failure(&error),
        }
        let request = self.request(options);
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
                StreamEvent::BlockEnd { index, block } => {
                    self.core.emit(Event::BlockEnd {
                        index,
                        block: Arc::new(block),
                    });
                }
                StreamEvent::Usage(usage) => self.core.emit(Event::UsageUpdate(usage)),
                StreamEvent::End(message) => return message,
            }
        }
        self.failure("The provider's stream ended without a result (server error).")
    }

    fn request(&self, mut options: RequestOptions) -> Request {
        let state = self.core.state();
        options.session_id = Some(state.store.id().to_owned());
        let images = if self.core.settings.block_images {
            Images::Blocked
        } else {
            Images::Sent
        };
        Request {
            model: Arc::clone(&self.model),
            system_prompt: Some(Arc::clone(&self.core.system_prompt)),
            messages: for_model(&state.messages, images),
            tools: Arc::clone(&self.core.specs),
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
