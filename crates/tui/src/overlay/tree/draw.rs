//! Drawing of the session tree.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::entry::{Summary, Tone};
use super::{TreeView, Typing, rows};
use crate::Theme;
use crate::overlay::input;
use crate::overlay::panel::{Panel, PanelSize, clipped, draw_row, row_text};
use crate::text::{one_line, truncate, width};

/// Columns reserved for the text of a row, even on a deep branch.
const MIN_TEXT_WIDTH: usize = 24;

impl TreeView {
    pub(super) fn paint(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<Position> {
        let note = match self.rows.len() {
            all if all == self.nodes.len() => format!("{} · {all}", self.mode.word()),
            some => format!("{} · {some} of {}", self.mode.word(), self.nodes.len()),
        };
        let hints: &[(&str, &str)] = match self.typing {
            Typing::Label(..) => &[("Enter", "set name"), ("Esc", "cancel")],
            Typing::Search => &[("↑↓", "move"), ("Enter", "done"), ("Esc", "show all again")],
            Typing::Nowhere => &[
                ("Enter", "go"),
                ("Esc", "close"),
                ("s", "summarise"),
                ("f", "fork"),
                ("l", "name"),
                ("/", "search"),
                ("Tab", "filter"),
            ],
        };
        let panel = Panel {
            title: "Tree",
            note: &note,
            hints,
            size: PanelSize::Part,
        };
        let top = u16::from(self.has_top());
        let content = panel.draw(area, buf, theme, self.tallest.max(1) + usize::from(top));
        let top = top.min(content.height.saturating_sub(1));
        let cursor = match top {
            0 => None,
            _ => self.draw_top(
                Rect {
                    height: 1,
                    ..content
                },
                buf,
                theme,
            ),
        };
        let list = Rect {
            y: content.y + top,
            height: content.height - top,
            ..content
        };
        if list.is_empty() {
            return cursor;
        }
        if self.rows.is_empty() {
            let words = match (self.nodes.is_empty(), self.search.text()) {
                (true, _) => "no messages yet",
                (_, "") => "no entries; Tab changes the filter",
                _ => "nothing matches",
            };
            let words = truncate(words, list.width.into());
            buf.set_stringn(list.x, list.y, words, list.width.into(), theme.dim);
            return cursor;
        }
        let rows = self.cursor.show(self.rows.len(), list.height.into());
        for (place, row) in list.rows().zip(rows) {
            let is_selected = row == self.cursor.selected();
            let line = self.line(row, row_text(place).width.into(), theme);
            draw_row(place, &line, is_selected, buf, theme);
        }
        cursor
    }

    fn line(&mut self, row: usize, columns: usize, theme: &Theme) -> Line<'static> {
        #[cfg(test)]
        {
            self.laid_out += 1;
        }
        let at = self.rows[row].node;
        let levels = columns.saturating_sub(MIN_TEXT_WIDTH) / 3;
        let rules = rows::rules(&self.rows, row, levels.max(1));
        let mark = if self.path.contains(&at) {
            Span::styled("• ", theme.accent)
        } else {
            Span::raw("  ")
        };
        let Summary {
            author,
            excerpt,
            tone,
            ..
        } = self.summary(at);
        let (author_style, text_style) = match tone {
            Tone::User => (theme.user, theme.text),
            Tone::Model => (theme.success, theme.text),
            Tone::Quiet => (theme.dim, theme.dim),
            Tone::Failed => (theme.error, theme.dim),
        };
        let mut spans = vec![Span::styled(rules, theme.border), mark];
        if let Some(label) = &self.nodes[at].label {
            spans.push(Span::styled(
                format!("[{}] ", one_line(label)),
                theme.warning,
            ));
        }
        spans.push(Span::styled(author, author_style));
        spans.push(Span::styled(format!("  {excerpt}"), text_style));
        if self.current == Some(at) {
            let here = "  ◂ here";
            let mut spans = clipped(spans, columns.saturating_sub(width(here)));
            spans.push(Span::styled(here, theme.accent));
            return Line::from(spans);
        }
        Line::from(clipped(spans, columns))
    }

    fn draw_top(&self, line: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let dress = |prompt, placeholder| input::Line {
            prompt,
            placeholder,
            theme,
        };
        match &self.typing {
            Typing::Label(_, name) => name.draw(
                line,
                buf,
                &dress("name: ", "leave empty to remove the name"),
            ),
            Typing::Search => self.search.draw(line, buf, &dress("/ ", "type to search")),
            Typing::Nowhere => {
                self.search.draw(line, buf, &dress("/ ", ""));
                None
            }
        }
    }

    fn has_top(&self) -> bool {
        !matches!(self.typing, Typing::Nowhere) || !self.search.text().is_empty()
    }
}
