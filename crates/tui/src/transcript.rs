//! The transcript of the chat: the list of messages, tool calls and notices.
//!
//! It grows with the events of a run and is rebuilt from the messages of a session. Only visible
//! entries are laid out, so a session of ten thousand messages is drawn as fast as one screen of
//! it.

mod apply;
mod card;
mod ending;
mod entry;
mod headline;
mod load;
mod messages;
mod picture;
mod preview;
mod prose;
mod shell;
mod summary;
mod view;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use pinion_message::{Content, Message};

use crate::Abilities;
use crate::highlight::Highlighter;
use crate::markdown::code_blocks;
use crate::theme::Theme;
use entry::{Entry, EntryKind};
use view::View;

pub(crate) use card::split_ending;
pub(crate) use ending::{AnswerEnding, readable};
pub(crate) use headline::{changes, subject};
pub(crate) use messages::image;
pub(crate) use picture::Images;
pub(crate) use shell::ShellId;
pub(crate) use waiting::elapsed;

/// Everything besides the transcript that its drawing depends on.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub theme: &'a Theme,
    pub highlighter: &'a Highlighter,
    /// Shows reasoning in full or folded.
    pub thinking: Fold,
    /// Shows tool output and other long entries in full or folded.
    pub tools: Fold,
    /// The abilities of the host, which decide the advice after a failure.
    pub host: Abilities,
    pub attention: Attention,
    /// The current time, for elapsed seconds and countdowns.
    pub now: Instant,
}

/// Distinguishes running tools from those that wait for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// No question is open.
    Free,
    /// A question is open: a tool that has no output yet waits for its answer.
    Wanted,
}

/// The display of a long entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// A few lines of it.
    Folded,
    /// All of it.
    Unfolded,
}

impl Fold {
    /// The opposite state.
    pub(crate) fn toggled(self) -> Self {
        match self {
            Self::Folded => Self::Unfolded,
            Self::Unfolded => Self::Folded,
        }
    }
}

/// The importance of a notice of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    Information,
    /// A problem that did not stop anything.
    Warning,
    /// A failure; the text contains advice.
    Error,
}

/// A movement of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// Up by this many rows.
    Up(usize),
    /// Down by this many rows.
    Down(usize),
    /// Up by a screen.
    PageUp,
    /// Down by a screen.
    PageDown,
    /// To the first row.
    Start,
    /// To the last row, following it as the transcript grows.
    End,
}

/// The list of messages, tool calls and notices.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Never shortened while a session is shown: a removed entry becomes [`EntryKind::Gone`], so that
    /// indices stay valid.
    entries: Vec<Entry>,
    /// The newest card of every call, by the provider's id.
    calls: HashMap<Box<str>, usize>,
    /// Counts messages, so that the blocks of one message can be recognised.
    messages: u32,
    /// The messages and calls in progress.
    open: apply::InProgress,
    view: View,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a notice of the chat itself.
    pub(crate) fn notice(&mut self, kind: NoticeKind, text: &str) {
        self.push(EntryKind::Notice(kind, text.into()));
    }

    /// Reports whether something on the screen changes with time: running tools, a countdown.
    pub(crate) fn is_lively(&self) -> bool {
        let live = self.open.live.iter();
        live.filter_map(|at| self.entries.get(*at))
            .any(Entry::counts_time)
    }

    /// Reports whether no entry is visible.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.iter().all(Entry::is_hidden)
    }

    /// The text of the newest answer that has one.
    pub(crate) fn last_answer(&self) -> Option<String> {
        let has_text = |entry: &&Entry| !entry.is_hidden() && entry.answer_text().is_some();
        let message = self.entries.iter().rev().find(has_text)?.message;
        let start = self
            .entries
            .partition_point(|entry| entry.message < message);
        let texts = self.entries[start..]
            .iter()
            .filter(|entry| entry.message == message)
            .filter_map(Entry::answer_text);
        let texts: Vec<_> = texts.map(|text| text.trim().to_owned()).collect();
        Some(texts.join("\n\n"))
    }

    /// The code blocks of the newest answer, in order.
    pub(crate) fn last_code(&self) -> Vec<String> {
        self.last_answer()
            .map(|answer| code_blocks(&answer))
            .unwrap_or_default()
    }

    /// The user's messages, the oldest first.
    pub(crate) fn user_texts(&self) -> Vec<String> {
        let texts = self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::User(message) => user_text(message),
            _ => None,
        });
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    fn push(&mut self, kind: EntryKind) -> usize {
        self.entries.push(Entry::new(kind, self.messages));
        self.entries.len() - 1
    }

    /// Replaces an entry.
    fn replace(&mut self, at: usize, kind: EntryKind) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.replace(kind);
        }
    }

    /// Removes an entry; the indices of the others stay valid.
    fn remove(&mut self, at: usize) {
        self.replace(at, EntryKind::Gone);
    }
}

fn user_text(message: &Arc<Message>) -> Option<String> {
    match &**message {
        Message::User(user) => Some(match &user.content {
            Content::Text(text) => text.clone(),
            blocks => blocks.joined_text("\n"),
        }),
        _ => None,
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript")
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}
