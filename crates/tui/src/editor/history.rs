//! The history of sent texts.

use super::pastes::Piece;

/// Texts in the history.
const MAX_TEXTS: usize = 500;

/// Earlier texts, the oldest first, and the position of the user in them.
#[derive(Debug, Default)]
pub(super) struct History {
    texts: Vec<Vec<Piece>>,
    /// The text that is shown instead of the draft.
    shown: Option<usize>,
    /// The text of the editor before the history was entered, with its markers.
    draft: String,
}

impl History {
    /// Adds a text unless it is blank or equals the newest one.
    pub(super) fn remember(&mut self, text: Vec<Piece>) {
        self.leave();
        if is_blank(&text) || self.texts.last().is_some_and(|last| is_same(last, &text)) {
            return;
        }
        self.texts.push(text);
        if self.texts.len() > MAX_TEXTS {
            self.texts.remove(0);
        }
    }

    /// Moves to the text before the shown one; `draft` is the current text of the editor.
    pub(super) fn older(&mut self, draft: &str) -> Option<&[Piece]> {
        let next = match self.shown {
            Some(shown) => shown.checked_sub(1)?,
            None => {
                let last = self.texts.len().checked_sub(1)?;
                draft.clone_into(&mut self.draft);
                last
            }
        };
        self.shown = Some(next);
        self.texts.get(next).map(Vec::as_slice)
    }

    /// Moves to the text after the shown one.
    pub(super) fn newer(&mut self) -> Option<Newer<'_>> {
        let next = self.shown? + 1;
        if next < self.texts.len() {
            self.shown = Some(next);
            return self.texts.get(next).map(|text| Newer::Text(text));
        }
        self.shown = None;
        Some(Newer::Draft(std::mem::take(&mut self.draft)))
    }

    /// The user edits the shown text: it becomes the draft.
    pub(super) fn leave(&mut self) {
        self.shown = None;
        self.draft.clear();
    }
}

/// A step towards the newest text.
#[derive(Debug)]
pub(super) enum Newer<'a> {
    Text(&'a [Piece]),
    Draft(String),
}

fn is_blank(text: &[Piece]) -> bool {
    text.iter().all(|piece| piece.text().trim().is_empty())
}

fn is_same(one: &[Piece], other: &[Piece]) -> bool {
    let bytes = |text: &[Piece]| text.iter().map(Piece::text).collect::<String>();
    bytes(one).trim() == bytes(other).trim()
}
