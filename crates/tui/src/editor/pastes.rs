//! Pasted text: sanitised, and shown as a marker if it is long.

use std::borrow::Cow;

use super::unit::{self, MAX_MARKERS};

/// A paste with more lines is shown as a marker.
const MAX_LINES_SHOWN: usize = 10;

/// A paste with more characters is shown as a marker.
const MAX_CHARACTERS_SHOWN: usize = 1000;

/// Bytes above which any text is treated as a paste, so that every keystroke stays quick.
const MAX_BYTES_SHOWN: usize = 64 * 1024;

/// The contents of markers, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Pastes {
    folded: Vec<Folded>,
    /// Pastes that were long enough to get a visible number.
    numbered: usize,
}

#[derive(Debug)]
struct Folded {
    content: String,
    label: String,
    reason: MarkerReason,
}

/// The reason why a text has a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerReason {
    Long,
    LooksLikeMarker,
}

/// A part of a text: typed, or a large paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Typed(String),
    Pasted(String),
}

impl Piece {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Typed(text) | Self::Pasted(text) => text,
        }
    }
}

impl Pastes {
    /// Returns the text to insert for a paste: the paste itself or a marker.
    pub(super) fn fold(&mut self, content: String) -> String {
        let lines = content.lines().count();
        let is_long =
            lines > MAX_LINES_SHOWN || content.chars().nth(MAX_CHARACTERS_SHOWN).is_some();
        if !is_long {
            return self.guard(content);
        }
        let number = self.numbered + 1;
        let label = if lines > MAX_LINES_SHOWN {
            format!("[paste #{number} +{lines} lines]")
        } else {
            format!("[paste #{number} {} chars]", content.chars().count())
        };
        match self.add(&content, label, MarkerReason::Long) {
            Some(marker) => {
                self.numbered = number;
                marker.to_string()
            }
            None => self.guard(content),
        }
    }

    /// Replaces characters of a text that could be mistaken for markers by markers of their own.
    pub(super) fn guard(&mut self, content: String) -> String {
        if !unit::has_markers(&content) {
            return content;
        }
        let mut guarded = String::with_capacity(content.len());
        for character in content.chars() {
            if unit::marker_number(character).is_none() {
                guarded.push(character);
                continue;
            }
            let own = character.to_string();
            let known = self.folded.iter().position(|folded| folded.content == own);
            let marker = known
                .and_then(unit::marker)
                .or_else(|| self.add(&own, "\u{fffd}".to_owned(), MarkerReason::LooksLikeMarker));
            guarded.push(marker.unwrap_or('\u{fffd}'));
        }
        guarded
    }

    fn add(&mut self, content: &str, label: String, reason: MarkerReason) -> Option<char> {
        let marker = unit::marker(self.folded.len()).filter(|_| self.folded.len() < MAX_MARKERS)?;
        self.folded.push(Folded {
            content: content.to_owned(),
            label,
            reason,
        });
        Some(marker)
    }

    /// The text shown for a marker.
    pub(super) fn label(&self, number: usize) -> &str {
        self.folded
            .get(number)
            .map_or("\u{fffd}", |folded| &folded.label)
    }

    /// Replaces the markers of a text by their contents.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        for character in text.chars() {
            match unit::marker_number(character).and_then(|number| self.folded.get(number)) {
                Some(folded) => expanded.push_str(&folded.content),
                None => expanded.push(character),
            }
        }
        expanded
    }

    /// Splits a text into pieces without markers.
    pub(super) fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut typed = String::new();
        for character in text.chars() {
            match unit::marker_number(character).and_then(|number| self.folded.get(number)) {
                Some(folded) if folded.reason == MarkerReason::Long => {
                    pieces.push(Piece::Typed(std::mem::take(&mut typed)));
                    pieces.push(Piece::Pasted(folded.content.clone()));
                }
                Some(folded) => typed.push_str(&folded.content),
                None => typed.push(character),
            }
        }
        pieces.push(Piece::Typed(typed));
        pieces
    }

    /// Joins pieces to a text with markers.
    pub(super) fn join(&mut self, pieces: &[Piece]) -> String {
        let marked = pieces.iter().map(|piece| match piece {
            Piece::Typed(text) if text.len() <= MAX_BYTES_SHOWN => self.guard(text.clone()),
            Piece::Typed(text) | Piece::Pasted(text) => self.fold(text.clone()),
        });
        marked.collect()
    }

    /// Drops all contents. Valid only when no marker is left in any text.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Removes everything a terminal would act on: line ends become `\n`, escape
/// sequences and other control characters are removed, tabs stay.
pub(super) fn sanitise_paste(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|character| character.is_control() && !matches!(character, '\n' | '\t'))
    {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\n' | '\t' => clean.push(character),
            // Other ends of lines and pages.
            '\u{b}' | '\u{c}' | '\u{85}' => clean.push('\n'),
            '\r' => {
                clean.push('\n');
                rest.next_if_eq(&'\n');
            }
            // A coloured line copied from a terminal: the whole colour sequence is removed.
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                while rest.next_if(|next| matches!(next, ' '..='?')).is_some() {}
                rest.next_if(|next| matches!(next, '@'..='~'));
            }
            _ if character.is_control() => {}
            _ => clean.push(character),
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_goes() {
        let cases = [
            ("a\r\nb\rc\n", "a\nb\nc\n"),
            ("\u{1b}[1;31mred\u{1b}[0m\u{7}", "red"),
            ("a\u{1b}]0;title\u{7}b", "a]0;titleb"),
            ("page\u{c}line\u{b}\u{85}", "page\nline\n\n"),
            ("tab\there\u{0}\u{7f}\u{9b}x", "tab\therex"),
            ("\u{1b}[", ""),
            ("plain é 中", "plain é 中"),
        ];
        for (pasted, expected) in cases {
            assert_eq!(sanitise_paste(pasted), expected, "{pasted:?}");
        }
    }

    #[test]
    fn long_pastes_become_markers_and_come_back_whole() {
        let mut pastes = Pastes::default();
        let ten = "x\n".repeat(9) + "x";
        assert_eq!(pastes.fold(ten.clone()), ten);
        let eleven = "x\n".repeat(10) + "x";
        let marker = pastes.fold(eleven.clone());
        assert_eq!(pastes.label(0), "[paste #1 +11 lines]");
        assert_eq!(pastes.expand(&format!("<{marker}>")), format!("<{eleven}>"));
        let long = "é".repeat(1001);
        let second = pastes.fold(long.clone());
        assert_eq!(pastes.label(1), "[paste #2 1001 chars]");
        assert_eq!(pastes.expand(&second), long);
        assert_eq!(pastes.fold("é".repeat(1000)), "é".repeat(1000));
    }

    #[test]
    fn private_use_characters_are_not_mistaken_for_markers() {
        let mut pastes = Pastes::default();
        let foreign = "a\u{100000}\u{10fffd}\u{100000}b".to_owned();
        let guarded = pastes.guard(foreign.clone());
        assert_eq!(pastes.expand(&guarded), foreign);
        let long = pastes.fold("y\n".repeat(20));
        assert_eq!(
            pastes.expand(&(guarded + &long)),
            foreign + &"y\n".repeat(20)
        );
    }
}
