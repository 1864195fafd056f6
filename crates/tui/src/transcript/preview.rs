//! Folded and unfolded display of long text.
//!
//! Folded text is cut at the edge instead of wrapped, so that the work depends only on the size of
//! the screen.

use pinion_text::amount;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::text::{sanitise, truncate, wrap};
use crate::theme::Theme;

/// Lines after which even unfolded text is cut.
const MAX_LINES: usize = 2_000;
/// The key that unfolds.
const KEY: &str = "Ctrl-O";

/// The end of a text to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// Returns at most `rows` lines of a text, each in a single row, and the number of omitted lines.
pub(super) fn folded(
    text: &str,
    end: End,
    rows: usize,
    width: u16,
    style: Style,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let text = text.trim_end();
    if text.trim_start().is_empty() {
        return Vec::new();
    }
    let total = text.lines().count();
    // A single omitted line is shown, because a notice would take as much room.
    let shown = if total == rows + 1 {
        total
    } else {
        rows.min(total)
    };
    let row = |line: &str| row(line, width, style);
    let rest = (total > shown).then(|| more(total - shown, width, theme));
    match end {
        End::First => {
            let head = text.lines().take(shown).map(row);
            head.chain(rest).collect()
        }
        End::Last => {
            let mut tail: Vec<_> = text.lines().rev().take(shown).map(row).collect();
            tail.reverse();
            rest.into_iter().chain(tail).collect()
        }
    }
}

/// Returns at most `rows` of the lines, and the number of omitted ones.
pub(super) fn first_rows(
    mut lines: Vec<Line<'static>>,
    rows: usize,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    if lines.len() > rows + 1 {
        let left_out = lines.len() - rows;
        lines.truncate(rows);
        lines.push(more(left_out, width, theme));
    }
    lines
}

/// Wraps a text, up to a limit.
pub(super) fn wrapped(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let clean = sanitise(text);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut texts = clean.lines();
    for text in texts.by_ref() {
        if text.is_empty() {
            lines.push(Line::default());
        } else {
            lines.extend(wrap(Line::styled(text, style), width));
        }
        if lines.len() >= MAX_LINES {
            break;
        }
    }
    let rest = texts.count();
    if rest > 0 {
        let words = format!("… {} not shown", amount::count(rest, "more line"));
        lines.push(row(&words, width, style));
    }
    lines
}

/// One row, cut at the edge.
pub(super) fn row(text: &str, width: u16, style: Style) -> Line<'static> {
    // Enough for any row, so that a line of a megabyte takes no more work than one of a hundred
    // characters.
    let start = start_of(text, usize::from(width) * 16 + 64);
    let clean = sanitise(start);
    // If a program overwrote the line, such as a progress bar, only the last version is shown.
    let last = clean.trim_end().lines().next_back().unwrap_or("");
    Line::styled(truncate(last, usize::from(width)), style)
}

/// States how many lines are omitted, and how to show them.
pub(super) fn more(lines: usize, width: u16, theme: &Theme) -> Line<'static> {
    let words = format!("… {} ({KEY})", amount::count(lines, "more line"));
    row(&words, width, theme.dim)
}

/// At most `bytes` of the beginning.
pub(super) fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// At most `bytes` of the end.
pub(super) fn end_of(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// The styles of reasoning, which is less prominent.
pub(super) fn muted(theme: &Theme) -> Theme {
    let base = theme.thinking;
    let strong = base.add_modifier(Modifier::BOLD);
    Theme {
        text: base,
        heading: strong,
        strong,
        emphasis: base,
        code: base,
        quote: base,
        ..*theme
    }
}

pub(super) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// The number of bytes that a base64 text encodes.
pub(super) fn decoded_size(base64: &str) -> u64 {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    (base64.len() / 4 * 3).saturating_sub(padding) as u64
}
