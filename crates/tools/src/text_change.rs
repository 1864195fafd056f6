//! The change that a call makes to a text file, for clients that show it: whole texts, or hunks of large ones.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pinion_message::Mask;
use similar::{Algorithm, DiffOp};

/// The longest text that is kept as a whole, in bytes.
const WHOLE_LIMIT: usize = 128 << 10;
/// Lines around the changes of a hunk.
const CONTEXT_LINES: usize = 3;
/// Limit on the bytes of all hunks together.
const HUNKS_LIMIT: usize = 256 << 10;
/// Time after which a coarser diff is computed.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// A change of one text file. It is neither stored nor sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The first changed line of the new text, from 1; `None` for a new file and if nothing changes.
    pub line: Option<usize>,
    /// The texts.
    pub texts: ChangedTexts,
}

/// The texts of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedTexts {
    /// Both texts.
    Whole {
        /// The text before; `None` if there was no file.
        before: Option<String>,
        /// The text after.
        after: String,
    },
    /// The changed parts, because a text is too long.
    Hunks(Vec<Hunk>),
}

/// A part of a file that changes, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Its first line in the new text, from 1.
    pub line: usize,
    /// The text before.
    pub before: String,
    /// The text after.
    pub after: String,
}

impl TextChange {
    /// Creates the change of the file at `path`; without `before` there was no file.
    pub fn between(path: PathBuf, before: Option<String>, after: String) -> Self {
        let line = before.as_deref().and_then(|old| first_change(old, &after));
        let is_short = |text: &String| text.len() <= WHOLE_LIMIT;
        if is_short(&after) && before.as_ref().is_none_or(is_short) {
            let texts = ChangedTexts::Whole { before, after };
            return Self { path, line, texts };
        }
        let texts = ChangedTexts::Hunks(hunks(&before.unwrap_or_default(), &after));
        Self { path, line, texts }
    }

    /// Masks known keys.
    pub fn mask(&mut self, mask: &Mask) {
        match &mut self.texts {
            ChangedTexts::Whole { before, after } => {
                before.iter_mut().for_each(|text| mask.string(text));
                mask.string(after);
            }
            ChangedTexts::Hunks(hunks) => {
                for hunk in hunks {
                    mask.string(&mut hunk.before);
                    mask.string(&mut hunk.after);
                }
            }
        }
    }
}

/// Returns the number of the first line that differs, from 1.
fn first_change(old: &str, new: &str) -> Option<usize> {
    if old == new {
        return None;
    }
    let mut lines = old.split_inclusive('\n').zip(new.split_inclusive('\n'));
    let equal = lines.position(|(old, new)| old != new);
    let shorter = || {
        let lines = |text: &str| text.split_inclusive('\n').count();
        lines(old).min(lines(new))
    };
    Some(equal.unwrap_or_else(shorter) + 1)
}

fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let mut left = HUNKS_LIMIT;
    let mut hunks = Vec::new();
    for group in similar::group_diff_ops(ops, CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let text = |lines: &[&str], range: fn(&DiffOp) -> std::ops::Range<usize>| {
            lines[range(first).start..range(last).end].concat()
        };
        let mut hunk = Hunk {
            line: first.new_range().start + 1,
            before: text(&old, DiffOp::old_range),
            after: text(&new, DiffOp::new_range),
        };
        for text in [&mut hunk.before, &mut hunk.after] {
            if text.len() > left {
                text.truncate(text.floor_char_boundary(left));
                text.push_str("\n[The rest of this change is too long to show.]\n");
                left = 0;
            } else {
                left -= text.len();
            }
        }
        hunks.push(hunk);
        if left == 0 {
            break;
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(before: Option<&str>, after: &str) -> TextChange {
        TextChange::between("/a".into(), before.map(str::to_owned), after.to_owned())
    }

    #[test]
    fn the_first_changed_line_is_counted_in_the_new_text() {
        assert_eq!(between(Some("a\nb\n"), "a\nc\n").line, Some(2));
        assert_eq!(between(Some("a\n"), "a\nb\n").line, Some(2));
        assert_eq!(between(Some("a\nb\n"), "a\n").line, Some(2));
        assert_eq!(between(Some("a\n"), "a\n").line, None);
        assert_eq!(between(None, "a\n").line, None);
    }

    #[test]
    fn a_long_text_becomes_hunks_with_three_lines_around_each_change() {
        let old: String = (1..=40_000).map(|n| format!("l{n}\n")).collect();
        let new = old
            .replace("l10\n", "L10\n")
            .replace("l30000\n", "L30000\n");
        let change = between(Some(&old), &new);
        let ChangedTexts::Hunks(hunks) = &change.texts else {
            panic!("{change:?}");
        };
        assert_eq!(change.line, Some(10));
        assert_eq!(hunks.len(), 2);
        assert_eq!(hunks[0].line, 7);
        assert_eq!(hunks[0].before, "l7\nl8\nl9\nl10\nl11\nl12\nl13\n");
        assert_eq!(
            hunks[1].after,
            "l29997\nl29998\nl29999\nL30000\nl30001\nl30002\nl30003\n"
        );
    }

    #[test]
    fn hunks_are_bounded() {
        let change = between(None, &"x".repeat(4 << 20));
        let ChangedTexts::Hunks(hunks) = change.texts else {
            panic!("whole");
        };
        let size: usize = hunks
            .iter()
            .map(|it| it.before.len() + it.after.len())
            .sum();
        assert!(size <= HUNKS_LIMIT + 100, "{size}");
    }
}
