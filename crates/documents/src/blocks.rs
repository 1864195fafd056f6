//! Paragraphs, headings, list items and table rows, as HTML and DOCX share them.

use crate::output::Output;

/// The space between the written text and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    None,
    Line,
    Paragraph,
}

/// A writer of blocks. It stores gaps and writes them before the next text, so that empty blocks
/// leave no trace.
#[derive(Debug)]
pub(crate) struct Blocks<'o> {
    output: &'o mut Output,
    gap: Gap,
    /// The prefix of the next block, such as `- `; written with its first text.
    opening: String,
    /// The current table cell has no text yet; its first block starts on the cell's line.
    fresh_cell: bool,
    /// The current table row has no text yet.
    fresh_row: bool,
}

impl<'o> Blocks<'o> {
    pub(crate) fn new(output: &'o mut Output) -> Self {
        Self {
            output,
            gap: Gap::None,
            opening: String::new(),
            fresh_cell: false,
            fresh_row: false,
        }
    }

    /// Requests a gap before the next text.
    pub(crate) fn gap(&mut self, gap: Gap) {
        if self.opening.is_empty() && !self.fresh_cell {
            self.gap = self.gap.max(gap);
        }
    }

    /// Sets a prefix for the next text, on its line.
    pub(crate) fn open(&mut self, opening: &str) {
        self.opening.push_str(opening);
    }

    /// Drops a prefix that got no text.
    pub(crate) fn close(&mut self) {
        self.opening.clear();
    }

    /// Reports whether text written now would be the first of its line.
    pub(crate) fn at_line_start(&self) -> bool {
        self.gap != Gap::None
            || !self.opening.is_empty()
            || self.fresh_cell
            || self.output.is_empty()
            || self.output.ends_with("\n")
    }

    pub(crate) fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.flush();
        let opening = std::mem::take(&mut self.opening);
        self.output.push(&opening);
        self.output.push(text);
        self.fresh_cell = false;
    }

    /// Starts a table row.
    pub(crate) fn row(&mut self) {
        self.close();
        self.fresh_cell = false;
        self.gap(Gap::Line);
        self.fresh_row = true;
    }

    /// Starts a cell: writes a tab unless it is the first of its row.
    pub(crate) fn cell(&mut self, first: bool) {
        self.close();
        if !first {
            if !self.fresh_row {
                self.gap = Gap::None;
            }
            self.flush();
            self.output.push("\t");
        }
        self.fresh_cell = true;
    }

    pub(crate) fn end_row(&mut self) {
        self.close();
        self.fresh_cell = false;
        self.fresh_row = false;
        self.gap = Gap::Line;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Ends the text with one line feed.
    pub(crate) fn finish(self) {
        self.output.trim_end();
        if !self.output.is_empty() {
            self.output.push("\n");
        }
    }

    fn flush(&mut self) {
        self.fresh_row = false;
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if self.output.is_empty() || gap == Gap::None {
            return;
        }
        if !self.output.ends_with("\n") {
            self.output.push("\n");
        }
        if gap == Gap::Paragraph && !self.output.ends_with("\n\n") {
            self.output.push("\n");
        }
    }
}
