//! A list to choose from, filtered by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;

use super::input::{self, Input, InputEffect};
use super::list::Cursor;
use super::panel::{Panel, PanelSize, draw_row, row_text};
use super::search::{Matching, Search};
use crate::Theme;
use crate::text::{width, wrap};

/// An item of a picker.
pub(crate) trait Item {
    /// The text that the filter is compared with.
    fn words(&self) -> String;

    /// The row in this many columns. Called only for visible items.
    fn line(&self, columns: u16, theme: &Theme) -> Line<'static>;
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Nothing was chosen.
    Stay,
    /// The user cancelled.
    Close,
    /// [`Picker::selected`] was chosen.
    Chosen,
    /// The picker does not handle this key.
    Ignored,
}

/// The decoration of a picker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PickerFrame<'a> {
    pub title: &'a str,
    /// Text beside the count.
    pub note: &'a str,
    /// Text shown when there are no items.
    pub empty: &'a str,
    /// Keys besides those of every picker.
    pub hints: &'a [(&'a str, &'a str)],
}

/// A list to choose from, filtered by typing.
#[derive(Debug)]
pub(crate) struct Picker<T> {
    items: Vec<T>,
    matching: Matching,
    /// The texts that the filter is compared with, created when the user first types.
    haystacks: Vec<String>,
    /// The current search.
    search: Option<Search>,
    /// The matching items in display order; `None` means all of them.
    shown: Option<Vec<usize>>,
    filter: Input,
    /// Decides when the filter is visible.
    prompt: Prompt,
    selection: Selection,
    cursor: Cursor,
}

/// The visibility of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Always.
    Shown,
    /// Only after the user typed something: for short lists.
    Typed,
}

/// The initial selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The first item.
    First,
    /// None until the user moves.
    Nothing,
}

impl<T: Item> Picker<T> {
    pub fn new(items: Vec<T>, matching: Matching) -> Self {
        Self {
            items,
            matching,
            haystacks: Vec::new(),
            search: None,
            shown: None,
            filter: Input::default(),
            prompt: Prompt::Shown,
            selection: Selection::First,
            cursor: Cursor::default(),
        }
    }

    /// Sets the visibility of the filter.
    pub fn with_prompt(self, prompt: Prompt) -> Self {
        Self { prompt, ..self }
    }

    /// Sets the initial selection.
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Reports whether Enter would choose nothing because the user has not moved yet.
    pub fn has_no_selection(&self) -> bool {
        self.selection == Selection::Nothing
    }

    /// Replaces the items; the filter stays.
    pub fn set_items(&mut self, items: Vec<T>) {
        self.items = items;
        self.haystacks.clear();
        self.narrow();
    }

    /// Selects the item at this index of the whole list.
    pub fn select(&mut self, item: usize) {
        let row = match &self.shown {
            None => Some(item),
            Some(shown) => shown.iter().position(|&at| at == item),
        };
        if let Some(row) = row {
            self.cursor.select(row);
        }
    }

    /// The item that Enter chooses.
    pub fn selected(&self) -> Option<&T> {
        match self.selection {
            Selection::First => self.item(self.cursor.selected()),
            Selection::Nothing => None,
        }
    }

    /// Number of matching items.
    pub fn len(&self) -> usize {
        self.shown.as_ref().map_or(self.items.len(), Vec::len)
    }

    /// Rows it takes if there is room.
    pub fn rows(&self) -> usize {
        self.items.len().max(1) + usize::from(self.shows_filter())
    }

    fn shows_filter(&self) -> bool {
        self.prompt == Prompt::Shown || !self.filter.text().is_empty()
    }

    /// Handles a key: moves, filters or chooses.
    pub fn key(&mut self, key: KeyEvent) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => match self.selected() {
                Some(_) => return Picked::Chosen,
                None => return Picked::Stay,
            },
            KeyCode::Esc => return Picked::Close,
            KeyCode::Char('c') if control => return Picked::Close,
            _ => {}
        }
        let is_down = key.code == KeyCode::Down || (control && key.code == KeyCode::Char('n'));
        if is_down && self.has_no_selection() {
            self.selection = Selection::First;
            self.cursor.reset();
            return Picked::Stay;
        }
        if self.cursor.key(key, self.len()) {
            self.selection = Selection::First;
            return Picked::Stay;
        }
        match self.filter.key(key) {
            InputEffect::Changed => {
                self.narrow();
                Picked::Stay
            }
            InputEffect::Moved => Picked::Stay,
            InputEffect::Ignored => Picked::Ignored,
        }
    }

    /// Moves with the wheel, without wrapping around.
    pub fn wheel(&mut self, rows: isize) {
        self.cursor.scroll_by(rows, self.len());
    }

    /// Adds pasted text to the filter.
    pub fn paste(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.filter.paste(text);
        self.narrow();
    }

    /// Draws filter and list over the lower part of the screen.
    pub fn draw(
        &mut self,
        screen: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        outfit: &PickerFrame<'_>,
    ) -> Option<Position> {
        let note = self.note(outfit.note);
        let mut hints = vec![("↑↓", "move"), ("Enter", "choose"), ("Esc", "close")];
        hints.extend_from_slice(outfit.hints);
        let panel = Panel {
            title: outfit.title,
            note: &note,
            hints: &hints,
            size: PanelSize::Part,
        };
        // The panel does not shrink while the list does.
        let mut rows = self.rows();
        if self.items.is_empty() {
            rows += wrap(Line::raw(outfit.empty), screen.width).len() - 1;
        }
        let content = panel.draw(screen, buf, theme, rows);
        self.draw_inside(content, buf, theme, outfit.empty)
    }

    /// Draws filter and list into `area`.
    pub fn draw_inside(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        empty: &str,
    ) -> Option<Position> {
        let mut list = area;
        let mut position = None;
        if area.height > 1 && self.shows_filter() {
            list.y += 1;
            list.height -= 1;
            let look = input::Line {
                prompt: "> ",
                placeholder: "type to search",
                theme,
            };
            let line = Rect { height: 1, ..area };
            position = self.filter.draw(line, buf, &look);
        }
        if list.is_empty() {
            return position;
        }
        let length = self.len();
        if length == 0 {
            let words = if self.items.is_empty() {
                empty
            } else {
                "nothing matches"
            };
            let words = wrap(Line::styled(words, theme.dim), list.width);
            for (row, line) in list.rows().zip(&words) {
                buf.set_line(row.x, row.y, line, row.width);
            }
            return position;
        }
        let rows = self.cursor.show(length, list.height.into());
        for (place, row) in list.rows().zip(rows) {
            let Some(item) = self.item(row) else { break };
            let text = row_text(place);
            let line = item.line(text.width, theme);
            let is_selected = row == self.cursor.selected() && !self.has_no_selection();
            draw_row(place, &line, is_selected, buf, theme);
            if let Some(search) = &mut self.search {
                underline(&line, search, text, buf);
            }
        }
        position
    }

    fn note(&self, note: &str) -> String {
        let count = match (self.len(), self.items.len()) {
            (_, 0) => String::new(),
            (all, total) if all == total => total.to_string(),
            (some, total) => format!("{some} of {total}"),
        };
        match (note, count.as_str()) {
            ("", _) => count,
            (_, "") => note.to_owned(),
            _ => format!("{note} · {count}"),
        }
    }

    fn item(&self, row: usize) -> Option<&T> {
        let at = match &self.shown {
            None => row,
            Some(shown) => *shown.get(row)?,
        };
        self.items.get(at)
    }

    fn narrow(&mut self) {
        self.cursor.reset();
        self.search = Search::new(self.filter.text(), self.matching);
        let Some(search) = &mut self.search else {
            self.shown = None;
            return;
        };
        if self.haystacks.is_empty() {
            self.haystacks = self.items.iter().map(Item::words).collect();
        }
        self.shown = Some(search.find(&self.haystacks));
    }
}

/// Underlines the matching characters of a line that was drawn.
fn underline(line: &Line<'_>, search: &mut Search, area: Rect, buf: &mut Buffer) {
    let text: String = line.iter().map(|span| span.content.as_ref()).collect();
    let marks = search.marks(&text);
    let mut x = usize::from(area.x);
    for (at, grapheme) in text.graphemes(true).enumerate() {
        let columns = width(grapheme);
        if x + columns > usize::from(area.right()) {
            break;
        }
        if marks.contains(&at) {
            let cell = Rect {
                x: x as u16,
                width: columns as u16,
                ..area
            };
            buf.set_style(cell, Modifier::UNDERLINED);
        }
        x += columns;
    }
}
