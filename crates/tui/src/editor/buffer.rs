//! The text of the editor, its cursor, and undo.

use std::collections::VecDeque;
use std::ops::Range;

use super::unit;

/// Changes that can be undone; older ones are dropped.
const MAX_UNDO_STEPS: usize = 10_000;

/// The text with its markers, and the cursor, which always stands between two units.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    done: VecDeque<Change>,
    undone: Vec<Change>,
    /// Counts changes, so that a layout made from the text can detect that it is out of date.
    revision: u64,
}

/// One reversible change of the text.
#[derive(Debug)]
struct Change {
    at: usize,
    removed: String,
    inserted: String,
    cursor: usize,
    kind: ChangeKind,
}

/// Decides whether the next change may be merged into this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Typed: the letters of a word are undone together.
    Typed,
    /// Undone as a step of its own.
    Whole,
}

impl Buffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(super) fn after_cursor(&self) -> &str {
        &self.text[self.cursor..]
    }

    /// Moves the cursor to the nearest position at or before `at`.
    pub(super) fn move_to(&mut self, at: usize) {
        self.cursor = unit::snap(&self.text, at);
        // Typing at another position starts a new change.
        if let Some(last) = self.done.back_mut() {
            last.kind = ChangeKind::Whole;
        }
    }

    /// Replaces `range` by `text` and moves the cursor behind it.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str, kind: ChangeKind) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        self.undone.clear();
        if !(kind == ChangeKind::Typed && range.is_empty() && self.grows(range.start, text)) {
            self.done.push_back(Change {
                at: range.start,
                removed: self.text[range.clone()].to_owned(),
                inserted: text.to_owned(),
                cursor: self.cursor,
                kind,
            });
            if self.done.len() > MAX_UNDO_STEPS {
                self.done.pop_front();
            }
        }
        let end = range.start + text.len();
        self.splice(range, text);
        self.set_cursor(end);
    }

    /// Merges typing into the last change if it continues it: letters of one word, or the space
    /// after it. Returns whether it did.
    fn grows(&mut self, at: usize, text: &str) -> bool {
        let Some(last) = self.done.back_mut() else {
            return false;
        };
        let begins_word = unit::is_space(
            last.inserted
                .get(unit::before(&last.inserted, last.inserted.len())..)
                .unwrap_or(""),
        ) && !unit::is_space(text);
        if last.kind != ChangeKind::Typed || last.at + last.inserted.len() != at || begins_word {
            return false;
        }
        last.inserted.push_str(text);
        true
    }

    pub(super) fn undo(&mut self) -> bool {
        let Some(change) = self.done.pop_back() else {
            return false;
        };
        self.splice(
            change.at..change.at + change.inserted.len(),
            &change.removed,
        );
        self.set_cursor(change.cursor);
        self.undone.push(change);
        true
    }

    pub(super) fn redo(&mut self) -> bool {
        let Some(mut change) = self.undone.pop() else {
            return false;
        };
        self.splice(
            change.at..change.at + change.removed.len(),
            &change.inserted,
        );
        self.set_cursor(change.at + change.inserted.len());
        change.kind = ChangeKind::Whole;
        self.done.push_back(change);
        true
    }

    /// Returns the text and resets the buffer.
    pub(super) fn take(&mut self) -> String {
        self.done.clear();
        self.undone.clear();
        self.cursor = 0;
        self.revision += 1;
        std::mem::take(&mut self.text)
    }

    fn splice(&mut self, range: Range<usize>, text: &str) {
        self.text.replace_range(range, text);
        self.revision += 1;
    }

    /// Inserted characters may have joined their neighbours to one grapheme; the cursor then moves
    /// behind it.
    fn set_cursor(&mut self, at: usize) {
        let snapped = unit::snap(&self.text, at);
        self.cursor = if snapped == at {
            at
        } else {
            unit::after(&self.text, snapped)
        };
    }

    /// The start of the line that contains `at`.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line that contains `at`.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline)
    }
}
