//! A range of lines of a text that may be too large for memory.
//!
//! The text is read once: lines are counted, and of the requested ones only as much is stored as
//! can be shown.

use crate::decode::Decoder;
use crate::truncate::{MAX_BYTES, Totals};

/// Bytes that are stored of the requested lines: enough to detect that they do not fit.
const MAX_STORED_BYTES: usize = MAX_BYTES + 1;

/// Collects lines `first..end`, counted from 0.
#[derive(Debug)]
pub(crate) struct LineCollector {
    first: u64,
    end: u64,
    decoder: Decoder,
    /// The number of the line of the next character.
    line: u64,
    wanted_bytes: u64,
    first_line_bytes: u64,
    stored: String,
    scratch: String,
    /// The last of the wanted characters so far is a line break.
    ends_line: bool,
}

/// The collected lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CollectedLines {
    /// The requested lines, or their start if they are longer than can be shown.
    pub text: String,
    /// Size of all requested lines.
    pub totals: Totals,
    /// Bytes of the first requested line.
    pub first_line_bytes: u64,
    /// Lines of the whole text.
    pub file_lines: u64,
    /// The requested lines end with a line break.
    pub ends_line: bool,
}

impl LineCollector {
    pub fn new(first: u64, length: Option<u64>) -> Self {
        Self {
            first,
            end: length.map_or(u64::MAX, |length| first.saturating_add(length)),
            decoder: Decoder::default(),
            line: 0,
            wanted_bytes: 0,
            first_line_bytes: 0,
            stored: String::new(),
            scratch: String::new(),
            ends_line: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.scratch);
        self.decoder.push(bytes, &mut text);
        self.take(&text);
        text.clear();
        self.scratch = text;
    }

    fn take(&mut self, mut text: &str) {
        while !text.is_empty() {
            let line_end = memchr::memchr(b'\n', text.as_bytes());
            let (piece, rest) = text.split_at(line_end.map_or(text.len(), |at| at + 1));
            if (self.first..self.end).contains(&self.line) {
                self.keep(piece);
            }
            self.line += u64::from(line_end.is_some());
            text = rest;
        }
    }

    fn keep(&mut self, piece: &str) {
        self.wanted_bytes += piece.len() as u64;
        self.ends_line = piece.ends_with('\n');
        if self.line == self.first {
            self.first_line_bytes += piece.trim_end_matches('\n').len() as u64;
        }
        if self.stored.len() < MAX_STORED_BYTES {
            let room = piece.ceil_char_boundary(MAX_STORED_BYTES - self.stored.len());
            self.stored.push_str(&piece[..room]);
        }
    }

    pub fn finish(mut self) -> CollectedLines {
        let mut tail = String::new();
        self.decoder.finish(&mut tail);
        self.take(&tail);
        let file_lines = self.line + 1;
        let lines = file_lines.min(self.end).saturating_sub(self.first);
        // The line break after the last requested line belongs to the lines that follow.
        let breaks_off = self.end < file_lines && lines > 0;
        if breaks_off {
            self.wanted_bytes -= 1;
            if self.stored.len() as u64 > self.wanted_bytes {
                self.stored.pop();
            }
        }
        CollectedLines {
            text: self.stored,
            totals: Totals {
                lines: lines.max(1),
                bytes: self.wanted_bytes,
            },
            first_line_bytes: self.first_line_bytes,
            file_lines,
            ends_line: self.ends_line && !breaks_off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slice(text: &[u8], first: u64, length: Option<u64>, piece: usize) -> CollectedLines {
        let mut slice = LineCollector::new(first, length);
        text.chunks(piece).for_each(|bytes| slice.push(bytes));
        slice.finish()
    }

    proptest! {
        #[test]
        fn slices_are_what_splitting_gives(
            text in "[a→\n]{0,80}",
            first in 0u64..6,
            length in proptest::option::of(0u64..6),
            piece in 1usize..9,
        ) {
            let lines: Vec<&str> = text.split('\n').collect();
            let collected = slice(text.as_bytes(), first, length, piece);
            prop_assert_eq!(collected.file_lines, lines.len() as u64);
            let wanted: Vec<&str> = lines
                .iter()
                .skip(first as usize)
                .take(length.map_or(usize::MAX, |length| length as usize))
                .copied()
                .collect();
            let joined = wanted.join("\n");
            prop_assert_eq!(collected.totals, Totals::of(&joined));
            prop_assert_eq!(collected.text, joined);
            prop_assert_eq!(collected.first_line_bytes, wanted.first().map_or(0, |line| line.len()) as u64);
        }
    }

    #[test]
    fn what_cannot_be_shown_is_counted_but_not_kept() {
        let text = format!("{}\nlast", "x".repeat(1_000_000));
        let collected = slice(text.as_bytes(), 0, None, 4096);
        assert_eq!(
            (collected.totals.bytes, collected.first_line_bytes),
            (1_000_005, 1_000_000)
        );
        assert!(collected.text.len() <= MAX_STORED_BYTES + 3);
    }
}
