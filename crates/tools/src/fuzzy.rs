//! Compares texts that look alike: trailing blanks, typographic quotes, dashes and unusual spaces
//! make no difference.
//!
//! Folding never moves text across lines, so line `n` of a folded text is line `n` of the original.

use std::ops::Range;

/// `text` in a form in which texts that look alike are equal.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.extend(line.trim_end_matches(is_space).chars().map(fold_char));
    }
    out
}

fn fold_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Reports whether JavaScript counts the character as white space.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Occurrences of `needle`, not counting overlaps.
pub(crate) fn occurrences(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
}

/// A folded text and its original, line by line.
pub(crate) struct LinePairs<'t> {
    folded: &'t str,
    original: Vec<&'t str>,
    /// The offset of each line of `folded`.
    starts: Vec<usize>,
}

impl<'t> LinePairs<'t> {
    pub fn new(folded: &'t str, original: &'t str) -> Self {
        let starts = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', folded.as_bytes()).map(|at| at + 1));
        Self {
            folded,
            original: original.split('\n').collect(),
            starts: starts.collect(),
        }
    }

    /// The part of the folded text in `range`; every line that is wholly inside is restored to its
    /// original.
    pub fn unfold(&self, range: Range<usize>) -> String {
        let first = self.starts.partition_point(|&start| start < range.start);
        // The last line that starts inside the range is whole only if the range reaches its end.
        let last = self
            .starts
            .partition_point(|&start| start <= range.end)
            .saturating_sub(1);
        let reaches_end = range.end == self.folded.len();
        let whole_end = if reaches_end { self.starts.len() } else { last };
        if first >= whole_end {
            return self.folded[range].to_owned();
        }
        let mut out = self.folded[range.start..self.starts[first]].to_owned();
        out.push_str(&self.original[first..whole_end].join("\n"));
        if !reaches_end {
            out.push('\n');
            out.push_str(&self.folded[self.starts[whole_end]..range.end]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_fold_to_one_text() {
        assert_eq!(
            fold("say “hi” now   \nit’s – a−b\u{a0}c\t\n"),
            "say \"hi\" now\nit's - a-b c\n"
        );
        assert_eq!(fold("   "), "");
        assert_eq!(occurrences("aaaa", "aa"), 2);
    }
}
