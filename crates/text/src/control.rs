//! Control characters of texts from outside, which a terminal would obey.
//!
//! There are two strengths. [`harmless`] and [`harmless_line`] replace each character where it stands, for output that
//! must stay comparable with its source: answers, logs, tables. [`sanitise`](crate::sanitise) removes whole escape
//! sequences and everything that hides or reverses text, for screens.

/// Replaces each control character by `�`, except line breaks and tabs.
pub fn harmless(text: &str) -> String {
    text.chars().map(harmless_char).collect()
}

/// Replaces each control character by `�`, except tabs, which become spaces.
pub fn harmless_line(text: &str) -> String {
    let shown = |character| match harmless_char(character) {
        '\t' => ' ',
        '\n' => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(shown).collect()
}

fn harmless_char(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            harmless_line("a\x1b[2Jb\tc\u{9b}d\n"),
            "a\u{fffd}[2Jb c\u{fffd}d\u{fffd}"
        );
        assert_eq!(
            harmless("a\x1b]0;x\x07\n\tb\r"),
            "a\u{fffd}]0;x\u{fffd}\n\tb\u{fffd}"
        );
    }
}
