//! Tests of Markdown as a whole: its layout, its independence of deltas, and the work it takes.

mod looks;
mod streaming;

use ratatui::text::Line;

use super::*;
use crate::{Background, Colours};

fn theme() -> Theme {
    Theme::new(Background::Dark, Colours::Palette)
}

fn text_of(lines: &[Line<'_>]) -> String {
    let rows: Vec<String> = lines.iter().map(ToString::to_string).collect();
    rows.join("\n")
}

/// A text as shown, without styles.
fn shown(source: &str, width: u16) -> String {
    let mut markdown = Markdown::from_text(source);
    text_of(markdown.lines(width, &theme(), &Highlighter::off()))
}
