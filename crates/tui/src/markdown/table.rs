//! Fits tables to a width: columns separated by spaces, without borders that would be copied along.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use crate::Theme;
use crate::text;

/// Cells between two columns.
const GAP: usize = 2;
/// The narrowest column, in cells; a table that does not fit is shown as records.
const MIN_COLUMN: usize = 6;

type Cell = Vec<Span<'static>>;

/// A table that is being collected; its first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub fn lines(self, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        let natural = self.natural_widths();
        match fitted(&natural, room) {
            Some(widths) => self.columns(&widths, theme),
            None => self.records(theme),
        }
    }

    fn natural_widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell_width(cell));
            }
        }
        widths
    }

    fn columns(self, widths: &[usize], theme: &Theme) -> Vec<Line<'static>> {
        let rows: Vec<Vec<Line<'static>>> = self
            .rows
            .into_iter()
            .map(|row| columns_of(row, widths, &self.alignments))
            .collect();
        // Rows of several lines need space between them to be told apart.
        let is_spaced = rows.iter().skip(1).any(|row| row.len() > 1);
        let mut lines = Vec::new();
        for (index, row) in rows.into_iter().enumerate() {
            if index > 1 && is_spaced {
                lines.push(Line::default());
            }
            lines.extend(row);
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
                lines.push(Line::styled(rules.join(&" ".repeat(GAP)), theme.border));
            }
        }
        lines
    }

    /// Lays out each row as lines of `head: cell`, with a blank line between rows.
    fn records(self, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows = self.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        if rows.len() == 0 {
            return head.into_iter().map(Line::from).collect();
        }
        let mut lines = Vec::new();
        for (index, row) in rows.enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut spans = name.clone();
                if !spans.is_empty() {
                    spans.push(Span::styled(": ", theme.dim));
                }
                spans.extend(cell);
                lines.push(Line::from(spans));
            }
        }
        lines
    }
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(|span| text::width(&span.content)).sum()
}

/// Returns column widths that fit into `room`; wide columns shrink first.
fn fitted(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let columns = natural.len();
    let available = room.checked_sub(GAP * columns.saturating_sub(1))?;
    let needed: usize = natural.iter().map(|&width| width.min(MIN_COLUMN)).sum();
    if needed > available {
        return None;
    }
    let total = |cap: usize| natural.iter().map(|&width| width.min(cap)).sum::<usize>();
    let (mut low, mut high) = (
        MIN_COLUMN,
        natural.iter().copied().max().unwrap_or(1).max(MIN_COLUMN),
    );
    while low < high {
        let middle = (low + high).div_ceil(2);
        if total(middle) <= available {
            low = middle
        } else {
            high = middle - 1
        }
    }
    let mut spare = available - total(low);
    let widths = natural.iter().map(|&width| {
        let more = usize::from(width > low && spare > 0);
        spare -= more;
        width.min(low + more)
    });
    Some(widths.collect())
}

fn columns_of(row: Vec<Cell>, widths: &[usize], alignments: &[Alignment]) -> Vec<Line<'static>> {
    let mut row = row.into_iter();
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .map(|&width| {
            let cell = row.next().unwrap_or_default();
            text::wrap(Line::from(cell), u16::try_from(width).unwrap_or(u16::MAX))
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    let mut lines = Vec::with_capacity(height);
    for at in 0..height {
        let mut spans = Vec::new();
        let mut column = 0;
        let mut used = 0;
        for ((cell, &width), alignment) in cells.iter().zip(widths).zip(alignments) {
            if let Some(line) = cell.get(at).filter(|line| !line.spans.is_empty()) {
                let cells = cell_width(&line.spans);
                let before = match alignment {
                    Alignment::Right => width.saturating_sub(cells),
                    Alignment::Center => width.saturating_sub(cells) / 2,
                    Alignment::Left | Alignment::None => 0,
                };
                // Padding precedes a text and never follows the last one.
                spans.push(Span::raw(
                    " ".repeat((column + before).saturating_sub(used)),
                ));
                spans.extend(line.spans.iter().cloned());
                used = column + before + cells;
            }
            column += width + GAP;
        }
        lines.push(Line::from(spans));
    }
    lines
}
