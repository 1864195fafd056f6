//! The frame of overlays: the lower part of the screen, with a rule and title above and a line of
//! keys below. There are no borders at the sides, so that copied text is clean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use crate::Theme;
use crate::text::{truncate, width};
use crate::theme::on_rule;

/// Screen height from which the line of keys is shown.
const MIN_HEIGHT_FOR_HINTS: u16 = 6;

/// The decoration around the content of an overlay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel<'a> {
    /// At the left of the rule.
    pub title: &'a str,
    /// At the right of the rule: counts, time left.
    pub note: &'a str,
    /// Keys and their effects, the most important first.
    pub hints: &'a [(&'a str, &'a str)],
    /// The part of the screen it may take.
    pub size: PanelSize,
}

/// The part of the screen that a panel may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanelSize {
    /// Part of the conversation stays visible where possible.
    Part,
    /// As much as it needs.
    All,
}

impl Panel<'_> {
    /// Clears the lower part of the screen and draws the frame around `rows` rows of content, or as
    /// many as fit. Returns the area of the content.
    pub fn draw(&self, screen: Rect, buf: &mut Buffer, theme: &Theme, rows: usize) -> Rect {
        let screen = screen.intersection(buf.area);
        if screen.is_empty() {
            return Rect::ZERO;
        }
        let around = around(screen);
        let hinted = around > 1;
        let wanted = u16::try_from(rows).unwrap_or(u16::MAX).max(1);
        let height = wanted
            .saturating_add(around)
            .min(self.size.most(screen.height));
        let area = Rect {
            y: screen.bottom() - height,
            height,
            ..screen
        };
        Clear.render(area, buf);
        self.rule(area, buf, theme);
        if hinted {
            let hints = self.hints_line(area.width, theme);
            buf.set_line(area.x, area.bottom() - 1, &hints, area.width);
        }
        Rect {
            y: area.y + 1,
            height: height.saturating_sub(around),
            ..area
        }
    }

    fn rule(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let columns = usize::from(area.width);
        buf.set_stringn(area.x, area.y, "─".repeat(columns), columns, theme.border);
        let Some(room) = columns.checked_sub(6).filter(|&room| room > 0) else {
            return;
        };
        let beside_title = room.saturating_sub(width(self.title) + 3);
        let note = truncate(self.note, beside_title.max(room / 3));
        let taken = if note.is_empty() { 0 } else { width(&note) + 3 };
        let title = truncate(self.title, room.saturating_sub(taken));
        if !title.is_empty() {
            buf.set_stringn(
                area.x + 2,
                area.y,
                format!(" {title} "),
                columns,
                on_rule(theme.heading),
            );
        }
        if !note.is_empty() {
            let x = area.right() - 2 - width(&note) as u16 - 2;
            buf.set_stringn(x, area.y, format!(" {note} "), columns, theme.dim);
        }
    }

    fn hints_line(&self, columns: u16, theme: &Theme) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut taken = 0;
        for (keys, does) in self.hints {
            let gap = if spans.is_empty() { "" } else { " · " };
            let wider = taken + width(gap) + width(keys) + 1 + width(does);
            if wider > usize::from(columns) {
                break;
            }
            taken = wider;
            spans.push(Span::styled(gap, theme.dim));
            spans.push(Span::styled((*keys).to_owned(), theme.text));
            spans.push(Span::styled(format!(" {does}"), theme.dim));
        }
        Line::from(spans)
    }
}

/// Rows of the frame.
fn around(screen: Rect) -> u16 {
    1 + u16::from(screen.height >= MIN_HEIGHT_FOR_HINTS)
}

impl PanelSize {
    /// Rows of content that fit.
    pub fn room(self, screen: Rect) -> usize {
        usize::from(self.most(screen.height).saturating_sub(around(screen)))
    }

    fn most(self, screen: u16) -> u16 {
        match self {
            Self::Part => screen.min(12).max(screen - screen / 4),
            Self::All => screen,
        }
    }
}

/// Builds a line with text at its left and pieces at its right. Drops pieces, the last first, until
/// `keep` columns remain for the left side.
pub(crate) fn two_sides(
    left: Vec<Span<'static>>,
    right: &[(String, Style)],
    keep: usize,
    columns: u16,
) -> Line<'static> {
    let columns = usize::from(columns);
    let mut pieces = right.len();
    let taken = |pieces: usize| -> usize {
        let widths = right[..pieces].iter().map(|(text, _)| width(text) + 2);
        widths.sum()
    };
    while pieces > 0 && taken(pieces) + keep > columns {
        pieces -= 1;
    }
    let room = columns.saturating_sub(taken(pieces));
    let mut line = clipped(left, room);
    let used: usize = line.iter().map(|span| width(&span.content)).sum();
    if pieces > 0 {
        line.push(Span::raw(" ".repeat(room.saturating_sub(used))));
    }
    for (text, style) in &right[..pieces] {
        line.push(Span::raw("  "));
        line.push(Span::styled(text.clone(), *style));
    }
    Line::from(line)
}

/// Cuts spans to `room` columns, with `…` where text was cut.
pub(crate) fn clipped(spans: Vec<Span<'static>>, room: usize) -> Vec<Span<'static>> {
    let wanted: usize = spans.iter().map(|span| width(&span.content)).sum();
    if wanted <= room {
        return spans;
    }
    let mut left = room;
    let mut kept = Vec::with_capacity(spans.len());
    for span in spans {
        let columns = width(&span.content);
        // The last visible span ends with the ellipsis even if it would just fit itself.
        if columns < left {
            left -= columns;
            kept.push(span);
            continue;
        }
        let mut text = span.content.into_owned();
        text.push('…');
        kept.push(Span::styled(truncate(&text, left), span.style));
        break;
    }
    kept
}

/// Columns before the text of a list row.
const ROW_MARK: u16 = 2;

/// Draws a row of a list. The selected one is marked and has one background regardless of the
/// colours of its text.
pub(crate) fn draw_row(
    row: Rect,
    line: &Line<'_>,
    is_selected: bool,
    buf: &mut Buffer,
    theme: &Theme,
) {
    let mark = if is_selected { "❯ " } else { "  " };
    buf.set_span(row.x, row.y, &Span::styled(mark, theme.accent), row.width);
    let text = row_text(row);
    buf.set_line(text.x, text.y, line, text.width);
    if is_selected {
        buf.set_style(row, Style::reset().patch(theme.selected));
    }
}

/// The area of a row's text.
pub(crate) fn row_text(row: Rect) -> Rect {
    Rect {
        x: row.x + row.width.min(ROW_MARK),
        width: row.width.saturating_sub(ROW_MARK),
        ..row
    }
}
