//! What was cut, to be put back.

use std::collections::VecDeque;

use super::unit;

/// Cuts that are kept.
const KEPT: usize = 32;

/// From which side of the cursor text was cut.
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
    /// Keeps a cut; one right after another joins it.
    pub(super) fn add(&mut self, text: &str, side: Side, continues: bool) {
        match (self.ring.front_mut().filter(|_| continues), side) {
            (Some(last), Side::Before) => last.insert_str(0, text),
            (Some(last), Side::After) => last.push_str(text),
            (None, _) => {
                self.ring.push_front(text.to_owned());
                self.ring.truncate(KEPT);
            }
        }
    }

    pub(super) fn last(&self) -> Option<&str> {
        self.ring.front().map(String::as_str)
    }

    /// Puts the newest behind the oldest.
    pub(super) fn rotate(&mut self) {
        if !self.ring.is_empty() {
            self.ring.rotate_left(1);
        }
    }

    pub(super) fn has_markers(&self) -> bool {
        self.ring.iter().any(|text| unit::has_markers(text))
    }
}
