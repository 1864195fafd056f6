//! Drawing of the editor.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::layout::{Row, columns, unit_width};
use super::{Editor, unit};
use crate::text::truncate;
use crate::theme::Theme;

impl Editor {
    /// Rows that the whole text takes at a width.
    pub(crate) fn height(&self, width: u16) -> u16 {
        self.width.set(width);
        u16::try_from(self.layout().rows().len()).unwrap_or(u16::MAX)
    }

    /// Rows hidden above and below when the area has less room than [`Editor::height`].
    pub(crate) fn hidden(&self, area: Rect) -> (usize, usize) {
        self.width.set(area.width);
        let rows = self.layout().rows().len();
        let top = self.first_row(area);
        (top, rows.saturating_sub(top + usize::from(area.height)))
    }

    /// Draws the rows around the cursor. Returns the cursor's position if the editor has the focus.
    pub(crate) fn draw(
        &self,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        focused: bool,
    ) -> Option<Position> {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return None;
        }
        self.width.set(area.width);
        let top = self.first_row(area);
        let layout = self.layout();
        for (y, row) in (area.top()..area.bottom()).zip(layout.rows().iter().skip(top)) {
            self.draw_row(
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                buf,
                theme,
                *row,
            );
        }
        drop(layout);
        let (row, column) = self.row_and_column();
        focused.then(|| Position {
            x: area.x
                + u16::try_from(column)
                    .unwrap_or(u16::MAX)
                    .min(area.width - 1),
            y: area.y
                + u16::try_from(row - top)
                    .unwrap_or(u16::MAX)
                    .min(area.height - 1),
        })
    }

    /// The first row to draw: the last one, unless the cursor would be hidden or rows would stay
    /// empty.
    fn first_row(&self, area: Rect) -> usize {
        let (cursor, _) = self.row_and_column();
        let height = usize::from(area.height).max(1);
        let last = self.layout().rows().len().saturating_sub(height);
        let top = self
            .top
            .get()
            .clamp((cursor + 1).saturating_sub(height), cursor)
            .min(last);
        self.top.set(top);
        top
    }

    fn draw_row(&self, area: Rect, buf: &mut Buffer, theme: &Theme, row: Row) {
        let columns = columns(area.width);
        let mut x = area.x;
        for (_, unit) in unit::units(&self.buffer.text()[row.start..row.end]) {
            let room = area.right().saturating_sub(x);
            let width = unit_width(unit, &self.pastes, columns);
            let Some(width) = u16::try_from(width).ok().filter(|width| *width <= room) else {
                break;
            };
            match (unit::unit_marker(unit), unit) {
                (Some(number), _) => {
                    let label = truncate(self.pastes.label(number), columns);
                    buf.set_stringn(x, area.y, label, usize::from(width), theme.accent);
                }
                (None, "\t") => {}
                (None, _) => {
                    let (end, _) = buf.set_stringn(x, area.y, unit, usize::from(room), theme.text);
                    if end == x {
                        buf.set_stringn(x, area.y, "\u{fffd}", 1, theme.dim);
                    }
                }
            }
            x += width;
        }
    }
}
