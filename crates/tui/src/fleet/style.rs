//! Lines with a few colours, the size of a terminal and whether it supports colours.
#![allow(unsafe_code)]

use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd};

use crate::text::{truncate, width};

/// The emphasis or colour of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Faint,
    Strong,
    Good,
    Bad,
}

/// A line as pieces of one style each.
pub(super) type StyledLine = Vec<(String, Style)>;

/// The choice between colours and plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    None,
    Colours,
}

impl Palette {
    /// Reads `NO_COLOR` and `TERM` from the environment.
    pub fn from_env() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if refused || is_dumb() {
            Self::None
        } else {
            Self::Colours
        }
    }
}

/// Reports whether the terminal prints escape sequences instead of interpreting them.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// Appends a line cut to this many cells, without trailing blanks; returns the number of cells it takes.
pub(super) fn paint(line: &StyledLine, cells: usize, palette: Palette, text: &mut String) -> usize {
    let last = line
        .iter()
        .rposition(|(piece, _)| !piece.trim_end().is_empty());
    let mut used = 0;
    for (index, (piece, style)) in line.iter().enumerate() {
        let piece = match last {
            Some(last) if index < last => piece.as_str(),
            Some(last) if index == last => piece.trim_end(),
            _ => break,
        };
        let piece = truncate(piece, cells - used);
        used += width(&piece);
        match code(*style).filter(|_| palette == Palette::Colours) {
            Some(code) => {
                let _ = write!(text, "\x1b[{code}m{piece}\x1b[0m");
            }
            None => text.push_str(&piece),
        }
    }
    used
}

/// Returns the SGR code of a style; the colours are readable on dark and on light backgrounds.
fn code(style: Style) -> Option<u8> {
    match style {
        Style::Plain => None,
        Style::Strong => Some(1),
        Style::Faint => Some(2),
        Style::Good => Some(32),
        Style::Bad => Some(31),
    }
}

/// Returns the rows and columns of a terminal; 24 and 100 if it does not report them.
pub fn terminal_size(terminal: impl AsFd) -> (usize, usize) {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let descriptor = terminal.as_fd().as_raw_fd();
    // SAFETY: the structure is valid and lives across the call.
    let asked = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) };
    match (asked, size.ws_row, size.ws_col) {
        (0, rows @ 1.., columns @ 1..) => (usize::from(rows), usize::from(columns)),
        _ => (24, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn painted(line: &StyledLine, cells: usize, palette: Palette) -> (String, usize) {
        let mut text = String::new();
        let used = paint(line, cells, palette, &mut text);
        (text, used)
    }

    #[test]
    fn a_line_ends_where_its_words_do() {
        let line = vec![
            ("a  ".to_owned(), Style::Plain),
            ("bad  ".to_owned(), Style::Bad),
            ("   ".to_owned(), Style::Faint),
        ];
        assert_eq!(
            painted(&line, 20, Palette::Colours),
            ("a  \x1b[31mbad\x1b[0m".into(), 6)
        );
        assert_eq!(painted(&line, 20, Palette::None), ("a  bad".into(), 6));
        assert_eq!(painted(&line, 5, Palette::None), ("a  b…".into(), 5));
        assert_eq!(
            painted(&StyledLine::new(), 5, Palette::None),
            (String::new(), 0)
        );
    }

    proptest! {
        #[test]
        fn no_line_takes_more_cells_than_there_are(
            pieces in proptest::collection::vec("\\PC{0,12}", 0..5),
            cells in 0usize..40,
        ) {
            let line: StyledLine = pieces.into_iter().map(|piece| (piece, Style::Plain)).collect();
            let (text, used) = painted(&line, cells, Palette::None);
            prop_assert!(used <= cells);
            // Pieces are measured one by one; together they can only be narrower.
            prop_assert!(width(&text) <= used);
        }
    }
}
