//! Builds the transcript from the messages of a session.

use std::sync::Arc;

use pinion_message::{Block, Message};

use super::Transcript;
use super::card::Card;
use super::ending::AnswerEnding;
use super::entry::{EntryKind, Thinking};
use super::prose::Prose;
use super::shell::Shell;

impl Transcript {
    /// Replaces the transcript by these messages and shows the end. Nothing is laid out.
    pub(crate) fn load(&mut self, messages: &[Arc<Message>]) {
        *self = Self {
            view: std::mem::take(&mut self.view).for_new_transcript(),
            ..Self::default()
        };
        self.entries.reserve(messages.len());
        for message in messages {
            self.add_message(message);
        }
    }

    /// Adds a complete message.
    pub(super) fn add_message(&mut self, message: &Arc<Message>) {
        self.messages += 1;
        match &**message {
            Message::Assistant(answer) => {
                for (at, block) in answer.content.iter().enumerate() {
                    self.add_block(message, at, block);
                }
                if let Some(ending) = AnswerEnding::of(answer) {
                    self.push(EntryKind::Ending(ending));
                }
            }
            Message::ToolResult(_) => self.add_result(message),
            _ => {
                let kind = whole(message);
                self.push(kind);
            }
        }
    }

    /// Adds a complete block of an answer.
    pub(super) fn add_block(&mut self, message: &Arc<Message>, at: usize, block: &Block) {
        let prose = || Prose::block(Arc::clone(message), at);
        match block {
            Block::Text(_) => {
                self.push(EntryKind::Answer(prose()));
            }
            Block::Thinking(thinking) => {
                self.push(EntryKind::Thinking(Thinking {
                    prose: prose(),
                    is_growing: false,
                    is_withheld: thinking.redacted == Some(true),
                }));
            }
            Block::ToolCall(call) => {
                let card = Card::written(&call.name, Arc::clone(message), at);
                let entry = self.push(EntryKind::Card(Box::new(card)));
                self.calls.insert(call.id.as_str().into(), entry);
            }
            Block::Image { .. } => {}
        }
    }

    /// Adds the result of a tool to the card of its call.
    pub(super) fn add_result(&mut self, message: &Arc<Message>) {
        let Message::ToolResult(result) = &**message else {
            return;
        };
        let at = self.card_of(&result.tool_call_id, &result.tool_name);
        self.with_card(at, |card| card.keep(message));
    }

    /// Returns the card of a call, creating one for a call that was not announced.
    pub(super) fn card_of(&mut self, call_id: &str, name: &str) -> usize {
        if let Some(at) = self.calls.get(call_id) {
            return *at;
        }
        let at = self.push(EntryKind::Card(Box::new(Card::unannounced(name))));
        self.calls.insert(call_id.into(), at);
        at
    }

    pub(super) fn with_card(&mut self, at: usize, change: impl FnOnce(&mut Card)) {
        if let Some(entry) = self.entries.get_mut(at)
            && let EntryKind::Card(card) = &mut entry.kind
        {
            change(card);
            entry.touch();
        }
    }
}

/// The entry of a message that has only one.
pub(super) fn whole(message: &Arc<Message>) -> EntryKind {
    let message = Arc::clone(message);
    match &*message {
        Message::User(_) => EntryKind::User(message),
        Message::BashExecution(_) => EntryKind::Shell(Box::new(Shell::Done(message))),
        Message::Custom(_) => EntryKind::Custom(message),
        Message::CompactionSummary(_) | Message::BranchSummary(_) => EntryKind::Summary(message),
        Message::Assistant(_) | Message::ToolResult(_) | Message::System(_) => EntryKind::Gone,
    }
}
