//! A tool call and its result, as a card of a few lines.

mod lines;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_agent::{ToolOutput, ToolRun};
use pinion_message::{Block, Message, ToolCall};
use serde_json::Value;

use super::headline::readable;
use super::preview::start_of;

pub(crate) use lines::split_ending;

/// Bytes that are parsed of incomplete arguments.
const READ_AHEAD: usize = 2 * 1024;

/// A tool call and its result.
pub(super) struct Card {
    pub name: String,
    arguments: Arguments,
    state: CardState,
    output: CardOutput,
}

enum Arguments {
    Writing { beginning: String, bytes: usize },
    Written(Value),
    Of(Arc<ToolRun>),
    In(Arc<Message>, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardState {
    Writing,
    Waiting,
    Running(Instant),
    Done(Option<Duration>),
    Failed(Option<Duration>),
    Refused,
    Stopped,
}

enum CardOutput {
    None,
    Live(Arc<ToolOutput>),
    Kept(Arc<Message>),
}

impl Card {
    /// A call that the model starts to write.
    pub fn writing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Arguments::Writing {
                beginning: String::new(),
                bytes: 0,
            },
            state: CardState::Writing,
            output: CardOutput::None,
        }
    }

    /// A call of a finished answer that has not started.
    pub fn written(name: &str, message: Arc<Message>, block: usize) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Arguments::In(message, block),
            state: CardState::Stopped,
            output: CardOutput::None,
        }
    }

    /// A call that was not part of any answer.
    pub fn unannounced(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Arguments::Written(Value::Null),
            state: CardState::Stopped,
            output: CardOutput::None,
        }
    }

    /// Appends to the arguments.
    pub fn write(&mut self, delta: &str) {
        if let Arguments::Writing { beginning, bytes } = &mut self.arguments {
            *bytes += delta.len();
            let room = READ_AHEAD.saturating_sub(beginning.len());
            beginning.push_str(start_of(delta, room));
        }
    }

    /// Completes the arguments.
    pub fn complete(&mut self, call: &ToolCall) {
        if self.state == CardState::Writing {
            self.state = CardState::Waiting;
        }
        if matches!(self.arguments, Arguments::Writing { .. }) {
            self.arguments = Arguments::Written(call.arguments.clone());
        }
    }

    /// Completes the answer that contains the call.
    pub fn settle(&mut self, message: Arc<Message>, block: usize) {
        if self.state == CardState::Writing {
            self.state = CardState::Waiting;
        }
        if !matches!(self.arguments, Arguments::Of(_)) {
            self.arguments = Arguments::In(message, block);
        }
    }

    pub fn start(&mut self, run: &Arc<ToolRun>, now: Instant) {
        self.arguments = Arguments::Of(Arc::clone(run));
        self.state = CardState::Running(now);
        self.output = CardOutput::None;
    }

    pub fn update(&mut self, output: &Arc<ToolOutput>, now: Instant) {
        if !matches!(self.state, CardState::Running(_)) {
            self.state = CardState::Running(now);
        }
        self.output = CardOutput::Live(Arc::clone(output));
    }

    pub fn end(&mut self, output: &Arc<ToolOutput>, is_error: bool, duration: Option<Duration>) {
        self.output = CardOutput::Live(Arc::clone(output));
        self.decide(is_error, duration);
    }

    /// Stores the result message of the conversation.
    pub fn keep(&mut self, message: &Arc<Message>) {
        let Message::ToolResult(result) = &**message else {
            return;
        };
        let duration = match self.state {
            CardState::Done(duration) | CardState::Failed(duration) => duration,
            _ => None,
        };
        self.output = CardOutput::Kept(Arc::clone(message));
        self.decide(result.is_error, duration);
    }

    fn decide(&mut self, is_error: bool, duration: Option<Duration>) {
        let is_refused = self.details("approval").is_some();
        self.state = if !is_error {
            CardState::Done(duration)
        } else if is_refused {
            CardState::Refused
        } else {
            CardState::Failed(duration)
        };
    }

    /// Marks the call as stopped unless it has ended.
    pub fn stop(&mut self) {
        if self.is_unfinished() {
            self.state = CardState::Stopped;
        }
    }

    pub fn is_unfinished(&self) -> bool {
        matches!(
            self.state,
            CardState::Writing | CardState::Waiting | CardState::Running(_)
        )
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, CardState::Writing | CardState::Running(_))
    }

    fn arguments(&self) -> Cow<'_, Value> {
        match &self.arguments {
            Arguments::Writing { beginning, .. } => Cow::Owned(readable(beginning)),
            Arguments::Written(value) => Cow::Borrowed(value),
            Arguments::Of(run) => Cow::Borrowed(&run.arguments),
            Arguments::In(message, block) => {
                let answer = message.as_assistant();
                let block = answer.and_then(|answer| answer.content.get(*block));
                match block {
                    Some(Block::ToolCall(call)) => Cow::Borrowed(&call.arguments),
                    _ => Cow::Owned(Value::Null),
                }
            }
        }
    }

    fn content(&self) -> (&[Block], Option<&Value>) {
        match &self.output {
            CardOutput::None => (&[], None),
            CardOutput::Live(output) => (&output.content, output.details.as_ref()),
            CardOutput::Kept(message) => match &**message {
                Message::ToolResult(result) => (&result.content, result.details.as_ref()),
                _ => (&[], None),
            },
        }
    }

    /// The blocks that may contain images, once the call has ended.
    pub fn images(&self) -> &[Block] {
        match self.state {
            CardState::Done(_) | CardState::Failed(_) => self.content().0,
            _ => &[],
        }
    }

    fn details(&self, member: &str) -> Option<&Value> {
        self.content().1?.get(member)
    }

    fn diff(&self) -> Option<&str> {
        self.details("diff")?.as_str()
    }

    fn text(&self) -> String {
        let texts: Vec<_> = self.content().0.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}
