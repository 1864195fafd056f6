//! Fenced code, laid out line by line as it arrives.

use ratatui::text::{Line, Span};

use super::LayoutContext;
use super::marks::{self, Fence};
use super::scanner::{Piece, line_end};
use crate::highlight::{Code, Keep};
use crate::text;

/// A piece of fenced code and its position among the rows.
#[derive(Debug)]
pub(super) struct Fenced {
    fence: Fence,
    code: Code,
    /// The start of each whole line, in the text and among the rows.
    lines: Vec<(usize, usize)>,
    /// The end of the laid-out lines, in the text and among the rows.
    next: (usize, usize),
    is_open: bool,
    coloured: usize,
}

impl Fenced {
    /// Starts with the line that opens the fence.
    pub fn begin(
        piece: &Piece,
        fence: Fence,
        rows: &mut Vec<Line<'static>>,
        context: &LayoutContext<'_>,
    ) -> Self {
        let source = context.source;
        let next = line_end(source, piece.start).unwrap_or(source.len());
        let language = fence.language(source[piece.start..next].trim_end());
        if !language.is_empty() {
            let language = text::truncate(language, usize::from(context.width));
            rows.push(Line::from(Span::styled(language, context.theme.dim)));
        }
        Self {
            fence,
            code: Code::new(context.highlighter, language, Keep::Nothing),
            lines: Vec::new(),
            next: (next, rows.len()),
            is_open: true,
            coloured: 0,
        }
    }

    /// Lays out the new lines up to `end`. Returns the number of bytes laid out.
    pub fn grow(
        &mut self,
        end: usize,
        rows: &mut Vec<Line<'static>>,
        context: &LayoutContext<'_>,
    ) -> usize {
        let source = context.source;
        let from = self.next.0;
        let first = self.lines.len();
        let mut new = String::new();
        rows.truncate(self.next.1);
        while let Some(next) = line_end(source, self.next.0).filter(|&next| next <= end) {
            let line = source[self.next.0..next].trim_end_matches('\n');
            self.is_open = self.is_open && !self.fence.is_closed_by(line);
            if self.is_open {
                self.lines.push((self.next.0, 0));
                new.push_str(self.unindented(line));
                new.push('\n');
            }
            self.next.0 = next;
        }
        self.code.push(&new);
        for (index, line) in (first..).zip(new.lines()) {
            self.lines[index].1 = rows.len();
            rows.extend(self.rows_of(index, line, context));
        }
        self.next.1 = rows.len();
        let partial = &source[self.next.0..end];
        if self.is_open && !partial.is_empty() && !self.fence.may_be_closed_by(partial) {
            let partial = self.unindented(partial);
            self.code.push_partial(partial);
            rows.extend(self.rows_of(self.lines.len(), partial, context));
        }
        end - from
    }

    /// Applies the colours that have arrived to their lines.
    pub fn colour(&mut self, rows: &mut [Line<'static>], context: &LayoutContext<'_>) {
        let ready = self.code.ready().min(self.lines.len());
        for index in self.coloured..ready {
            let (start, row) = self.lines[index];
            self.recolour(index, start, row, rows, context);
        }
        self.coloured = ready;
        if self.is_open && rows.len() > self.next.1 {
            self.recolour(self.lines.len(), self.next.0, self.next.1, rows, context);
        }
    }

    /// Reports whether more colours will arrive.
    pub fn is_waiting(&self) -> bool {
        !self.code.is_settled() || self.coloured < self.code.ready().min(self.lines.len())
    }

    fn recolour(
        &self,
        index: usize,
        start: usize,
        row: usize,
        rows: &mut [Line<'static>],
        context: &LayoutContext<'_>,
    ) {
        let end = line_end(context.source, start).unwrap_or(context.source.len());
        let line = self.unindented(context.source[start..end].trim_end_matches('\n'));
        for (old, new) in rows[row..]
            .iter_mut()
            .zip(self.rows_of(index, line, context))
        {
            *old = new;
        }
    }

    fn rows_of(&self, index: usize, line: &str, context: &LayoutContext<'_>) -> Vec<Line<'static>> {
        let line = self.code.line(index, line, context.theme);
        text::fold(line, context.width, &[], &[])
    }

    fn unindented<'a>(&self, line: &'a str) -> &'a str {
        &line[marks::indent(line).min(self.fence.indent)..]
    }
}
