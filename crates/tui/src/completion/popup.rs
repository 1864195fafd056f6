//! The list of completions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};
use unicode_segmentation::UnicodeSegmentation;

use crate::text::{grapheme_width, truncate, width};
use crate::theme::Theme;

/// Rows that the list takes at most.
const MAX_ROWS: usize = 8;

/// Columns that names take at most before their descriptions.
const MAX_NAME_WIDTH: usize = 36;

/// The completions, and the selected one.
#[derive(Debug, Default)]
pub(super) struct Popup {
    entries: Vec<Entry>,
    /// Number of matches, including those not in the list.
    total: usize,
    selected: usize,
    top: usize,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The characters of the name that match.
    pub(super) marks: Vec<u32>,
    /// Text to type after it, such as arguments.
    pub(super) hint: String,
    /// Its description.
    pub(super) about: String,
}

impl Popup {
    /// Replaces the entries and selects the first.
    pub(super) fn set(&mut self, entries: Vec<Entry>, total: usize) {
        *self = Self {
            entries,
            total,
            selected: 0,
            top: 0,
        };
    }

    /// Updates the entries of the same query; the selection stays if it still exists.
    pub(super) fn update_entries(&mut self, entries: Vec<Entry>, total: usize) {
        let chosen = (self.selected > 0)
            .then(|| self.selected().cloned())
            .flatten();
        self.set(entries, total);
        if let Some(position) = chosen.and_then(|chosen| {
            self.entries
                .iter()
                .position(|entry| entry.name == chosen.name)
        }) {
            self.select(position);
        }
    }

    /// The names of all entries.
    pub(super) fn names(&self) -> Vec<&str> {
        self.entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn selected(&self) -> Option<&Entry> {
        self.entries.get(self.selected)
    }

    /// Moves the selection by this many entries, wrapping around.
    pub(super) fn step(&mut self, by: isize) {
        let count = self.entries.len();
        if count == 0 {
            return;
        }
        let last = count - 1;
        let target = self.selected.saturating_add_signed(by).min(last);
        let at_end = target == self.selected && by != 0;
        self.select(if !at_end {
            target
        } else if by > 0 {
            0
        } else {
            last
        });
    }

    /// Entries per page.
    pub(super) fn page(&self) -> isize {
        isize::try_from(self.shown_in(MAX_ROWS)).unwrap_or(1)
    }

    fn select(&mut self, position: usize) {
        self.selected = position;
        let shown = self.shown_in(MAX_ROWS);
        self.top = self
            .top
            .clamp((position + 1).saturating_sub(shown), position);
    }

    /// Entries shown in this many rows; one row is for the count if there are more.
    fn shown_in(&self, rows: usize) -> usize {
        let shown = if self.total > rows {
            rows.saturating_sub(1)
        } else {
            self.entries.len()
        };
        shown.max(1)
    }

    pub(super) fn height(&self) -> u16 {
        let rows = if self.total > MAX_ROWS {
            MAX_ROWS
        } else {
            self.entries.len()
        };
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    pub(super) fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let height = area.height.min(self.height());
        let area = Rect { height, ..area }.intersection(buf.area);
        // The list is drawn over other content.
        Clear.render(area, buf);
        let shown = self.shown_in(usize::from(area.height));
        let top = self
            .top
            .clamp((self.selected + 1).saturating_sub(shown), self.selected);
        let visible = || self.entries.iter().enumerate().skip(top).take(shown);
        let names = visible()
            .map(|(_, entry)| title_width(entry))
            .max()
            .unwrap_or(0)
            .min(MAX_NAME_WIDTH);
        let mut rows = area.rows();
        for ((position, entry), row) in visible().zip(&mut rows) {
            draw_entry(row, buf, theme, entry, names, position == self.selected);
        }
        if let Some(row) = rows.next() {
            let more = format!("  + {} more", self.total - shown);
            buf.set_stringn(row.x, row.y, more, usize::from(row.width), theme.dim);
        }
    }
}

fn title_width(entry: &Entry) -> usize {
    let hint = if entry.hint.is_empty() {
        0
    } else {
        1 + width(&entry.hint)
    };
    width(&entry.name) + hint
}

fn draw_entry(
    row: Rect,
    buf: &mut Buffer,
    theme: &Theme,
    entry: &Entry,
    names: usize,
    is_selected: bool,
) {
    let end = row.right();
    let room = |x: u16| usize::from(end.saturating_sub(x));
    let (arrow, style) = if is_selected {
        ("→ ", theme.strong)
    } else {
        ("  ", theme.text)
    };
    let (start, _) = buf.set_stringn(row.x, row.y, arrow, room(row.x), theme.accent);
    let name = Rect {
        x: start,
        width: end.saturating_sub(start),
        ..row
    };
    let mut x = draw_name(name, buf, entry, style, style.patch(theme.accent));
    if !entry.hint.is_empty() && room(x) > 1 {
        (x, _) = buf.set_stringn(x + 1, row.y, &entry.hint, room(x + 1), theme.dim);
    }
    let about = start
        .saturating_add(u16::try_from(names + 2).unwrap_or(u16::MAX))
        .max(x.saturating_add(2));
    if about < end && !entry.about.is_empty() {
        let text = truncate(&entry.about, room(about));
        buf.set_stringn(about, row.y, text, room(about), theme.dim);
    }
}

/// Draws a name with the matching characters marked; a name without a description is cut at its
/// start.
fn draw_name(area: Rect, buf: &mut Buffer, entry: &Entry, style: Style, marked: Style) -> u16 {
    let room = usize::from(area.width);
    let cut = if entry.about.is_empty() {
        cut_at_start(&entry.name, room)
    } else {
        0
    };
    let mut x = area.x;
    if cut > 0 {
        (x, _) = buf.set_stringn(x, area.y, "…", room, style);
    }
    for (index, grapheme) in entry.name.graphemes(true).enumerate().skip(cut) {
        let is_marked =
            u32::try_from(index).is_ok_and(|index| entry.marks.binary_search(&index).is_ok());
        let style = if is_marked { marked } else { style };
        let left = usize::from(area.right().saturating_sub(x));
        (x, _) = buf.set_stringn(x, area.y, grapheme, left, style);
    }
    x
}

/// Graphemes to remove at the start so that the rest fits behind `…`; zero if all of it fits.
fn cut_at_start(text: &str, columns: usize) -> usize {
    let mut over = width(text).saturating_sub(columns);
    if over == 0 {
        return 0;
    }
    over += 1;
    let gone = text.graphemes(true).take_while(|grapheme| {
        let goes = over > 0;
        over = over.saturating_sub(grapheme_width(grapheme));
        goes
    });
    gone.count()
}
