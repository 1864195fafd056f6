//! The state of a session.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use pinion_message::{Message, Model, ThinkingLevel};
use pinion_session::{EntryId, Store};
use tokio_util::sync::CancellationToken;

use crate::save::SlowSaves;
use crate::{Delivery, Reply};

/// The mutable state of a session. Its lock is never held across an await.
pub(crate) struct SessionState {
    pub store: Store,
    pub session_directory: Option<PathBuf>,
    pub model: Option<Arc<Model>>,
    pub thinking_level: ThinkingLevel,
    /// The conversation as the model will see it next.
    pub messages: Vec<Arc<Message>>,
    pub steering: VecDeque<Arc<Message>>,
    pub follow_up: VecDeque<Arc<Message>>,
    /// Messages of hooks that follow the next prompt.
    pub next_turn: Vec<Arc<Message>>,
    pub steering_mode: Option<String>,
    pub follow_up_mode: Option<String>,
    pub auto_compaction: bool,
    pub auto_retry: bool,
    pub phase: Phase,
    /// The system prompt of the active run if a hook replaced it.
    pub run_prompt: Option<Arc<str>>,
    /// Active tools that the requests of the active run do not declare.
    pub hidden_tools: Vec<String>,
    /// Results of shell commands that ended during a run; they enter the conversation before the next prompt.
    pub held_bash: Vec<Arc<Message>>,
    /// Retries made so far for the failing request.
    pub retry_attempt: u32,
    /// The context overflowed and was compacted once since the last user message.
    pub overflow_handled: bool,
    /// The entry of the newest answer.
    pub last_answer: Option<EntryId>,
    /// Replies of commands that abort the wait for a retry.
    pub retry_aborts: Vec<Reply>,
    /// The saves for which not everything waits.
    pub slow_saves: SlowSaves,
    /// The number of commands that read the session file and hold later commands.
    pub reading_commands: usize,
}

/// The current activity of a session.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// No work.
    Idle,
    /// A run is active; clients see it as `isStreaming`.
    Running,
    /// Between two runs of one prompt, or at the end of the work.
    Between,
    /// A wait before a retry; the token ends it.
    RetryWait(CancellationToken),
    /// An automatic compaction.
    AutoCompacting,
    /// A compaction or branch summary that a client or hook requested.
    Compacting,
}

/// The queue mode that delivers one message per turn; every other mode delivers all.
const ONE_AT_A_TIME: &str = "one-at-a-time";

impl SessionState {
    /// Reports whether a run is active.
    pub fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Reports whether a compaction is active.
    pub fn is_compacting(&self) -> bool {
        matches!(self.phase, Phase::AutoCompacting | Phase::Compacting)
    }

    /// Removes the messages that are due from a queue and returns them.
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

    /// Reports whether a message waits in a queue.
    pub fn has_queued(&self) -> bool {
        !self.steering.is_empty() || !self.follow_up.is_empty()
    }

    /// Returns the texts of the user's messages in `before` and in a queue.
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

    /// Counts the user's messages in both queues.
    pub fn queued_count(&self) -> usize {
        let both = self.steering.iter().chain(&self.follow_up);
        both.filter(|message| queued_text(message).is_some())
            .count()
    }
}

fn queued_text(message: &Message) -> Option<String> {
    match message {
        Message::User(user) => Some(user.content.joined_text("")),
        _ => None,
    }
}
