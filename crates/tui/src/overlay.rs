//! Overlays: parts of the screen drawn over the chat until something is chosen or they are closed,
//! such as pickers, the session tree, dialogs and pages to read.
//!
//! An overlay has no access to the session. It receives the data to show, and returns the requested
//! action as a [`Step`].

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

pub(crate) use dialog::{Dialogs, UserActivity};
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

use crate::{SessionScope, Theme};

/// A part of the screen that is drawn over the chat and has the focus.
pub(crate) trait Overlay: Send {
    /// Handles a key.
    fn key(&mut self, key: KeyEvent) -> Step;

    /// Handles pasted text.
    fn paste(&mut self, _text: &str) {}

    /// Handles the wheel: this many rows, upwards if negative.
    fn wheel(&mut self, _rows: isize) {}

    /// Draws the overlay over the lower part of `area`, which is the whole screen. Returns the
    /// cursor's position, if there is one.
    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position>;

    /// The time at which the overlay changes by itself; [`Overlay::tick`] is called then.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Handles a deadline that has passed.
    fn tick(&mut self) -> Step {
        Step::Stay
    }

    /// Receives the sessions of `scope` after [`Choice::Sessions`].
    fn set_sessions(&mut self, _scope: SessionScope, _found: Result<Vec<SessionInfo>, String>) {}
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The overlay is drawn again.
    Stay,
    /// The overlay closes without a choice.
    Close,
    /// The chat carries this out and closes the overlay.
    Chosen(Choice),
    /// The chat carries this out; the overlay stays open.
    Asked(Choice),
}

/// An action for the chat to carry out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// Switches to a model.
    Model { provider: String, id: String },
    /// Sets the level of thinking.
    Thinking(ThinkingLevel),
    /// Resumes another session.
    Session(PathBuf),
    /// Requests the sessions of this scope; see [`Overlay::set_sessions`].
    Sessions(SessionScope),
    /// Applies an action to an entry of the session tree.
    Tree {
        entry_id: String,
        author: Author,
        action: TreeAction,
    },
    /// Answers a dialog.
    Dialog {
        /// The id of the dialog.
        id: String,
        /// `value`, `confirmed` or `cancelled`.
        response: Map<String, Value>,
    },
}

/// The author of an entry of the session tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The user: going to such an entry or forking there means the position before it.
    User,
    /// Anything else.
    Other,
}

/// An action on an entry of the session tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeAction {
    /// Continues the conversation from there.
    Jump,
    /// Continues from there, with a summary of the abandoned branch.
    JumpWithSummary,
    /// Starts a new session from there.
    Fork,
    /// Sets the entry's name; `None` removes it.
    Label(Option<String>),
}
