//! Finds the positions at which a growing text can be cut so that the part before them never
//! changes again.
//!
//! Lines are read once, when they are complete. The scanner cuts only where Markdown begins
//! something new regardless of what follows: before and after a fence, at the next item of a list,
//! at a line after a blank one. Where that is uncertain it does not cut, except that a piece that
//! grows too long is cut anyway. The cuts depend on the text alone, never on the deltas in which it
//! arrived.

use super::marks::{self, Fence, Marker};

/// Bytes above which a piece or a line is cut.
pub(super) const MAX_PIECE: usize = 32 * 1024;

/// A piece of a text that can be laid out on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: usize,
    pub end: usize,
    pub kind: PieceKind,
    /// The number of the piece's first item in its list, regardless of the number in the source.
    pub ordinal: Option<u64>,
}

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// The whole piece is fenced code.
    Fence(Fence),
    /// Anything else.
    Blocks,
}

/// Reads a text line by line.
#[derive(Debug)]
pub(super) struct Scanner {
    /// The end of the text read so far.
    at: usize,
    /// The start of the open piece, if it is not empty.
    start: Option<usize>,
    kind: PieceKind,
    after_blank: bool,
    /// Column at which the text of the open piece's items begins; lines indented that far belong to
    /// them.
    inside: Option<usize>,
    /// The mark of the item that the open piece begins with, and its number.
    marker: Option<Marker>,
    ordinal: Option<u64>,
    /// The list of that item has ended.
    list_ended: bool,
    /// The end of the open HTML block that may contain blank lines.
    html_end: Option<&'static str>,
}

impl Scanner {
    pub fn new() -> Self {
        Self {
            at: 0,
            start: None,
            kind: PieceKind::Blocks,
            after_blank: false,
            inside: None,
            marker: None,
            ordinal: None,
            list_ended: false,
            html_end: None,
        }
    }

    /// Reads the new whole lines and appends the pieces they finish.
    pub fn read(&mut self, source: &str, finished: &mut Vec<Piece>) {
        while let Some(end) = line_end(source, self.at) {
            let start = self.at;
            self.at = end;
            self.line(
                start,
                end,
                source[start..end].trim_end_matches('\n'),
                finished,
            );
        }
    }

    /// Returns the unfinished piece, up to the end of the text.
    pub fn open(&self, source: &str) -> Option<Piece> {
        let start = self.start.unwrap_or(self.at);
        let piece = Piece {
            start,
            end: source.len(),
            kind: self.kind,
            ordinal: self.ordinal,
        };
        (start < source.len()).then_some(piece)
    }

    fn line(&mut self, start: usize, end: usize, line: &str, finished: &mut Vec<Piece>) {
        if let PieceKind::Fence(fence) = self.kind {
            if fence.is_closed_by(line) {
                self.cut(end, finished);
            }
            return;
        }
        if line.trim().is_empty() {
            self.after_blank = true;
        } else {
            self.text(start, line, finished);
            self.after_blank = false;
        }
        if self.start.is_some_and(|first| end - first > MAX_PIECE)
            && matches!(self.kind, PieceKind::Blocks)
        {
            self.cut(end, finished);
        }
    }

    fn text(&mut self, start: usize, line: &str, finished: &mut Vec<Piece>) {
        if let Some(end) = self.html_end {
            if line.contains(end) {
                self.html_end = None;
            }
            return;
        }
        let indent = marks::indent(line);
        let belongs = self.inside.is_some_and(|column| indent >= column);
        if belongs || indent > 3 {
            self.start.get_or_insert(start);
            return;
        }
        if let Some(fence) = Fence::opened_by(line) {
            self.cut(start, finished);
            self.start = Some(start);
            self.kind = PieceKind::Fence(fence);
            return;
        }
        let marker = Marker::of(line);
        let is_next_item = match (&self.marker, &marker) {
            (Some(before), Some(next)) => before.kind == next.kind,
            _ => false,
        };
        if self.start.is_none() || self.after_blank || is_next_item {
            let before = self.ordinal.filter(|_| is_next_item && !self.list_ended);
            self.cut(start, finished);
            self.start = Some(start);
            self.inside = marker.as_ref().map(|marker| marker.text_column);
            self.ordinal = match (&marker, before) {
                (Some(_), Some(before)) => Some(before.saturating_add(1)),
                (Some(marker), None) => marker.number,
                (None, _) => None,
            };
            self.marker = marker;
        } else {
            self.list_ended = true;
            // Whether this is an item may depend on earlier lines; if it is, its text begins at
            // this column.
            let column = marker.map(|marker| marker.text_column);
            self.inside = match (self.inside, column) {
                (Some(inside), Some(column)) => Some(inside.min(column)),
                (inside, column) => inside.or(column),
            };
        }
        self.html_end = marks::html_end(line);
    }

    fn cut(&mut self, at: usize, finished: &mut Vec<Piece>) {
        if let Some(start) = self.start {
            finished.push(Piece {
                start,
                end: at,
                kind: self.kind,
                ordinal: self.ordinal,
            });
        }
        *self = Self {
            at: self.at,
            after_blank: self.after_blank,
            ..Self::new()
        };
    }
}

/// Returns the end of the line that begins at `at`, if the line is complete. A line that is too
/// long is cut.
pub(super) fn line_end(source: &str, at: usize) -> Option<usize> {
    let rest = &source.as_bytes()[at..];
    let near = &rest[..rest.len().min(MAX_PIECE)];
    match near.iter().position(|&byte| byte == b'\n') {
        Some(position) => Some(at + position + 1),
        None if rest.len() > MAX_PIECE => Some(source.floor_char_boundary(at + MAX_PIECE)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(source: &str) -> Vec<(&str, Option<u64>)> {
        let mut scanner = Scanner::new();
        let mut finished = Vec::new();
        scanner.read(source, &mut finished);
        finished.extend(scanner.open(source));
        finished
            .iter()
            .map(|piece| (&source[piece.start..piece.end], piece.ordinal))
            .collect()
    }

    fn texts(source: &str) -> Vec<&str> {
        pieces(source).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn blank_lines_part_paragraphs_but_not_items() {
        assert_eq!(texts("a\nb\n\nc\n"), ["a\nb\n\n", "c\n"]);
        assert_eq!(texts("- a\n\n  b\n\nc\n"), ["- a\n\n  b\n\n", "c\n"]);
        assert_eq!(texts("    a\n\n    b\n"), ["    a\n\n    b\n"]);
    }

    #[test]
    fn items_are_pieces_and_keep_their_numbers() {
        assert_eq!(
            pieces("1. a\n1. b\n\n   more\n1. c\n"),
            [
                ("1. a\n", Some(1)),
                ("1. b\n\n   more\n", Some(2)),
                ("1. c\n", Some(3))
            ]
        );
        assert_eq!(
            pieces("1. a\n# h\n1. b\n"),
            [("1. a\n# h\n", Some(1)), ("1. b\n", Some(1))]
        );
        assert_eq!(texts("- a\n  - b\n- c\n"), ["- a\n  - b\n", "- c\n"]);
        assert_eq!(texts("- a\n---\nb\n"), ["- a\n---\nb\n"]);
    }

    #[test]
    fn a_fence_is_a_piece() {
        assert_eq!(
            texts("a\n```rust\n\nb\n- c\n```\nd\n"),
            ["a\n", "```rust\n\nb\n- c\n```\n", "d\n"]
        );
        assert_eq!(texts("~~~~\n~~~\n```\nx"), ["~~~~\n~~~\n```\nx"]);
        assert_eq!(
            texts("- a\n  ```\n  x\n\n  ```\n"),
            ["- a\n  ```\n  x\n\n  ```\n"]
        );
    }

    #[test]
    fn a_comment_goes_on_over_blank_lines() {
        assert_eq!(
            texts("<!--\n\na\n-->\n\nb\n"),
            ["<!--\n\na\n-->\n\n", "b\n"]
        );
    }

    #[test]
    fn what_never_ends_is_cut() {
        let long = "word ".repeat(20_000);
        let texts = texts(&long);
        assert_eq!(texts.concat(), long);
        assert!(texts.iter().all(|text| text.len() <= 2 * MAX_PIECE));
    }

    proptest! {
        #[test]
        fn cuts_do_not_depend_on_the_deltas(
            lines in proptest::collection::vec("[-*1.`~#>ab< ]{0,6}|```|    x|- x|2\\. y", 0..20),
            cuts in proptest::collection::vec(0usize..120, 0..6),
        ) {
            let source = lines.join("\n");
            let mut scanner = Scanner::new();
            let mut finished = Vec::new();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(source.len())).collect();
            cuts.sort_unstable();
            for cut in cuts {
                scanner.read(&source[..cut], &mut finished);
            }
            scanner.read(&source, &mut finished);
            finished.extend(scanner.open(&source));
            let found: Vec<_> = finished
                .iter()
                .map(|piece| (&source[piece.start..piece.end], piece.ordinal))
                .collect();
            prop_assert_eq!(found, pieces(&source));
        }
    }
}
