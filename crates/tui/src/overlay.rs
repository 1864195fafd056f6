//! What is drawn over the chat until something is chosen or it is closed: pickers, the session tree, dialogs,
//! pages to read.
//!
//! An overlay talks to nobody. It is given what it shows, and its [`Step`]s say what is to be done.

mod dialog;
mod input;
mod list;
mod models;
mod page;
mod panel;
mod picker;
mod search;
mod sessions;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use dialog::{Dialogs, Meanwhile};
pub(crate) use models::{ModelPicker, ThinkingPicker};
pub(crate) use page::{CommandHelp, Page};
pub(crate) use sessions::SessionPicker;
pub(crate) use tree::TreeView;

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::KeyEvent;
use pinion_message::ThinkingLevel;
use pinion_session::SessionInfo;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use crate::{Scope, Theme};

/// Something that is shown over the chat and has the keyboard while it is.
pub(crate) trait Overlay: Send {
    /// A key was pressed.
    fn key(&mut self, key: KeyEvent) -> Step;

    /// Text was pasted.
    fn paste(&mut self, _text: &str) {}

    /// The wheel was turned by so many rows, upwards if they are negative.
    fn wheel(&mut self, _rows: isize) {}

    /// Draws it over the lower part of `area`, which is the whole screen; where the cursor is, if it has one.
    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position>;

    /// When it looks different without anybody doing anything; [`Overlay::tick`] is called then.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// A deadline has passed.
    fn tick(&mut self) -> Step {
        Step::Stay
    }

    /// The sessions of `scope`, which [`Choice::Sessions`] asked for, have been found.
    fn set_sessions(&mut self, _scope: Scope, _found: Result<Vec<SessionInfo>, String>) {}
}

/// What follows from a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Nothing but a new drawing.
    Stay,
    /// It is closed and nothing was chosen.
    Close,
    /// This is to be done, and it is closed.
    Chosen(Choice),
    /// This is to be done, and it stays.
    Asked(Choice),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// Another model answers.
    Model {
        /// Its provider.
        provider: String,
        /// Its id.
        id: String,
    },
    /// Models think this hard.
    Thinking(ThinkingLevel),
    /// Another session is gone on with.
    Session(PathBuf),
    /// The sessions of this scope are wanted; see [`Overlay::set_sessions`].
    Sessions(Scope),
    /// Something is done with an entry of the session tree.
    Tree {
        /// The entry.
        entry_id: String,
        /// Whose it is.
        speaker: Speaker,
        /// What is done.
        how: TreeStep,
    },
    /// A dialog is answered.
    Dialog {
        /// The dialog.
        id: String,
        /// `value`, `confirmed` or `cancelled`.
        response: Map<String, Value>,
    },
}

/// Whose an entry of the session tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A message of the user: going there or forking means the place before it.
    User,
    /// Anything else.
    Other,
}

/// What is done with an entry of the session tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeStep {
    /// The conversation goes on from there.
    Jump,
    /// The same, and what is left behind is summarised.
    JumpWithSummary,
    /// A new session begins there.
    Fork,
    /// It is named; without a name its name is taken away.
    Label(Option<String>),
}
