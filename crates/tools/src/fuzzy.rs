//! Texts that look alike: trailing blanks, typographic quotes, dashes and odd spaces make no difference.
//!
//! Folding never moves text across lines, so line `n` of a folded text is line `n` of the original.

/// `text` in the form in which look-alikes are equal.
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

/// JavaScript's idea of white space.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Occurrences of `needle`, not counting overlaps.
pub(crate) fn occurrences(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
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
