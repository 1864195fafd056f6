//! The text, the cursor in it, and how to take changes back.

use std::collections::VecDeque;
use std::ops::Range;

use super::unit;

/// Changes that can be taken back; older ones are forgotten.
const CHANGES_KEPT: usize = 10_000;

/// The text with its markers, and the cursor, which always stands between two units.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    done: VecDeque<Change>,
    undone: Vec<Change>,
    /// Counts changes of the text, so that what was made from it knows when it is out of date.
    revision: u64,
}

/// One thing that was done to the text, in a form that can be turned round.
#[derive(Debug)]
struct Change {
    at: usize,
    removed: String,
    inserted: String,
    cursor: usize,
    how: How,
}

/// Whether a change may grow when the next one continues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Typed: a word is taken back at once.
    Typed,
    /// A step of its own.
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

    /// Puts the cursor at the nearest place at or before this one.
    pub(super) fn move_to(&mut self, at: usize) {
        self.cursor = unit::snap(&self.text, at);
        // Typing elsewhere is not a continuation.
        if let Some(last) = self.done.back_mut() {
            last.how = How::Whole;
        }
    }

    /// Puts `text` where `range` is; the cursor goes behind it.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str, how: How) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        self.undone.clear();
        if !(how == How::Typed && range.is_empty() && self.grows(range.start, text)) {
            self.done.push_back(Change {
                at: range.start,
                removed: self.text[range.clone()].to_owned(),
                inserted: text.to_owned(),
                cursor: self.cursor,
                how,
            });
            if self.done.len() > CHANGES_KEPT {
                self.done.pop_front();
            }
        }
        let end = range.start + text.len();
        self.splice(range, text);
        self.set_cursor(end);
    }

    /// Adds to the last change what continues it: letters of one word, or the space behind it.
    fn grows(&mut self, at: usize, text: &str) -> bool {
        let Some(last) = self.done.back_mut() else {
            return false;
        };
        let begins_word = unit::is_space(
            last.inserted
                .get(unit::before(&last.inserted, last.inserted.len())..)
                .unwrap_or(""),
        ) && !unit::is_space(text);
        if last.how != How::Typed || last.at + last.inserted.len() != at || begins_word {
            return false;
        }
        last.inserted.push_str(text);
        true
    }

    /// Takes the last change back.
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

    /// Makes the change again that was taken back last.
    pub(super) fn redo(&mut self) -> bool {
        let Some(mut change) = self.undone.pop() else {
            return false;
        };
        self.splice(
            change.at..change.at + change.removed.len(),
            &change.inserted,
        );
        self.set_cursor(change.at + change.inserted.len());
        change.how = How::Whole;
        self.done.push_back(change);
        true
    }

    /// Gives the text away and starts anew.
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

    /// What was put in may have joined what stands around it.
    fn set_cursor(&mut self, at: usize) {
        let snapped = unit::snap(&self.text, at);
        self.cursor = if snapped == at {
            at
        } else {
            unit::after(&self.text, snapped)
        };
    }

    /// Where the line with this place starts.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Where the line with this place ends.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline)
    }
}
