//! The diff that people see after an edit: numbered lines, four lines of context.
//!
//! It is for reading only; it cannot be applied as a patch.

use std::time::Duration;

use similar::{Algorithm, DiffOp, DiffTag};

/// Lines shown on each side of a change.
const CONTEXT_LINES: usize = 4;
/// Time after which a coarser diff is computed, so that large files do not delay the answer.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// A diff and its first line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub text: String,
    /// Line of the new text, counted from 1; `None` when nothing changed.
    pub first_changed_line: Option<usize>,
}

/// The differences between two texts with LF line ends.
pub(crate) fn lines(old: &str, new: &str) -> Diff {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = std::time::Instant::now() + DIFF_TIMEOUT;
    let ops = similar::capture_diff_slices_deadline(
        Algorithm::Myers,
        &old_lines,
        &new_lines,
        Some(deadline),
    );
    let numbered = old.split('\n').count().max(new.split('\n').count());
    let mut page = DiffRows {
        width: numbered.to_string().len(),
        rows: Vec::new(),
    };
    let first_changed_line = ops
        .iter()
        .find(|op| op.tag() != DiffTag::Equal)
        .map(|op| op.new_range().start + 1);
    // Neighbouring deletions and insertions are one change: all removed lines, then all added ones.
    let mut ops = ops.as_slice();
    let mut after_change = false;
    while let Some(op) = ops.first() {
        let changes = ops
            .iter()
            .take_while(|op| op.tag() != DiffTag::Equal)
            .count();
        if changes == 0 {
            page.context(*op, &old_lines, after_change, ops.len() > 1);
            ops = &ops[1..];
            continue;
        }
        for index in ops[..changes].iter().flat_map(DiffOp::old_range) {
            page.row('-', index, old_lines[index]);
        }
        for index in ops[..changes].iter().flat_map(DiffOp::new_range) {
            page.row('+', index, new_lines[index]);
        }
        after_change = true;
        ops = &ops[changes..];
    }
    Diff {
        text: page.rows.join("\n"),
        first_changed_line,
    }
}

/// Returns the differences between two texts with LF line ends as a unified diff; `name` is the name of both files.
pub(crate) fn patch(name: &str, old: &str, new: &str) -> String {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = std::time::Instant::now() + DIFF_TIMEOUT;
    let ops = similar::capture_diff_slices_deadline(
        Algorithm::Myers,
        &old_lines,
        &new_lines,
        Some(deadline),
    );
    let mut text = format!("--- {name}\n+++ {name}\n");
    for hunk in similar::group_diff_ops(ops, CONTEXT_LINES) {
        let range = |range: fn(&DiffOp) -> std::ops::Range<usize>| {
            let start = hunk.first().map_or(0, |op| range(op).start);
            let length = hunk.last().map_or(0, |op| range(op).end) - start;
            // An empty side is named by the line before it.
            format!("{},{length}", if length == 0 { start } else { start + 1 })
        };
        let (removed, added) = (range(DiffOp::old_range), range(DiffOp::new_range));
        text.push_str(&format!("@@ -{removed} +{added} @@\n"));
        let mut changes = hunk.as_slice();
        while let Some(op) = changes.first() {
            if op.tag() == DiffTag::Equal {
                push_lines(&mut text, ' ', &old_lines[op.old_range()]);
                changes = &changes[1..];
                continue;
            }
            let is_change = |op: &&DiffOp| op.tag() != DiffTag::Equal;
            let count = changes.iter().take_while(is_change).count();
            for op in &changes[..count] {
                push_lines(&mut text, '-', &old_lines[op.old_range()]);
            }
            for op in &changes[..count] {
                push_lines(&mut text, '+', &new_lines[op.new_range()]);
            }
            changes = &changes[count..];
        }
    }
    text
}

fn push_lines(text: &mut String, marker: char, lines: &[&str]) {
    for line in lines {
        text.push(marker);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

struct DiffRows {
    width: usize,
    rows: Vec<String>,
}

impl DiffRows {
    fn row(&mut self, marker: char, index: usize, line: &str) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        self.rows
            .push(format!("{marker}{:>1$} {line}", index + 1, self.width));
    }

    fn gap(&mut self) {
        self.rows.push(format!(" {:1$} ...", "", self.width));
    }

    /// Unchanged lines: those near a change, and an ellipsis for the others.
    fn context(&mut self, op: DiffOp, lines: &[&str], after_change: bool, before_change: bool) {
        let range = op.old_range();
        let head = if after_change { CONTEXT_LINES } else { 0 };
        let tail = if before_change { CONTEXT_LINES } else { 0 };
        if range.len() <= head + tail {
            range.for_each(|index| self.row(' ', index, lines[index]));
        } else if head + tail > 0 {
            (range.start..range.start + head).for_each(|index| self.row(' ', index, lines[index]));
            self.gap();
            (range.end - tail..range.end).for_each(|index| self.row(' ', index, lines[index]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_line_becomes_two() {
        let diff = lines("alpha\nbeta\ngamma\n", "alpha\nBETA\nNEW\ngamma\n");
        assert_eq!(diff.text, " 1 alpha\n-2 beta\n+2 BETA\n+3 NEW\n 3 gamma");
        assert_eq!(diff.first_changed_line, Some(2));
    }

    #[test]
    fn far_lines_are_left_out_and_numbers_line_up() {
        let old: String = (1..=30).map(|n| format!("l{n}\n")).collect();
        let new = old.replace("l8\n", "L8\n").replace("l28\n", "");
        let expected = [
            "    ...", "  4 l4", "  5 l5", "  6 l6", "  7 l7", "- 8 l8", "+ 8 L8", "  9 l9",
            " 10 l10", " 11 l11", " 12 l12", "    ...", " 24 l24", " 25 l25", " 26 l26", " 27 l27",
            "-28 l28", " 29 l29", " 30 l30",
        ];
        assert_eq!(lines(&old, &new).text, expected.join("\n"));
    }

    #[test]
    fn a_patch_has_hunks_with_four_lines_around_each_change() {
        let old: String = (1..=20).map(|n| format!("l{n}\n")).collect();
        let new = old.replace("l3\n", "L3\nmore\n").replace("l20\n", "l20");
        let expected = [
            "--- a.txt",
            "+++ a.txt",
            "@@ -1,7 +1,8 @@",
            " l1",
            " l2",
            "-l3",
            "+L3",
            "+more",
            " l4",
            " l5",
            " l6",
            " l7",
            "@@ -16,5 +17,5 @@",
            " l16",
            " l17",
            " l18",
            " l19",
            "-l20",
            "+l20",
            "\\ No newline at end of file",
            "",
        ];
        assert_eq!(patch("a.txt", &old, &new), expected.join("\n"));
        assert_eq!(patch("b", "", "x\n"), "--- b\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
    }

    #[test]
    fn a_line_that_gains_its_newline_is_a_change() {
        assert_eq!(lines("a", "a\nb").text, "-1 a\n+1 a\n+2 b");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(
            lines("a\n", "a\n"),
            Diff {
                text: String::new(),
                first_changed_line: None
            }
        );
    }

    /// Rebuilds the new text from the old one and the rows of the diff.
    fn apply(old: &[&str], rows: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut next = 0;
        for row in rows.lines() {
            let (marker, rest) = row.split_at(1);
            let (number, text) = rest
                .trim_start()
                .split_once(' ')
                .unwrap_or((rest.trim(), ""));
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match marker {
                "+" => {
                    while out.len() + 1 < number {
                        out.push(old[next].to_owned());
                        next += 1;
                    }
                    out.push(text.to_owned());
                }
                _ => {
                    while next + 1 < number {
                        out.push(old[next].to_owned());
                        next += 1;
                    }
                    if marker == " " {
                        out.push(text.to_owned());
                    }
                    next = number;
                }
            }
        }
        out.extend(old[next..].iter().map(|line| (*line).to_owned()));
        out
    }

    proptest! {
        #[test]
        fn a_diff_and_the_old_text_give_the_new_text(
            old in proptest::collection::vec("[ab]{1,2}", 0..30),
            new in proptest::collection::vec("[ab]{1,2}", 0..30),
        ) {
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let diff = lines(&text(&old), &text(&new));
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            prop_assert_eq!(apply(&old, &diff.text), new);
        }
    }
}
