//! Breaks the text of the editor into rows of the screen.
//!
//! Text uses one column less than available: the last one holds the cursor behind a full row, and
//! the space at which a row was broken.

use super::pastes::Pastes;
use super::unit;
use crate::text::{grapheme_width, width};

/// Columns of a tab.
const TAB_WIDTH: usize = 4;

/// The rows of a text at a width.
#[derive(Debug, Default)]
pub(super) struct Layout {
    revision: u64,
    width: u16,
    rows: Vec<Row>,
}

/// The part of the text that one row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The line of the text continues in the next row.
    pub(super) continues: bool,
}

impl Layout {
    pub(super) fn new(text: &str, pastes: &Pastes, width: u16, revision: u64) -> Self {
        let mut rows = Vec::new();
        let mut start = 0;
        loop {
            let end = text[start..]
                .find('\n')
                .map_or(text.len(), |newline| start + newline);
            wrap(text, start, end, columns(width), pastes, &mut rows);
            if end == text.len() {
                break;
            }
            start = end + 1;
        }
        Self {
            revision,
            width,
            rows,
        }
    }

    pub(super) fn is_for(&self, width: u16, revision: u64) -> bool {
        !self.rows.is_empty() && self.width == width && self.revision == revision
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row that contains a position of the text.
    pub(super) fn row_of(&self, at: usize) -> usize {
        self.rows
            .partition_point(|row| row.start <= at)
            .saturating_sub(1)
    }

    /// The column of a position of the text.
    pub(super) fn column_of(&self, text: &str, pastes: &Pastes, at: usize) -> usize {
        let Some(row) = self.rows.get(self.row_of(at)) else {
            return 0;
        };
        let Some(part) = text.get(row.start..at) else {
            return 0;
        };
        unit::units(part)
            .map(|(_, unit)| unit_width(unit, pastes, columns(self.width)))
            .sum()
    }

    /// The position of the text in a row that is nearest to a column without passing it.
    pub(super) fn position_at(
        &self,
        text: &str,
        pastes: &Pastes,
        row: usize,
        column: usize,
    ) -> usize {
        let Some(row) = self.rows.get(row) else {
            return text.len();
        };
        let mut at = row.start;
        let mut taken = 0;
        for (_, unit) in unit::units(&text[row.start..row.end]) {
            taken += unit_width(unit, pastes, columns(self.width));
            // The position behind the last unit of a continued row is the start of the next row.
            if taken > column || (row.continues && at + unit.len() == row.end) {
                break;
            }
            at += unit.len();
        }
        at
    }
}

/// The columns available to text.
pub(super) fn columns(width: u16) -> usize {
    usize::from(width).saturating_sub(1).max(1)
}

/// Columns that a unit takes on the screen.
pub(super) fn unit_width(unit: &str, pastes: &Pastes, columns: usize) -> usize {
    match unit.as_bytes() {
        [b'\t'] => TAB_WIDTH.min(columns),
        [b' '..=b'~'] => 1,
        _ => match unit::unit_marker(unit) {
            Some(number) => width(pastes.label(number)).min(columns),
            // A character without width would leave the cursor in place, so it is shown as a
            // replacement character.
            None => grapheme_width(unit).max(1),
        },
    }
}

/// Breaks one line into at least one row.
fn wrap(
    text: &str,
    start: usize,
    end: usize,
    columns: usize,
    pastes: &Pastes,
    rows: &mut Vec<Row>,
) {
    let mut row = start;
    let mut taken = 0;
    // The position at which the row may be broken, and the width of the part behind it.
    let mut break_at = start;
    let mut behind_break = 0;
    let mut previous_alone = false;
    let mut previous_space = false;
    for (offset, unit) in unit::units(&text[start..end]) {
        let at = start + offset;
        let width = unit_width(unit, pastes, columns);
        let is_space = unit::is_space(unit);
        let alone = unit::stands_alone(unit);
        if at > row && !is_space && (previous_space || alone || previous_alone) {
            break_at = at;
            behind_break = 0;
        }
        while at > row && taken + width > columns && !(is_space && width == 1 && taken == columns) {
            // A word moves to the next row as a whole if it fits there; spaces stay in place.
            let cut = if break_at > row && !is_space {
                break_at
            } else {
                at
            };
            rows.push(Row {
                start: row,
                end: cut,
                continues: true,
            });
            taken = if cut == break_at { behind_break } else { 0 };
            row = cut;
            break_at = cut;
            behind_break = taken;
        }
        taken += width;
        behind_break += width;
        previous_space = is_space;
        previous_alone = alone;
    }
    let is_over = taken > columns && row < end && previous_space;
    rows.push(Row {
        start: row,
        end,
        continues: is_over,
    });
    if is_over {
        rows.push(Row {
            start: end,
            end,
            continues: false,
        });
    }
}
