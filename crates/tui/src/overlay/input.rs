//! A one-line text field: filters, names, short answers.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use crate::Theme;
use crate::text::{sanitise, truncate, width};

/// A line of text with a cursor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    text: String,
    /// In bytes, between two graphemes.
    cursor: usize,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputEffect {
    /// The text changed.
    Changed,
    /// At most the cursor moved.
    Moved,
    /// The field does not handle this key.
    Ignored,
}

impl Input {
    /// A field with this text and the cursor behind it.
    pub fn with_text(text: &str) -> Self {
        let mut input = Self::default();
        input.paste(text);
        input
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Inserts text at the cursor. Line breaks become spaces; characters that a terminal would act
    /// on are removed.
    pub fn paste(&mut self, text: &str) {
        let spaced: String = text
            .trim_end_matches(['\n', '\r'])
            .chars()
            .map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c })
            .collect();
        self.insert(&sanitise(&spaced));
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> InputEffect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let by_word = control || alt;
        match key.code {
            KeyCode::Char('a') if control => self.move_to(0),
            KeyCode::Char('e') if control => self.move_to(self.text.len()),
            KeyCode::Char('b') if control => self.move_to(self.before()),
            KeyCode::Char('f') if control => self.move_to(self.after()),
            KeyCode::Char('b') if alt => self.move_to(self.word_before()),
            KeyCode::Char('f') if alt => self.move_to(self.word_after()),
            KeyCode::Char('u') if control => self.cut(0, self.cursor),
            KeyCode::Char('k') if control => self.cut(self.cursor, self.text.len()),
            KeyCode::Char('w') if control => self.cut(self.word_before(), self.cursor),
            KeyCode::Char('h') if control => self.cut(self.before(), self.cursor),
            KeyCode::Char('d') if control => self.cut(self.cursor, self.after()),
            KeyCode::Char('d') if alt => self.cut(self.cursor, self.word_after()),
            KeyCode::Backspace if by_word => self.cut(self.word_before(), self.cursor),
            KeyCode::Backspace => self.cut(self.before(), self.cursor),
            KeyCode::Delete if by_word => self.cut(self.cursor, self.word_after()),
            KeyCode::Delete => self.cut(self.cursor, self.after()),
            KeyCode::Left if by_word => self.move_to(self.word_before()),
            KeyCode::Right if by_word => self.move_to(self.word_after()),
            KeyCode::Left => self.move_to(self.before()),
            KeyCode::Right => self.move_to(self.after()),
            KeyCode::Char(c) if !control && !alt && !c.is_control() => {
                self.insert(&sanitise(c.encode_utf8(&mut [0; 4])));
                InputEffect::Changed
            }
            _ => InputEffect::Ignored,
        }
    }

    /// Draws the field behind `prompt`, scrolled to the cursor if it is too long. Returns the
    /// cursor's position.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, look: &Line<'_>) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        let prompt = truncate(look.prompt, usize::from(area.width).saturating_sub(2));
        buf.set_stringn(
            area.x,
            area.y,
            &prompt,
            area.width.into(),
            look.theme.accent,
        );
        let indent = width(&prompt) as u16;
        let room = usize::from(area.width - indent);
        let (x, y) = (area.x + indent, area.y);
        if self.text.is_empty() {
            let placeholder = truncate(look.placeholder, room);
            buf.set_stringn(x, y, placeholder, room, look.theme.dim);
            return (room > 0).then_some(Position { x, y });
        }
        let (start, column) = self.window(room);
        let shown = &self.text[start..];
        buf.set_stringn(x, y, shown, room, look.theme.text);
        (room > 0).then_some(Position {
            x: x + column as u16,
            y,
        })
    }

    /// The start of the visible part, and the column of the cursor in it. The cursor has a column
    /// of its own.
    fn window(&self, room: usize) -> (usize, usize) {
        let mut column = 0;
        let mut start = self.cursor;
        for (at, grapheme) in self.text[..self.cursor].grapheme_indices(true).rev() {
            let wider = column + width(grapheme);
            if wider + 1 > room {
                break;
            }
            (start, column) = (at, wider);
        }
        (start, column)
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // Inserted characters may have joined the text after them to one grapheme.
        self.cursor = self.boundary_from(self.cursor);
    }

    fn boundary_from(&self, at: usize) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(start, _)| start)
            .find(|&start| start >= at)
            .unwrap_or(self.text.len())
    }

    fn move_to(&mut self, at: usize) -> InputEffect {
        self.cursor = at;
        InputEffect::Moved
    }

    fn cut(&mut self, from: usize, to: usize) -> InputEffect {
        if from >= to {
            return InputEffect::Moved;
        }
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary_from(from);
        InputEffect::Changed
    }

    fn before(&self) -> usize {
        let mut graphemes = self.text[..self.cursor].grapheme_indices(true);
        graphemes.next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let mut words = self.text[self.cursor..].unicode_word_indices();
        let end = words.next().map(|(at, word)| at + word.len());
        end.map_or(self.text.len(), |end| self.cursor + end)
    }
}

/// The decoration of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Text before the field.
    pub prompt: &'a str,
    /// Text shown while the field is empty.
    pub placeholder: &'a str,
    pub theme: &'a Theme,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Background, Colours};
    use proptest::prelude::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn words_and_graphemes_are_what_keys_move_by() {
        let mut input = Input::with_text("fix the naïve 👩‍👩‍👧 parser\n");
        assert_eq!(input.text(), "fix the naïve 👩‍👩‍👧 parser");
        input.key(key(KeyCode::Char('w'), KeyModifiers::CONTROL));
        input.key(key(KeyCode::Backspace, KeyModifiers::NONE));
        input.key(key(KeyCode::Backspace, KeyModifiers::NONE));
        assert_eq!(input.text(), "fix the naïve ");
        input.key(key(KeyCode::Left, KeyModifiers::CONTROL));
        input.key(key(KeyCode::Char('k'), KeyModifiers::CONTROL));
        input.key(key(KeyCode::Char('X'), KeyModifiers::SHIFT));
        assert_eq!(input.text(), "fix the X");
    }

    #[test]
    fn breaks_and_escapes_do_not_get_in() {
        let mut input = Input::default();
        input.paste("one\ntwo\u{1b}[31m\u{7}\u{202e}");
        assert!(!input.text().chars().any(char::is_control), "{input:?}");
        assert!(input.text().starts_with("one two"));
    }

    proptest! {
        #[test]
        fn whatever_is_typed_the_cursor_is_inside_the_area(
            keys in prop::collection::vec((0usize..14, any::<char>(), 0u8..8), 0..60),
            columns in 1u16..30,
        ) {
            let theme = Theme::new(Background::Dark, Colours::None);
            let mut input = Input::default();
            for (what, c, modifiers) in keys {
                let code = [
                    KeyCode::Char(c), KeyCode::Char(c), KeyCode::Char(c), KeyCode::Char(c), KeyCode::Left,
                    KeyCode::Right, KeyCode::Backspace, KeyCode::Delete, KeyCode::Char('w'), KeyCode::Char('k'),
                    KeyCode::Char('a'), KeyCode::Char('b'), KeyCode::Char('f'), KeyCode::Char('d'),
                ][what];
                let modifiers = if what < 4 { KeyModifiers::NONE } else { KeyModifiers::from_bits_truncate(modifiers) };
                input.key(key(code, modifiers));
                prop_assert!(input.text.is_char_boundary(input.cursor));
                let area = Rect::new(0, 0, columns, 1);
                let look = Line { prompt: "> ", placeholder: "type", theme: &theme };
                if let Some(at) = input.draw(area, &mut Buffer::empty(area), &look) {
                    prop_assert!(area.contains(at), "{:?} {:?}", input, at);
                }
            }
        }
    }
}
