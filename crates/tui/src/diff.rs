//! Diffs as styled lines, with the differing words marked.

use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::Theme;
use crate::text;

/// Longer runs of changed lines are not compared word by word.
const MAX_COMPARED: usize = 16;

/// Lays out a diff: a unified one, or one with numbered lines as the edit tool reports its changes.
pub(crate) fn diff_lines(diff: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let diff = text::sanitise(diff);
    let is_unified = diff
        .lines()
        .any(|line| line.starts_with("@@ ") || line.starts_with("diff --git "));
    let mut in_hunk = false;
    let mut lines: Vec<Row<'_>> = diff
        .lines()
        .map(|line| {
            if is_unified {
                unified(line, &mut in_hunk, theme)
            } else {
                numbered(line, theme)
            }
        })
        .collect();
    mark_changes(&mut lines);
    let mut rows = Vec::new();
    for line in lines {
        let hang = line.indent.min(usize::from(width.saturating_sub(2)) / 2);
        let hang = [Span::raw(" ".repeat(hang))];
        rows.extend(text::fold(line.styled(), width, &[], &hang));
    }
    rows
}

struct Row<'a> {
    text: &'a str,
    style: Style,
    change: Change,
    /// The column at which the content of the line begins; its continuation rows start there too.
    indent: usize,
    /// The part that differs from the paired line.
    different: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Removed,
    Added,
}

impl<'a> Row<'a> {
    fn new(text: &'a str, style: Style, indent: usize) -> Self {
        Self {
            text,
            style,
            change: Change::None,
            indent,
            different: 0..0,
        }
    }

    /// A line of a hunk; its first character is the mark of an addition or removal.
    fn marked(text: &'a str, indent: usize, theme: &Theme) -> Self {
        let (style, change) = match text.as_bytes().first() {
            Some(b'+') => (theme.added, Change::Added),
            Some(b'-') => (theme.removed, Change::Removed),
            Some(b'\\') => (theme.dim.add_modifier(Modifier::ITALIC), Change::None),
            _ => (theme.dim, Change::None),
        };
        Self {
            change,
            ..Self::new(text, style, indent)
        }
    }

    fn content(&self) -> &'a str {
        self.text.get(self.indent..).unwrap_or_default()
    }

    fn styled(&self) -> Line<'a> {
        let Range { start, end } = self.different;
        let different = self.style.add_modifier(Modifier::REVERSED);
        Line::from(vec![
            Span::styled(&self.text[..start], self.style),
            Span::styled(&self.text[start..end], different),
            Span::styled(&self.text[end..], self.style),
        ])
    }
}

/// Marks the differing parts where as many lines were added as were removed before them.
fn mark_changes(rows: &mut [Row<'_>]) {
    let mut at = 0;
    while at < rows.len() {
        let run = |from: usize, change: Change| {
            let rows = rows[from..].iter();
            rows.take_while(|row| row.change == change).count()
        };
        let removed = run(at, Change::Removed);
        let added = run(at + removed, Change::Added);
        if removed == added && removed <= MAX_COMPARED {
            let (before, after) = rows[at..].split_at_mut(removed);
            for (old, new) in before.iter_mut().zip(after) {
                mark_change(old, new);
            }
        }
        at += (removed + added).max(1);
    }
}

fn mark_change<'a>(old: &mut Row<'a>, new: &mut Row<'a>) {
    let (before, after) = (old.content(), new.content());
    let start: usize = common(before.graphemes(true), after.graphemes(true));
    let (before, after) = (&before[start..], &after[start..]);
    let end: usize = common(before.graphemes(true).rev(), after.graphemes(true).rev());
    // Lines that have little in common are easier to read unmarked.
    let changed = before.len().max(after.len()) - end;
    if changed > start + end {
        return;
    }
    for (row, rest) in [(old, before), (new, after)] {
        let from = row.indent + start;
        row.different = from..from + rest.len() - end;
    }
}

/// Number of leading bytes that two sequences of graphemes share.
fn common<'a>(one: impl Iterator<Item = &'a str>, other: impl Iterator<Item = &'a str>) -> usize {
    let pairs = one.zip(other).take_while(|(one, other)| one == other);
    pairs.map(|(grapheme, _)| grapheme.len()).sum()
}

fn unified<'a>(line: &'a str, in_hunk: &mut bool, theme: &Theme) -> Row<'a> {
    if line.starts_with("@@ ") {
        *in_hunk = true;
        return Row::new(line, theme.accent, 0);
    }
    if line.starts_with("diff ") {
        *in_hunk = false;
    }
    let is_header = ["diff ", "--- ", "+++ "]
        .iter()
        .any(|head| line.starts_with(head));
    if *in_hunk {
        Row::marked(line, 1, theme)
    } else if is_header {
        Row::new(line, theme.strong, 0)
    } else {
        Row::new(line, theme.dim, 0)
    }
}

fn numbered<'a>(line: &'a str, theme: &Theme) -> Row<'a> {
    let after_marker = line.get(1..).unwrap_or_default();
    let unpadded = after_marker.trim_start_matches(' ');
    let digits = unpadded.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = digits > 0 && unpadded.as_bytes().get(digits) == Some(&b' ');
    let indent = if is_numbered {
        line.len() - unpadded.len() + digits + 1
    } else {
        0
    };
    Row::marked(line, indent, theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Background, Colours};
    use proptest::prelude::*;

    fn theme() -> Theme {
        Theme::new(Background::Dark, Colours::Palette)
    }

    fn rows(diff: &str, width: u16) -> Vec<(String, Style)> {
        let lines = diff_lines(diff, width, &theme());
        let style = |line: &Line<'_>| line.spans.last().map(|span| span.style).unwrap_or_default();
        lines
            .iter()
            .map(|line| (line.to_string(), style(line)))
            .collect()
    }

    #[test]
    fn numbered_lines_hang_behind_their_numbers() {
        let theme = theme();
        let expected = [
            ("     ...", theme.dim),
            ("   9 same", theme.dim),
            ("- 10 old", theme.removed),
            ("+ 10 new text", theme.added),
            ("     that is l", theme.added),
            ("     ong", theme.added),
        ];
        let diff = "     ...\n   9 same\n- 10 old\n+ 10 new text that is long";
        let found = rows(diff, 14);
        let found: Vec<(&str, Style)> = found
            .iter()
            .map(|(text, style)| (text.as_str(), *style))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_unified_diff_has_headers_and_hunks() {
        let theme = theme();
        let diff = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn\n--- gone\n+\u{1b}[31mnew\n same\n\\ No newline at end of file";
        let styles: Vec<Style> = rows(diff, 80).into_iter().map(|(_, style)| style).collect();
        let last = theme.dim.add_modifier(Modifier::ITALIC);
        assert_eq!(
            styles,
            [
                theme.strong,
                theme.dim,
                theme.strong,
                theme.strong,
                theme.accent,
                theme.removed,
                theme.added,
                theme.dim,
                last
            ]
        );
        assert_eq!(rows(diff, 80)[6].0, "+new");
    }

    /// The parts of each line that are marked as different.
    fn different(diff: &str) -> Vec<String> {
        let lines = diff_lines(diff, 200, &theme());
        let is_marked = |span: &&Span<'_>| span.style.add_modifier.contains(Modifier::REVERSED);
        lines
            .iter()
            .map(|line| {
                line.spans
                    .iter()
                    .filter(is_marked)
                    .map(|span| &*span.content)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn what_is_different_in_a_line_is_marked() {
        let diff = " 1 same\n-2 let answer = 41;\n+2 let answer = 42;\n 3 same";
        assert_eq!(different(diff), ["", "1", "2", ""]);
        let diff = "-10 call(a);\n-11 call(b, c);\n+10 call(a, x);\n+11 call(b);";
        assert_eq!(different(diff), ["", ", c", ", x", ""]);
        let diff = "@@ -1 +1 @@\n-name: \"old\"\n+name: \"e\u{301}ld\"";
        assert_eq!(different(diff), ["", "o", "e\u{301}"]);
    }

    #[test]
    fn lines_with_little_in_common_are_not_compared() {
        assert_eq!(different("-1 one thing\n+1 quite another"), ["", ""]);
        assert_eq!(
            different("-1 a long line\n+1 a long lime\n+2 more"),
            ["", "", ""]
        );
    }

    proptest! {
        #[test]
        fn any_diff_fits(diff in "([-+ @\\\\][ 0-9]{0,4}[a-z日é ]{0,20}\n){0,9}", width in 2u16..60) {
            for (row, _) in rows(&diff, width) {
                prop_assert!(text::width(&row) <= usize::from(width), "{row:?}");
            }
        }
    }
}
