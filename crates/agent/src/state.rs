//! What a session is at this moment.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use pinion_message::{Message, Model, ThinkingLevel};
use pinion_session::Store;
use tokio_util::sync::CancellationToken;

use crate::Delivery;

/// The changeable part of a session. Locked for moments only, never across an await.
pub(crate) struct State {
    pub store: Store,
    pub session_directory: Option<PathBuf>,
    pub model: Option<Arc<Model>>,
    pub thinking_level: ThinkingLevel,
    /// The conversation as the model will see it next.
    pub messages: Vec<Arc<Message>>,
    pub steering: VecDeque<Arc<Message>>,
    pub follow_up: VecDeque<Arc<Message>>,
    /// Said by who takes part, for the next prompt.
    pub next_turn: Vec<Arc<Message>>,
    pub steering_mode: Option<String>,
    pub follow_up_mode: Option<String>,
    pub auto_compaction: bool,
    pub auto_retry: bool,
    pub phase: Phase,
    /// The system prompt of the active run, where it has one of its own.
    pub run_prompt: Option<Arc<str>>,
    /// Results of shell commands that ended during a run; they enter before the next prompt.
    pub held_bash: Vec<Arc<Message>>,
    /// Retries made so far for the failing request.
    pub retry_attempt: u32,
    /// The context has been compacted once for this user message because it was too long.
    pub overflow_handled: bool,
}

/// What the session is busy with.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// A run: `isStreaming`.
    Running,
    /// Between two runs that follow each other by themselves, or winding down.
    Between,
    /// Waiting before a retry; the token ends the wait.
    RetryWait(CancellationToken),
    /// Summarising by itself.
    AutoCompacting,
    /// Summarising because the user asked.
    Compacting,
}

/// How many queued messages are delivered at once.
const ONE_AT_A_TIME: &str = "one-at-a-time";

impl State {
    /// Whether a run is active.
    pub fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Whether the conversation is being summarised.
    pub fn is_compacting(&self) -> bool {
        matches!(self.phase, Phase::AutoCompacting | Phase::Compacting)
    }

    /// Takes the messages that are due from a queue.
    pub fn take_queued(&mut self, delivery: Delivery) -> Vec<Arc<Message>> {
        let (queue, mode) = match delivery {
            Delivery::Steer => (&mut self.steering, &self.steering_mode),
            Delivery::FollowUp => (&mut self.follow_up, &self.follow_up_mode),
        };
        if mode.as_deref() == Some(ONE_AT_A_TIME) {
            queue.pop_front().into_iter().collect()
        } else {
            queue.drain(..).collect()
        }
    }

    /// Whether anything waits in a queue.
    pub fn has_queued(&self) -> bool {
        !self.steering.is_empty() || !self.follow_up.is_empty()
    }

    /// The user's texts waiting in a queue, after those in `before`.
    pub fn queued_texts(&self, delivery: Delivery, before: &[Arc<Message>]) -> Vec<String> {
        let queue = match delivery {
            Delivery::Steer => &self.steering,
            Delivery::FollowUp => &self.follow_up,
        };
        let messages = before.iter().chain(queue);
        messages
            .filter_map(|message| queued_text(message))
            .collect()
    }

    /// How many of the user's messages wait.
    pub fn queued_count(&self) -> usize {
        let both = self.steering.iter().chain(&self.follow_up);
        both.filter(|message| queued_text(message).is_some())
            .count()
    }

    /// Makes the conversation what the session file says it is.
    pub fn rebuild_messages(&mut self) {
        self.messages = self.store.context().messages;
    }
}

fn queued_text(message: &Message) -> Option<String> {
    match message {
        Message::User(user) => Some(user.content.joined_text("")),
        _ => None,
    }
}
