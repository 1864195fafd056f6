//! A picture of lines that replaces the previous one below the terminal's other content, even after a change of size.
//!
//! The position of the cursor cannot be queried without reading keys. As long as the picture has stayed on the
//! screen, its height gives the row where it begins. A terminal that was too low for it has scrolled a part out of
//! reach and may bring that part back when it grows. From then on the row is unknown, and each new size redraws the
//! whole screen.

use std::fmt::Write;

use super::style::{Palette, StyledLine, paint};

/// The picture that was drawn last.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    picture: Vec<StyledLine>,
    /// The widths of its lines, in cells.
    drawn: Vec<usize>,
    /// Rows and columns of the terminal when it was drawn.
    size: (usize, usize),
    /// A part of some picture has scrolled out of reach.
    has_lost: bool,
}

impl Canvas {
    /// Returns the bytes that draw these lines in the place of the last ones; empty if nothing has changed.
    pub fn draw(
        &mut self,
        lines: Vec<StyledLine>,
        size: (usize, usize),
        palette: Palette,
    ) -> String {
        let is_resized = self.size != size;
        if !is_resized && self.picture == lines {
            return String::new();
        }
        // One write between these marks is one frame. Text that a terminal considers wider than pinion does is cut,
        // not folded.
        let mut text = String::from("\x1b[?2026h\x1b[?7l");
        let below = self.rise(size, &mut text);
        for (index, line) in lines.iter().enumerate() {
            if is_resized {
                // A terminal treats folded rows as separate lines again only when they are completely empty.
                text.push_str("\x1b[2K");
            }
            let cells = size.1.saturating_sub(1).max(1);
            self.drawn.push(paint(line, cells, palette, &mut text));
            // Existing rows must not scroll: the terminal may be lower by now than its last reported size.
            text.push_str(if index < below {
                "\x1b[K\x1b[B\r"
            } else {
                "\x1b[K\r\n"
            });
        }
        // Clears the rows that a shorter picture no longer uses.
        text.push_str("\x1b[J\x1b[?7h\x1b[?2026l");
        self.size = size;
        self.picture = lines;
        text
    }

    /// Returns the bytes that remove the picture.
    pub fn erase(&mut self, size: (usize, usize)) -> String {
        let mut text = String::new();
        self.rise(size, &mut text);
        text.push_str("\x1b[J");
        self.picture.clear();
        text
    }

    /// Moves to the first row of the picture; returns the number of rows from there.
    fn rise(&mut self, size: (usize, usize), text: &mut String) -> usize {
        let (height, width) = size;
        let rows: usize = self.drawn.drain(..).map(|cells| folded(cells, width)).sum();
        let reach = height.saturating_sub(1);
        if self.has_lost && self.size != size {
            text.push_str("\x1b[H\x1b[J");
            return reach;
        }
        self.has_lost |= rows > reach;
        let up = rows.min(reach);
        if up > 0 {
            let _ = write!(text, "\x1b[{up}A");
        }
        text.push('\r');
        up
    }
}

/// Returns the number of rows of a line. A terminal that has become narrower has folded it.
fn folded(cells: usize, width: usize) -> usize {
    cells.div_ceil(width.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::style::Style;

    /// Makes lines of this many cells, all with the same letter.
    fn lines(count: usize, cells: usize, letter: &str) -> Vec<StyledLine> {
        vec![vec![(letter.repeat(cells), Style::Plain)]; count]
    }

    fn draw(canvas: &mut Canvas, lines: Vec<StyledLine>, size: (usize, usize)) -> String {
        canvas.draw(lines, size, Palette::None)
    }

    /// Returns the number of rows by which a frame moves up.
    fn rise(text: &str) -> Option<usize> {
        let text = text.strip_prefix("\x1b[?2026h\x1b[?7l\x1b[")?;
        text.split_once('A')?.0.parse().ok()
    }

    const HOME: &str = "\x1b[?2026h\x1b[?7l\x1b[H\x1b[J";

    #[test]
    fn a_picture_is_drawn_over_the_last_one() {
        let mut canvas = Canvas::default();
        let first = draw(&mut canvas, lines(4, 60, "a"), (24, 80));
        assert_eq!(rise(&first), None, "{first:?}");
        assert_eq!(first.matches("\r\n").count(), 4);
        let same = draw(&mut canvas, lines(4, 60, "a"), (24, 80));
        assert_eq!(same, "", "nothing is different");
        let second = draw(&mut canvas, lines(5, 60, "b"), (24, 80));
        assert_eq!(rise(&second), Some(4), "{second:?}");
        assert_eq!(second.matches("\r\n").count(), 1, "one row more");
        assert!(second.ends_with("\x1b[J\x1b[?7h\x1b[?2026l"));
        assert_eq!(canvas.erase((24, 80)), "\x1b[5A\r\x1b[J");
    }

    #[test]
    fn a_terminal_that_became_narrower_has_folded_what_was_drawn() {
        let mut canvas = Canvas::default();
        draw(&mut canvas, lines(4, 60, "a"), (24, 80));
        let narrow = draw(&mut canvas, lines(4, 29, "a"), (24, 30));
        assert_eq!(rise(&narrow), Some(8), "{narrow:?}");
        assert_eq!(narrow.matches("\x1b[2K").count(), 4);
        let again = draw(&mut canvas, lines(4, 29, "b"), (24, 30));
        assert_eq!(rise(&again), Some(4));
        assert!(!again.contains("\x1b[2K"), "{again:?}");
    }

    #[test]
    fn what_a_low_terminal_took_away_leaves_nothing_when_it_is_high_again() {
        let mut canvas = Canvas::default();
        draw(&mut canvas, lines(12, 60, "a"), (24, 80));
        let low = draw(&mut canvas, lines(6, 60, "a"), (8, 80));
        assert_eq!(rise(&low), Some(7), "never further than the screen is high");
        let again = draw(&mut canvas, lines(6, 60, "b"), (8, 80));
        assert_eq!(rise(&again), Some(6));
        assert!(!again.contains('\n'), "nothing scrolls: {again:?}");
        let high = draw(&mut canvas, lines(12, 60, "b"), (24, 80));
        assert!(high.starts_with(HOME) && !high.contains('\n'), "{high:?}");
        let again = draw(&mut canvas, lines(12, 60, "c"), (24, 80));
        assert_eq!(rise(&again), Some(12));
        assert!(canvas.erase((30, 80)).starts_with("\x1b[H"));
    }
}
