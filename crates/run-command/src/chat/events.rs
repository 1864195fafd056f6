//! The events of each run for the chat, and the messages on its screen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener};
use pinion_message::{
    AssistantMessage, Block, Message, Model, StopReason, Usage, UserMessage, now_millis,
};
use pinion_pinocchio::RunEnd;
use pinion_tui::{Feed, Incoming};

/// Sends the events of runs to the chat.
///
/// For the chat a run has settled only when its turn is stored; the engine's own `Settled` is therefore not passed
/// on.
pub(super) struct ChatEvents {
    feed: Feed,
    /// The model that answers.
    model: Arc<Model>,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    /// All messages, for a chat that draws them again.
    messages: Vec<Arc<Message>>,
    /// The prompt of the run is among them.
    has_prompt: bool,
    /// The failure of the run, as far as it was shown.
    failure: Option<String>,
}

impl ChatEvents {
    /// Creates the events of a chat that already shows `messages`.
    pub fn new(feed: Feed, model: Arc<Model>, messages: Vec<Message>) -> Self {
        Self {
            feed,
            model,
            shown: Mutex::new(Shown {
                messages: messages.into_iter().map(Arc::new).collect(),
                ..Shown::default()
            }),
        }
    }

    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.shown().messages.clone()
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Resets the state at the start of a run.
    pub fn begin(&self) {
        let mut shown = self.shown();
        shown.has_prompt = false;
        shown.failure = None;
    }

    /// Ends a run whose turn is stored. It adds the prompt and the failure if the engine did not send them, because
    /// the run may have failed before it reached the engine.
    pub fn end(&self, prompt: Vec<Block>, end: &RunEnd) {
        let (has_prompt, failure) = {
            let shown = self.shown();
            (shown.has_prompt, shown.failure.clone())
        };
        if !has_prompt {
            self.add(Message::User(UserMessage::now(prompt)));
        }
        if let RunEnd::Failed(reason) = end
            && failure.as_ref() != Some(reason)
        {
            self.add(Message::Assistant(self.failed(reason)));
        }
        self.send(&Event::Settled {
            aborted: *end == RunEnd::Stopped,
        });
    }

    fn add(&self, message: Message) {
        let message = Arc::new(message);
        self.send(&Event::MessageStart(Arc::clone(&message)));
        self.send(&Event::MessageEnd(message));
    }

    /// Returns an answer that holds only the reason of the failure.
    fn failed(&self, reason: &str) -> AssistantMessage {
        AssistantMessage {
            content: Vec::new(),
            api: self.model.api.clone(),
            provider: self.model.provider.clone(),
            model: self.model.id.clone(),
            usage: Usage::default(),
            stop_reason: StopReason::Error,
            timestamp: now_millis(),
            response_id: None,
            response_model: None,
            error_message: Some(reason.to_owned()),
            raw_stop_reason: None,
            refused: false,
            duration_ms: None,
            thinking_level: None,
        }
    }

    fn send(&self, event: &Event) {
        self.shown().notice(event);
        self.feed.send(Incoming::Event(event.clone()));
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn notice(&mut self, event: &Event) {
        match event {
            Event::MessageEnd(message) => {
                match &**message {
                    Message::User(_) => self.has_prompt = true,
                    Message::Assistant(answer) if answer.stop_reason == StopReason::Error => {
                        self.failure = Some(answer.error_message.clone().unwrap_or_default());
                    }
                    _ => {}
                }
                self.messages.push(Arc::clone(message));
            }
            Event::Fault {
                source,
                during,
                error,
            } if source == "engine" && during == "run" => self.failure = Some(error.clone()),
            // A retry replaces the failed answer.
            Event::RetryStart { .. } => {
                let last = self.messages.last().and_then(|last| last.as_assistant());
                if last.is_some_and(|answer| answer.stop_reason == StopReason::Error) {
                    self.messages.pop();
                }
            }
            _ => {}
        }
    }
}

impl Listener for ChatEvents {
    fn notice(&self, _ordinal: u64, event: &Event) {
        if !matches!(event, Event::Settled { .. }) {
            self.send(event);
        }
    }

    fn has_room(&self) -> bool {
        self.feed.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        self.feed.room()
    }
}
