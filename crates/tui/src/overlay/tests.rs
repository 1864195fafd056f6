//! Tests of overlays at several sizes and with typical keys.

mod choosing;
mod dialogs;
mod pages;
mod picking;
mod trees;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Overlay, Step};
use crate::{Background, Colours, Theme, keys};

/// The widths of the screens.
const WIDTHS: [u16; 3] = [40, 80, 120];

pub(super) fn theme() -> Theme {
    Theme::new(Background::Dark, Colours::Palette)
}

/// The key with this name, or the character itself.
pub(super) fn key(name: &str) -> KeyEvent {
    let (code, modifiers) = keys::parse(name).unwrap();
    KeyEvent::new(code, modifiers)
}

/// Presses keys, separated by spaces, and returns the last step.
pub(super) fn press(overlay: &mut dyn Overlay, names: &str) -> Step {
    let steps = names.split(' ').map(|name| overlay.key(key(name)));
    steps.last().unwrap()
}

/// Types a text character by character.
pub(super) fn type_in(overlay: &mut dyn Overlay, text: &str) {
    for letter in text.chars() {
        overlay.key(KeyEvent::from(crossterm::event::KeyCode::Char(letter)));
    }
}

/// Draws on a screen full of dots, so that uncleared cells are visible. Returns the rows from the
/// overlay's first.
pub(super) fn screen(overlay: &mut dyn Overlay, width: u16, height: u16) -> String {
    let (text, _) = drawn(overlay, width, height);
    text
}

pub(super) fn drawn(
    overlay: &mut dyn Overlay,
    width: u16,
    height: u16,
) -> (String, Option<Position>) {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    for row in area.rows() {
        buf.set_string(row.x, row.y, "·".repeat(width.into()), theme().text);
    }
    let cursor = overlay.draw(area, &mut buf, &theme());
    let untouched = "·".repeat(width.into());
    let rows = (0..height)
        .map(|y| row(&buf, y))
        .skip_while(|row| *row == untouched);
    let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    if let Some(at) = cursor {
        assert!(area.contains(at), "the cursor is at {at:?} of {area:?}");
    }
    (rows.join("\n"), cursor)
}

fn row(buf: &Buffer, y: u16) -> String {
    let mut text = String::new();
    let mut skip = 0;
    for x in 0..buf.area.width {
        let symbol = buf[(x, y)].symbol();
        if skip == 0 {
            text.push_str(symbol);
        }
        skip = crate::text::width(symbol).max(skip).saturating_sub(1);
    }
    text
}

/// The overlay at all widths, on screens of 24 rows, as one text.
pub(super) fn at_all_widths(overlay: &mut dyn Overlay) -> String {
    let screens = WIDTHS.map(|width| format!("{width} columns\n{}\n", screen(overlay, width, 24)));
    screens.join("\n")
}
