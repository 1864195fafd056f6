//! Breaks lines into rows: between words where possible, else between graphemes.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::grapheme_width;

/// Breaks a line between words into rows of at most `width` cells. Spaces at a break and at the end
/// are dropped; a word longer than a row is broken between graphemes.
pub(crate) fn wrap(line: Line<'_>, width: u16) -> Vec<Line<'static>> {
    wrap_hanging(line, width, &[], &[])
}

/// Like [`wrap`], with a prefix for the first row and one for the others.
pub(crate) fn wrap_hanging(
    line: Line<'_>,
    width: u16,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut rows = Rows::new(width, first, rest);
    if rows.take_whole(&line) {
        return rows.finish();
    }
    let mut word = Run::default();
    let mut gap = Run::default();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for (at, grapheme) in span.content.grapheme_indices(true) {
            let cells = grapheme_width(grapheme);
            if is_gap(grapheme) {
                rows.word(&mut gap, &mut word);
                gap.add(&span.content, at, grapheme, style, cells);
                continue;
            }
            // Scripts with wide characters have no spaces: a row may end after any of them.
            let stands_alone = cells > 1;
            if stands_alone {
                rows.word(&mut gap, &mut word);
            }
            word.add(&span.content, at, grapheme, style, cells);
            if stands_alone {
                rows.word(&mut gap, &mut word);
            }
        }
    }
    rows.word(&mut gap, &mut word);
    rows.finish()
}

/// Breaks a line wherever a row is full, into rows of at most `width` cells: for code, whose spaces
/// matter.
pub(crate) fn fold(
    line: Line<'_>,
    width: u16,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut rows = Rows::new(width, first, rest);
    if rows.take_whole(&line) {
        return rows.finish();
    }
    let mut gap = Run::default();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for (at, grapheme) in span.content.grapheme_indices(true) {
            let cells = grapheme_width(grapheme);
            if is_gap(grapheme) {
                gap.add(&span.content, at, grapheme, style, cells);
                continue;
            }
            // Spaces are written only when something follows, so that no row ends in spaces.
            rows.put(&gap);
            gap.clear();
            rows.put_one(grapheme, style, cells);
        }
    }
    rows.finish()
}

fn is_gap(grapheme: &str) -> bool {
    let unbreakable = matches!(grapheme, "\u{a0}" | "\u{2007}" | "\u{202f}");
    !unbreakable && grapheme.chars().all(char::is_whitespace)
}

/// Graphemes that stay together, in pieces of one style.
#[derive(Default)]
struct Run<'a> {
    pieces: Vec<Piece<'a>>,
    cells: usize,
}

struct Piece<'a> {
    source: &'a str,
    start: usize,
    end: usize,
    style: Style,
}

impl<'a> Run<'a> {
    fn add(&mut self, source: &'a str, at: usize, grapheme: &str, style: Style, cells: usize) {
        self.cells += cells;
        let end = at + grapheme.len();
        match self.pieces.last_mut() {
            Some(last) if std::ptr::eq(last.source, source) && last.end == at => last.end = end,
            _ => self.pieces.push(Piece {
                source,
                start: at,
                end,
                style,
            }),
        }
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.cells = 0;
    }
}

struct Rows<'p> {
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    /// Cells used in this row, and the most it can hold.
    used: usize,
    limit: usize,
    width: usize,
    rest: &'p [Span<'static>],
}

impl<'p> Rows<'p> {
    fn new(width: u16, first: &[Span<'static>], rest: &'p [Span<'static>]) -> Self {
        let width = usize::from(width.max(1));
        Self {
            done: Vec::new(),
            row: first.to_vec(),
            used: 0,
            limit: width.saturating_sub(prefix_width(first)).max(1),
            width,
            rest,
        }
    }

    /// Writes a line that fits into the first row, as most do. Returns false if it does not fit.
    fn take_whole(&mut self, line: &Line<'_>) -> bool {
        let mut cells = 0;
        for span in &line.spans {
            cells += super::width(&span.content);
            if cells > self.limit {
                return false;
            }
        }
        for span in line.spans.iter().filter(|span| !span.content.is_empty()) {
            self.append(&span.content, line.style.patch(span.style));
        }
        true
    }

    /// Writes a gap and the word after it, on the next row if the word does not fit.
    fn word(&mut self, gap: &mut Run<'_>, word: &mut Run<'_>) {
        if word.pieces.is_empty() {
            return;
        }
        if self.used + gap.cells + word.cells <= self.limit {
            self.put(gap);
        } else if self.used > 0 {
            self.next_row();
        } else if self.done.is_empty() && gap.cells < self.limit {
            // The indentation of a line stays, even if the word must then be broken.
            self.put(gap);
        }
        self.put(word);
        gap.clear();
        word.clear();
    }

    /// Writes a run as it is, on as many rows as it takes.
    fn put(&mut self, run: &Run<'_>) {
        if self.used + run.cells <= self.limit {
            for piece in &run.pieces {
                self.append(&piece.source[piece.start..piece.end], piece.style);
            }
            self.used += run.cells;
            return;
        }
        for piece in &run.pieces {
            for grapheme in piece.source[piece.start..piece.end].graphemes(true) {
                self.put_one(grapheme, piece.style, grapheme_width(grapheme));
            }
        }
    }

    fn put_one(&mut self, grapheme: &str, style: Style, cells: usize) {
        if self.used + cells > self.limit && self.used > 0 {
            self.next_row();
        }
        self.append(grapheme, style);
        self.used += cells;
    }

    fn append(&mut self, text: &str, style: Style) {
        match self.row.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn next_row(&mut self) {
        let row = std::mem::replace(&mut self.row, self.rest.to_vec());
        self.done.push(Line::from(without_trailing_space(row)));
        self.used = 0;
        self.limit = self.width.saturating_sub(prefix_width(self.rest)).max(1);
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        let row = std::mem::take(&mut self.row);
        self.done.push(Line::from(without_trailing_space(row)));
        self.done
    }
}

fn prefix_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| super::width(&span.content)).sum()
}

/// Removes the spaces at the end of a row, so that copied text has none.
fn without_trailing_space(mut row: Vec<Span<'static>>) -> Vec<Span<'static>> {
    while let Some(last) = row.last_mut() {
        let kept = last.content.trim_end().len();
        if kept == last.content.len() && kept > 0 {
            break;
        }
        if kept == 0 {
            row.pop();
            continue;
        }
        last.content.to_mut().truncate(kept);
        break;
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::width as text_width;
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    fn texts(rows: &[Line<'_>]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_end_between_words() {
        let rows = wrap(Line::from("the quick  brown fox jumps"), 10);
        assert_eq!(texts(&rows), ["the quick", "brown fox", "jumps"]);
        assert_eq!(texts(&wrap(Line::from(""), 10)), [""]);
        assert_eq!(texts(&wrap(Line::from("   "), 10)), [""]);
        assert_eq!(
            texts(&wrap(Line::from("  indented text"), 10)),
            ["  indented", "text"]
        );
    }

    #[test]
    fn a_long_word_is_broken() {
        let rows = wrap(Line::from("see https://example.org/path ok"), 10);
        assert_eq!(texts(&rows), ["see", "https://ex", "ample.org/", "path ok"]);
    }

    #[test]
    fn wide_characters_need_no_spaces() {
        let rows = wrap(Line::from("日本語のテキスト"), 7);
        assert_eq!(texts(&rows), ["日本語", "のテキ", "スト"]);
    }

    #[test]
    fn styles_stay_with_their_words() {
        let rows = wrap(Line::from(vec!["a ".into(), "bold word".bold()]), 6);
        assert_eq!(
            rows,
            [
                Line::from(vec!["a ".into(), "bold".bold()]),
                Line::from("word".bold())
            ]
        );
    }

    #[test]
    fn later_rows_hang() {
        let rows = wrap_hanging(
            Line::from("one two three"),
            8,
            &["- ".into()],
            &["  ".into()],
        );
        assert_eq!(texts(&rows), ["- one", "  two", "  three"]);
    }

    #[test]
    fn folded_code_keeps_its_spaces() {
        let rows = fold(Line::from("    let  x = 1;   "), 9, &[], &[]);
        assert_eq!(texts(&rows), ["    let", "x = 1;"]);
    }

    fn visible(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }

    proptest! {
        #[test]
        fn rows_fit_and_nothing_is_lost(
            text in "[a-z日é👩\u{301} -]{0,80}",
            split in 0usize..80,
            width in 2u16..50,
        ) {
            let split = text.floor_char_boundary(split.min(text.len()));
            let line = Line::from(vec![text[..split].to_owned().into(), text[split..].to_owned().bold()]);
            let expected = visible(&text);
            for rows in [wrap(line.clone(), width), fold(line.clone(), width, &[], &[])] {
                for row in texts(&rows) {
                    prop_assert!(text_width(&row) <= usize::from(width), "{row:?}");
                    prop_assert_eq!(row.trim_end(), &row);
                }
                prop_assert_eq!(visible(&texts(&rows).concat()), expected.clone());
            }
        }
    }
}
