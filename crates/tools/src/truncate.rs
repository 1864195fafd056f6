//! Cuts text to the limits of a result: 2000 lines or 50 KiB, whichever comes first.
//!
//! Lines are separated by LF and a final LF opens one more, empty line; bytes are UTF-8. This
//! module only cuts and counts: the tools word the notes about a cut.

use pinion_text::amount;
use serde::Serialize;
use serde_json::Value;

/// The most lines a result shows.
pub const MAX_LINES: usize = 2000;
/// The most bytes a result shows.
pub const MAX_BYTES: usize = 50 * 1024;
/// The line limit of results that are cut by bytes only: the largest integer JavaScript counts
/// exactly, because that is what clients see in `maxLines`.
pub(crate) const NO_LINE_LIMIT: u64 = 9_007_199_254_740_991;

/// The limit that cut the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    /// The line limit.
    Lines,
    /// The byte limit.
    Bytes,
}

/// A text after cutting, and the sizes before. Members are in the order clients expect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// The text after cutting.
    pub content: String,
    /// A part of the text is missing.
    pub truncated: bool,
    /// The limit that applied.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines of the whole text.
    pub total_lines: u64,
    /// Bytes of the whole text.
    pub total_bytes: u64,
    /// Lines of `content`.
    pub output_lines: u64,
    /// Bytes of `content`.
    pub output_bytes: u64,
    /// `content` is the end of one line.
    pub last_line_partial: bool,
    /// The first line alone was too long, so `content` is empty.
    pub first_line_exceeds_limit: bool,
    /// The line limit.
    pub max_lines: u64,
    /// The byte limit.
    pub max_bytes: u64,
}

/// Size of a text of which only a part is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub lines: u64,
    pub bytes: u64,
}

impl Totals {
    pub fn of(text: &str) -> Self {
        Self {
            lines: line_count(text.as_bytes()),
            bytes: text.len() as u64,
        }
    }

    /// Returns the size of the same text if a line break at its end opens no line.
    pub fn without_last_line(self) -> Self {
        Self {
            lines: self.lines.saturating_sub(1).max(1),
            ..self
        }
    }

    fn fit(self, max_lines: u64) -> bool {
        self.lines <= max_lines && self.bytes <= MAX_BYTES as u64
    }
}

impl Truncation {
    fn whole(content: String, totals: Totals, max_lines: u64) -> Self {
        Self {
            output_bytes: content.len() as u64,
            output_lines: totals.lines,
            content,
            truncated: false,
            truncated_by: None,
            total_lines: totals.lines,
            total_bytes: totals.bytes,
            last_line_partial: false,
            first_line_exceeds_limit: false,
            max_lines,
            max_bytes: MAX_BYTES as u64,
        }
    }

    /// The object `details.truncation` for clients.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Returns whole lines from the start of `text`, the start of a text of size `totals`.
///
/// `text` must be all of it, or more than the byte limit of it.
pub(crate) fn head(text: &str, totals: Totals, max_lines: u64) -> Truncation {
    if totals.fit(max_lines) {
        return Truncation::whole(text.to_owned(), totals, max_lines);
    }
    let mut end = 0;
    let mut lines = 0;
    let mut by = TruncatedBy::Lines;
    for line in text.split('\n') {
        if lines == max_lines {
            break;
        }
        let line_end = if lines == 0 {
            line.len()
        } else {
            end + 1 + line.len()
        };
        if line_end > MAX_BYTES {
            by = TruncatedBy::Bytes;
            break;
        }
        end = line_end;
        lines += 1;
    }
    Truncation {
        first_line_exceeds_limit: lines == 0,
        ..cut(text[..end].to_owned(), by, lines, totals, max_lines)
    }
}

/// Returns whole lines from the end of `text`, the end of a text of size `totals`.
///
/// `text` must be all of it, or more than the byte limit of it. Of a last line that is too long by
/// itself, the end is returned.
pub(crate) fn tail(text: &str, totals: Totals) -> Truncation {
    let max_lines = MAX_LINES as u64;
    if totals.fit(max_lines) {
        return Truncation::whole(text.to_owned(), totals, max_lines);
    }
    let mut start = text.len();
    let mut lines = 0;
    let mut by = TruncatedBy::Lines;
    for line in text.rsplit('\n') {
        if lines == max_lines {
            break;
        }
        let line_start = if lines == 0 {
            start - line.len()
        } else {
            start - 1 - line.len()
        };
        if text.len() - line_start > MAX_BYTES {
            by = TruncatedBy::Bytes;
            break;
        }
        start = line_start;
        lines += 1;
    }
    if lines == 0 {
        let start = text.ceil_char_boundary(text.len() - MAX_BYTES);
        return Truncation {
            last_line_partial: true,
            ..cut(
                text[start..].to_owned(),
                TruncatedBy::Bytes,
                1,
                totals,
                max_lines,
            )
        };
    }
    cut(text[start..].to_owned(), by, lines, totals, max_lines)
}

/// Like [`tail`] for a text in which a line break at the end opens no line.
pub(crate) fn tail_of_lines(text: &str, totals: Totals) -> Truncation {
    let Some(lines) = text.strip_suffix('\n') else {
        return tail(text, totals);
    };
    let counted = totals.without_last_line();
    if counted.fit(MAX_LINES as u64) {
        return Truncation::whole(text.to_owned(), counted, MAX_LINES as u64);
    }
    tail(lines, counted)
}

fn cut(content: String, by: TruncatedBy, lines: u64, totals: Totals, max_lines: u64) -> Truncation {
    Truncation {
        truncated: true,
        truncated_by: Some(by),
        output_lines: lines,
        ..Truncation::whole(content, totals, max_lines)
    }
}

/// Lines of `text`, counting the empty one after a final LF.
pub(crate) fn line_count(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64 + 1
}

/// Formats a size as pi's tools do: `812B`, `50.0KB`, `4.5MB`.
pub(crate) fn format_size(bytes: u64) -> String {
    amount::size(bytes).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head_of(text: &str) -> Truncation {
        head(text, Totals::of(text), MAX_LINES as u64)
    }

    fn tail_of(text: &str) -> Truncation {
        tail(text, Totals::of(text))
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KB"),
            (51200, "50.0KB"),
            (60000, "58.6KB"),
            (120_000, "117.2KB"),
            (1_048_576, "1.0MB"),
            (4_718_592, "4.5MB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn short_texts_are_left_alone() {
        for text in ["", "a", "a\n", "a\nb"] {
            let head = head_of(text);
            assert_eq!(head, tail_of(text));
            assert_eq!((head.content.as_str(), head.truncated), (text, false));
            assert_eq!(head.truncated_by, None);
        }
    }

    #[test]
    fn five_thousand_numbers_keep_the_last_two_thousand_lines() {
        let text: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        let cut = tail_of(&text);
        assert!(cut.content.starts_with("3002\n3003\n") && cut.content.ends_with("\n5000\n"));
        assert_eq!(
            (
                cut.truncated_by,
                cut.total_lines,
                cut.total_bytes,
                cut.output_lines,
                cut.output_bytes
            ),
            (Some(TruncatedBy::Lines), 5001, 23893, 2000, 9995)
        );
    }

    #[test]
    fn a_final_line_break_may_open_no_line() {
        let text: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        let cut = tail_of_lines(&text, Totals::of(&text));
        assert!(cut.content.starts_with("3001\n3002\n") && cut.content.ends_with("\n5000"));
        assert_eq!(
            (
                cut.total_lines,
                cut.total_bytes,
                cut.output_lines,
                cut.output_bytes
            ),
            (5000, 23893, 2000, 9999)
        );
        let whole = &text[..text.find("2001").unwrap()];
        let kept = tail_of_lines(whole, Totals::of(whole));
        assert_eq!((kept.truncated, kept.content.as_str()), (false, whole));
    }

    #[test]
    fn of_a_long_last_line_the_end_stays_on_a_character_border() {
        let text = "é".repeat(40_000);
        let cut = tail_of(&format!("first\n{text}x"));
        assert!(cut.last_line_partial);
        assert_eq!(
            (cut.output_lines, cut.output_bytes, cut.total_lines),
            (1, 51_199, 2)
        );
        assert!(cut.content.ends_with("éx"));
    }

    #[test]
    fn a_long_first_line_leaves_nothing_at_the_head() {
        let cut = head_of(&format!("{}\nsecond\n", "w".repeat(60_000)));
        assert!(cut.first_line_exceeds_limit && cut.content.is_empty());
        assert_eq!(
            (cut.total_lines, cut.total_bytes, cut.output_lines),
            (3, 60_008, 0)
        );
    }

    #[test]
    fn members_come_in_the_order_clients_know() {
        let members: Vec<String> = head_of("x")
            .to_value()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(
            members.join(" "),
            "content truncated truncatedBy totalLines totalBytes outputLines outputBytes \
             lastLinePartial firstLineExceedsLimit maxLines maxBytes"
        );
    }

    proptest! {
        #[test]
        fn cuts_keep_whole_lines_within_the_limits(
            lengths in proptest::collection::vec(0usize..30, 0..3000),
        ) {
            let lines: Vec<String> = lengths.iter().map(|&length| "é".repeat(length)).collect();
            let text = lines.join("\n");
            let (head, tail) = (head_of(&text), tail_of(&text));
            prop_assert!(text.starts_with(&head.content));
            prop_assert!(text.ends_with(&tail.content));
            for cut in [head, tail] {
                prop_assert!(cut.output_lines <= 2000 && cut.content.len() <= MAX_BYTES);
                prop_assert_eq!(cut.output_bytes, cut.content.len() as u64);
                prop_assert_eq!(cut.truncated, cut.content.len() < text.len());
                prop_assert_eq!(cut.output_lines, line_count(cut.content.as_bytes()));
            }
        }
    }
}
