//! The cursor of a list: the selected row, and the visible part.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The selected row of a list and the first visible one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    selected: usize,
    top: usize,
    /// Rows of the last drawing.
    page: usize,
}

impl Cursor {
    pub fn selected(self) -> usize {
        self.selected
    }

    /// Selects a row; the next drawing shows it.
    pub fn select(&mut self, row: usize) {
        self.selected = row;
    }

    /// Selects the first row.
    pub fn reset(&mut self) {
        self.selected = 0;
        self.top = 0;
    }

    /// Moves by a key in a list of `length` rows. Returns false if the key does not move. A step
    /// beyond one end leads to the other.
    pub fn key(&mut self, key: KeyEvent, length: usize) -> bool {
        let Some(last) = length.checked_sub(1) else {
            return is_motion(key);
        };
        let at = self.selected.min(last);
        let page = self.page.saturating_sub(1).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        self.selected = match key.code {
            KeyCode::Up if at == 0 => last,
            KeyCode::Char('p') if control && at == 0 => last,
            KeyCode::Up => at - 1,
            KeyCode::Char('p') if control => at - 1,
            KeyCode::Down if at == last => 0,
            KeyCode::Char('n') if control && at == last => 0,
            KeyCode::Down => at + 1,
            KeyCode::Char('n') if control => at + 1,
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown => (at + page).min(last),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return false,
        };
        true
    }

    /// Moves by this many rows in a list of `length` rows and stops at its ends.
    pub fn scroll_by(&mut self, rows: isize, length: usize) {
        let last = length.saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
    }

    /// The rows to draw if `room` of `length` fit; the selected one is among them.
    pub fn show(&mut self, length: usize, room: usize) -> Range<usize> {
        self.page = room;
        self.selected = self.selected.min(length.saturating_sub(1));
        let lowest_top = (self.selected + 1).saturating_sub(room);
        self.top = self
            .top
            .clamp(lowest_top, self.selected.max(lowest_top))
            .min(length.saturating_sub(room));
        self.top..(self.top + room).min(length)
    }
}

fn is_motion(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('p' | 'n') => key.modifiers.contains(KeyModifiers::CONTROL),
        code => matches!(
            code,
            KeyCode::Up
                | KeyCode::Down
                | KeyCode::PageUp
                | KeyCode::PageDown
                | KeyCode::Home
                | KeyCode::End
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_selected_is_shown_and_no_room_is_wasted(
            moves in prop::collection::vec((0usize..8, 0usize..40, 1usize..12), 1..60),
        ) {
            let mut cursor = Cursor::default();
            for (what, length, room) in moves {
                let code = [
                    KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown,
                    KeyCode::Home, KeyCode::End, KeyCode::Esc, KeyCode::Down,
                ][what];
                cursor.key(KeyEvent::from(code), length);
                let shown = cursor.show(length, room);
                prop_assert_eq!(shown.len(), length.min(room));
                prop_assert!(length == 0 || shown.contains(&cursor.selected()));
            }
        }
    }

    #[test]
    fn a_page_keeps_one_row_in_sight() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.show(100, 10), 0..10);
        cursor.key(KeyEvent::from(KeyCode::PageDown), 100);
        assert_eq!(cursor.selected(), 9);
        cursor.key(KeyEvent::from(KeyCode::PageDown), 100);
        assert_eq!((cursor.selected(), cursor.show(100, 10)), (18, 9..19));
    }
}
