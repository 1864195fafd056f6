//! What was said before, to be said again.

use super::pastes::Piece;

/// Texts that are kept.
const KEPT: usize = 500;

/// Earlier texts, the oldest first, and where in them one is.
#[derive(Debug, Default)]
pub(super) struct History {
    said: Vec<Vec<Piece>>,
    /// Which text is shown instead of the draft.
    shown: Option<usize>,
    /// What stood in the editor before, with its markers.
    draft: String,
}

impl History {
    /// Adds a text unless it is empty or the one before again.
    pub(super) fn remember(&mut self, text: Vec<Piece>) {
        self.leave();
        if is_blank(&text) || self.said.last().is_some_and(|last| is_same(last, &text)) {
            return;
        }
        self.said.push(text);
        if self.said.len() > KEPT {
            self.said.remove(0);
        }
    }

    /// The text before the one shown; `draft` is what stands in the editor now.
    pub(super) fn older(&mut self, draft: &str) -> Option<&[Piece]> {
        let next = match self.shown {
            Some(shown) => shown.checked_sub(1)?,
            None => {
                let last = self.said.len().checked_sub(1)?;
                draft.clone_into(&mut self.draft);
                last
            }
        };
        self.shown = Some(next);
        self.said.get(next).map(Vec::as_slice)
    }

    /// What comes after the text shown.
    pub(super) fn newer(&mut self) -> Option<Newer<'_>> {
        let next = self.shown? + 1;
        if next < self.said.len() {
            self.shown = Some(next);
            return self.said.get(next).map(|text| Newer::Text(text));
        }
        self.shown = None;
        Some(Newer::Draft(std::mem::take(&mut self.draft)))
    }

    /// What is shown is being changed: it is the draft now.
    pub(super) fn leave(&mut self) {
        self.shown = None;
        self.draft.clear();
    }
}

/// A step towards the present.
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
