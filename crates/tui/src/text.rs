//! Text before it is drawn: sanitised, measured, cut and broken into rows.
//!
//! Everything shown passes through [`sanitise`] first: an answer or the output of a tool may
//! contain escape sequences, and none of them may reach the terminal.

mod rows;

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

pub(crate) use pinion_text::{Sanitiser, is_sanitised};
pub use pinion_text::{one_line, sanitise};
pub(crate) use rows::{fold, wrap, wrap_hanging};

/// Cells that a text takes on the screen.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// Cells that one grapheme takes, as the screen counts them.
pub(crate) fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) {
        return 0;
    }
    usize::from(grapheme.cell_width())
}

/// Shortens a text to at most this many cells; `…` replaces the rest.
pub fn truncate(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    if cells == 0 {
        return String::new();
    }
    let mut used = 0;
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme_width(grapheme);
        if used > cells - 1 {
            break;
        }
        end = at + grapheme.len();
    }
    format!("{}…", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_cut_with_an_ellipsis() {
        for (text, cells, clipped) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("two words", 5, "two…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("日本語", 1, "…"),
            ("any", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(truncate(text, cells), clipped, "{text:?} in {cells}");
        }
    }

    #[test]
    fn a_joined_emoji_is_one_grapheme() {
        assert_eq!(width("👩‍👩‍👧"), 2);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("plain"), 5);
    }

    proptest! {
        #[test]
        fn a_clipped_text_fits(text in "\\PC{0,30}", cells in 0usize..40) {
            let clipped = truncate(&text, cells);
            prop_assert!(width(&clipped) <= cells);
            prop_assert!(clipped == text || clipped.ends_with('…') || cells == 0);
        }
    }
}
