//! The list of what was said and done.
//!
//! It grows with the events of a run and is made anew from the messages of a session. Nothing is laid out before
//! somebody looks at it: a session of ten thousand messages costs as much to draw as one screen of it.

mod apply;
mod card;
mod ending;
mod entry;
mod headline;
mod load;
mod picture;
mod preview;
mod prose;
mod said;
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
use entry::{Entry, Kind};
use view::View;

pub(crate) use card::split_ending;
pub(crate) use ending::{Ending, readable};
pub(crate) use headline::{changes, subject};
pub(crate) use picture::Images;
pub(crate) use said::image;
pub(crate) use shell::ShellId;
pub(crate) use waiting::elapsed;

/// How the list is shown.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    /// The styles.
    pub theme: &'a Theme,
    /// Who colours code.
    pub highlighter: &'a Highlighter,
    /// Whether reasoning is shown in full.
    pub thinking: Fold,
    /// Whether what tools gave is shown in full, and other long things.
    pub tools: Fold,
    /// Who answers, for what to do about a failure.
    pub host: Abilities,
    /// Whether something waits for the user.
    pub attention: Attention,
    /// The time, for what counts seconds.
    pub now: Instant,
}

/// Whether something waits for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// Nothing does.
    Free,
    /// A question is open: a tool that has done nothing yet waits for its answer.
    Wanted,
}

/// Whether something long is shown in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// A few lines of it.
    Folded,
    /// All of it.
    Unfolded,
}

impl Fold {
    /// The other way.
    pub(crate) fn toggled(self) -> Self {
        match self {
            Self::Folded => Self::Unfolded,
            Self::Unfolded => Self::Folded,
        }
    }
}

/// What a line of the chat itself is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    /// Something to know.
    Information,
    /// Something to look at.
    Warning,
    /// Something that failed; the text says what to do.
    Error,
}

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// Up by so many rows.
    Up(usize),
    /// Down by so many rows.
    Down(usize),
    /// Up by a screen.
    PageUp,
    /// Down by a screen.
    PageDown,
    /// To the first row.
    Start,
    /// To the last row, to stay there.
    End,
}

/// The list of what was said and done.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Never shortened while a session is shown: what goes away leaves [`Kind::Gone`], so that positions stay.
    entries: Vec<Entry>,
    /// The newest card of every call, by the provider's id.
    calls: HashMap<Box<str>, usize>,
    /// Counts messages, so that the blocks of one are known to belong together.
    messages: u32,
    /// What is still being said.
    open: apply::Open,
    view: View,
}

impl Transcript {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a line of the chat itself.
    pub(crate) fn notice(&mut self, kind: NoticeKind, text: &str) {
        self.push(Kind::Notice(kind, text.into()));
    }

    /// Whether something is shown that changes with time: running tools, a countdown.
    pub(crate) fn is_lively(&self) -> bool {
        let live = self.open.live.iter();
        live.filter_map(|at| self.entries.get(*at))
            .any(Entry::counts_time)
    }

    /// Whether there is nothing to see.
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

    /// What the user said, oldest first.
    pub(crate) fn user_texts(&self) -> Vec<String> {
        let texts = self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::User(message) => said_text(message),
            _ => None,
        });
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    fn push(&mut self, kind: Kind) -> usize {
        self.entries.push(Entry::new(kind, self.messages));
        self.entries.len() - 1
    }

    /// Puts something else where an entry was.
    fn replace(&mut self, at: usize, kind: Kind) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.replace(kind);
        }
    }

    /// Takes an entry away; the places of the others stay.
    fn remove(&mut self, at: usize) {
        self.replace(at, Kind::Gone);
    }
}

fn said_text(message: &Arc<Message>) -> Option<String> {
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
