//! The ring of cut texts.

use std::collections::VecDeque;

use super::unit;

/// Cut texts in the ring.
const MAX_KILLS: usize = 32;

/// The side of the cursor from which text was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// The last cuts, the newest first.
#[derive(Debug, Default)]
pub(super) struct Kills {
    ring: VecDeque<String>,
}

impl Kills {
    /// Adds a cut; consecutive cuts are joined.
    pub(super) fn add(&mut self, text: &str, side: Side, continues: bool) {
        match (self.ring.front_mut().filter(|_| continues), side) {
            (Some(last), Side::Before) => last.insert_str(0, text),
            (Some(last), Side::After) => last.push_str(text),
            (None, _) => {
                self.ring.push_front(text.to_owned());
                self.ring.truncate(MAX_KILLS);
            }
        }
    }

    pub(super) fn last(&self) -> Option<&str> {
        self.ring.front().map(String::as_str)
    }

    /// Moves the newest cut behind the oldest.
    pub(super) fn rotate(&mut self) {
        if !self.ring.is_empty() {
            self.ring.rotate_left(1);
        }
    }

    pub(super) fn has_markers(&self) -> bool {
        self.ring.iter().any(|text| unit::has_markers(text))
    }
}
