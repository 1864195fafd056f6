//! The input editor of the chat: several lines, wrapped between words, with Emacs keys.
//!
//! The editor handles text and keys. It does not decide what happens with a submitted text, and
//! never sees the keys that the chat handles first.

mod attach;
mod buffer;
mod draw;
mod history;
mod keys;
mod kills;
mod layout;
mod pastes;
#[cfg(test)]
mod tests;
mod unit;

use std::cell::{Cell, Ref, RefCell};
use std::ops::Range;
use std::path::{Path, PathBuf};

use buffer::{Buffer, ChangeKind};
use history::{History, Newer};
use kills::{Kills, Side};
use layout::Layout;
use pastes::{Pastes, Piece};

pub(crate) use attach::{resolve, starts_reference};
pub(crate) use keys::EditorOutcome;
pub(crate) use unit::is_marker;

/// A text editor that folds large pastes into markers.
#[derive(Debug)]
pub(crate) struct Editor {
    buffer: Buffer,
    pastes: Pastes,
    kills: Kills,
    history: History,
    /// The text taken last, in case [`Editor::remember`] is called with it.
    taken: Vec<Piece>,
    /// The kind of the last key, for keys that continue it.
    last: LastKey,
    /// The column that moving up and down tries to return to.
    goal_column: Option<usize>,
    layout: RefCell<Layout>,
    /// The width of the last drawing, which decides where rows end.
    width: Cell<u16>,
    /// The first row of the last drawing.
    top: Cell<usize>,
}

/// The kind of the last key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LastKey {
    Kill,
    Yank(Range<usize>),
    /// Moved through the history: up and down continue there.
    History,
    Other,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    pub(crate) fn new() -> Self {
        Self {
            buffer: Buffer::default(),
            pastes: Pastes::default(),
            kills: Kills::default(),
            history: History::default(),
            taken: Vec::new(),
            last: LastKey::Other,
            goal_column: None,
            layout: RefCell::default(),
            width: Cell::new(80),
            top: Cell::new(0),
        }
    }

    /// Returns the text, with pastes expanded.
    pub(crate) fn text(&self) -> String {
        self.pastes.expand(self.buffer.text())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// The text before the cursor; each paste is a single marker character.
    pub(crate) fn before_cursor(&self) -> &str {
        self.buffer.before_cursor()
    }

    /// The text after the cursor; each paste is a single marker character.
    pub(crate) fn after_cursor(&self) -> &str {
        self.buffer.after_cursor()
    }

    /// Replaces this many bytes before and after the cursor by `text`, as one change. The cursor
    /// moves behind the text.
    pub(crate) fn replace_around_cursor(&mut self, before: usize, behind: usize, text: &str) {
        let cursor = self.buffer.cursor();
        let start = unit::snap(self.buffer.text(), cursor.saturating_sub(before));
        let end = unit::snap(self.buffer.text(), cursor.saturating_add(behind));
        let text = pastes::sanitise_paste(text).into_owned();
        let text = self.pastes.guard(text);
        self.change(start..end.max(cursor), &text, ChangeKind::Whole);
    }

    /// Moves the cursor back over this many characters.
    pub(crate) fn step_back(&mut self, units: usize) {
        for _ in 0..units {
            let at = unit::before(self.buffer.text(), self.buffer.cursor());
            self.buffer.move_to(at);
        }
    }

    /// Replaces the text and moves the cursor to its end. Can be undone.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.history.leave();
        self.show(text);
    }

    /// Empties the editor. Can be undone.
    pub(crate) fn clear(&mut self) {
        self.set_text("");
    }

    /// Returns the text, with pastes expanded, and resets the editor.
    pub(crate) fn take(&mut self) -> String {
        let text = self.buffer.take();
        let expanded = self.pastes.expand(&text);
        self.taken = self.pastes.pieces(&text);
        self.history.leave();
        if !self.kills.has_markers() {
            self.pastes.clear();
        }
        self.settle(LastKey::Other);
        expanded
    }

    /// The files that the text refers to; large pastes are not searched.
    pub(crate) fn references(&self, cwd: &Path) -> Vec<PathBuf> {
        attach::references(self.buffer.text(), cwd)
    }

    /// Adds a text to the history. A text that was just taken is stored with its pastes folded.
    pub(crate) fn remember(&mut self, text: String) {
        let taken = std::mem::take(&mut self.taken);
        let whole: String = taken.iter().map(Piece::text).collect();
        let is_taken = whole.trim() == text.trim();
        self.history.remember(if is_taken {
            taken
        } else {
            vec![Piece::Typed(text)]
        });
    }

    /// Replaces the history, the oldest text first.
    pub(crate) fn set_history(&mut self, texts: Vec<String>) {
        self.history = History::default();
        for text in texts {
            self.history.remember(vec![Piece::Typed(text)]);
        }
    }

    /// Inserts pasted text; a large paste becomes a marker.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = pastes::sanitise_paste(text).into_owned();
        let text = self.pastes.fold(text);
        let cursor = self.buffer.cursor();
        self.change(cursor..cursor, &text, ChangeKind::Whole);
    }

    fn show(&mut self, text: &str) {
        let text = Piece::Typed(pastes::sanitise_paste(text).into_owned());
        let text = self.pastes.join(&[text]);
        self.show_marked(&text);
    }

    fn show_history(&mut self, pieces: &[Piece]) {
        let sanitise_paste = |text: &str| pastes::sanitise_paste(text).into_owned();
        let clean = pieces.iter().map(|piece| match piece {
            Piece::Typed(text) => Piece::Typed(sanitise_paste(text)),
            Piece::Pasted(text) => Piece::Pasted(sanitise_paste(text)),
        });
        let text = self.pastes.join(&clean.collect::<Vec<_>>());
        self.show_marked(&text);
        self.last = LastKey::History;
    }

    fn show_marked(&mut self, text: &str) {
        let all = 0..self.buffer.text().len();
        self.buffer.replace(all, text, ChangeKind::Whole);
        self.settle(LastKey::Other);
    }

    /// Applies a change made by the user.
    fn change(&mut self, range: Range<usize>, text: &str, kind: ChangeKind) {
        self.history.leave();
        self.buffer.replace(range, text, kind);
        self.settle(LastKey::Other);
    }

    fn cut(&mut self, range: Range<usize>, side: Side) {
        if range.is_empty() {
            return;
        }
        let continues = self.last == LastKey::Kill;
        self.kills
            .add(&self.buffer.text()[range.clone()], side, continues);
        self.change(range, "", ChangeKind::Whole);
        self.last = LastKey::Kill;
    }

    fn yank(&mut self) {
        let Some(text) = self.kills.last().map(str::to_owned) else {
            return;
        };
        let start = self.buffer.cursor();
        self.change(start..start, &text, ChangeKind::Whole);
        self.last = LastKey::Yank(start..start + text.len());
    }

    /// Replaces the text just put back by the cut before it.
    fn yank_older(&mut self) {
        let LastKey::Yank(range) = self.last.clone() else {
            return;
        };
        self.kills.rotate();
        let Some(text) = self.kills.last().map(str::to_owned) else {
            return;
        };
        let start = range.start;
        self.change(range, &text, ChangeKind::Whole);
        self.last = LastKey::Yank(start..start + text.len());
    }

    fn move_to(&mut self, at: usize) {
        self.buffer.move_to(at);
        self.settle(LastKey::Other);
    }

    fn settle(&mut self, last: LastKey) {
        self.last = last;
        self.goal_column = None;
    }

    /// Moves up by a row, or to the previous text of the history.
    fn up(&mut self) {
        let (row, column) = self.row_and_column();
        if row > 0 && self.last != LastKey::History {
            self.go_to_row(row - 1, column);
            return;
        }
        match self
            .history
            .older(self.buffer.text())
            .map(<[Piece]>::to_vec)
        {
            Some(text) => self.show_history(&text),
            None => self.move_to(0),
        }
    }

    /// Moves down by a row, or to the next text of the history.
    fn down(&mut self) {
        let (row, column) = self.row_and_column();
        if row + 1 < self.layout().rows().len() && self.last != LastKey::History {
            self.go_to_row(row + 1, column);
            return;
        }
        match self.history.newer() {
            Some(Newer::Text(text)) => {
                let text = text.to_vec();
                self.show_history(&text);
            }
            Some(Newer::Draft(draft)) => {
                self.show_marked(&draft);
                self.last = LastKey::History;
            }
            None => self.move_to(self.buffer.text().len()),
        }
    }

    fn go_to_row(&mut self, row: usize, column: usize) {
        let goal_column = self.goal_column.unwrap_or(column);
        let at = self
            .layout()
            .position_at(self.buffer.text(), &self.pastes, row, goal_column);
        self.move_to(at);
        self.goal_column = Some(goal_column);
    }

    fn row_and_column(&self) -> (usize, usize) {
        let layout = self.layout();
        let at = self.buffer.cursor();
        (
            layout.row_of(at),
            layout.column_of(self.buffer.text(), &self.pastes, at),
        )
    }

    /// The rows at the width of the last drawing.
    fn layout(&self) -> Ref<'_, Layout> {
        let width = self.width.get();
        let revision = self.buffer.revision();
        if !self.layout.borrow().is_for(width, revision) {
            *self.layout.borrow_mut() =
                Layout::new(self.buffer.text(), &self.pastes, width, revision);
        }
        self.layout.borrow()
    }
}
