//! Converts terminal output to plain text: no escape sequences, no carriage returns, no control
//! characters.
//!
//! Works on pieces; a sequence that is cut by a piece's end is held back until it is complete. An
//! invalid sequence loses only its escape character.

/// Characters; a longer sequence is not a sequence.
const MAX_SEQUENCE: usize = 4096;

/// Cleans a text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Sanitiser {
    /// A sequence that has begun, with its introducer.
    pending: String,
}

impl Sanitiser {
    /// Appends the part of `text` to `out` that is certain already.
    pub fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.push_char(c, out);
        }
    }

    /// Ends the text: a sequence that is held back is not a sequence.
    pub fn finish(&mut self, out: &mut String) {
        let pending = std::mem::take(&mut self.pending);
        out.extend(pending.chars().filter(|&c| is_kept(c)));
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        if self.pending.is_empty() {
            match c {
                '\u{1b}' | '\u{9b}' => self.pending.push(c),
                c if is_kept(c) => out.push(c),
                _ => {}
            }
            return;
        }
        match step(&self.pending, c) {
            Step::More => {
                self.pending.push(c);
                if self.pending.len() > MAX_SEQUENCE {
                    self.finish(out);
                }
            }
            Step::Done => self.pending.clear(),
            Step::NoSequence => {
                self.finish(out);
                self.push_char(c, out);
            }
        }
    }
}

enum Step {
    More,
    /// The character ends the sequence and belongs to it.
    Done,
    /// The character cannot be part of a sequence.
    NoSequence,
}

fn step(pending: &str, c: char) -> Step {
    let is_command = pending.starts_with("\u{1b}]");
    if is_command {
        // An operating system command (a window title, a link) ends in BEL or ST.
        let ends = matches!(c, '\u{7}' | '\u{9c}') || (c == '\\' && pending.ends_with('\u{1b}'));
        return if ends { Step::Done } else { Step::More };
    }
    match c {
        '[' | ']' | '(' | ')' | '#' | ';' | '?' | ':' => Step::More,
        '0'..='9' if pending.len() > 1 => Step::More,
        ' '..='/' | '<' | '=' | '>' if pending.contains(['[', '\u{9b}']) => Step::More,
        '0'..='~' => Step::Done,
        _ => Step::NoSequence,
    }
}

fn is_kept(c: char) -> bool {
    matches!(c, '\t' | '\n') || (c >= ' ' && !matches!(c, '\u{fff9}'..='\u{fffb}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(pieces: &[&str]) -> String {
        let mut sanitiser = Sanitiser::default();
        let mut out = String::new();
        pieces
            .iter()
            .for_each(|piece| sanitiser.push(piece, &mut out));
        sanitiser.finish(&mut out);
        out
    }

    #[test]
    fn only_readable_text_is_left() {
        for (raw, plain) in [
            ("\u{1b}[31mred\u{1b}[0m\r\nline\0two\n", "red\nlinetwo\n"),
            ("\u{1b}[1;32;4mok\u{1b}[m", "ok"),
            ("\u{1b}[?25lhidden cursor\u{1b}[2K", "hidden cursor"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}(Bplain\u{1b}=\u{1b}>\u{1b}7\u{1b}8", "plain"),
            ("tab\there \u{fff9}x\u{fffb}y\u{7f}", "tab\there xy\u{7f}"),
            ("lone \u{1b}\nescape", "lone \nescape"),
            ("cut \u{1b}[3", "cut [3"),
        ] {
            assert_eq!(clean(&[raw]), plain, "{raw:?}");
        }
    }

    #[test]
    fn a_title_that_never_ends_hides_nothing_for_long() {
        let text = format!("\u{1b}]0;{}", "t".repeat(10_000));
        assert_eq!(clean(&[&text]).len(), text.len() - 1);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in "[a0;m\\[\\]\r\n\u{1b}\u{7}\\\\]{0,40}", at in 0usize..40) {
            let at = text.floor_char_boundary(at.min(text.len()));
            let (first, second) = text.split_at(at);
            let whole = clean(&[&text]);
            prop_assert_eq!(clean(&[first, second]), whole.clone());
            let left = whole.contains(['\u{1b}', '\r', '\u{7}']);
            prop_assert!(!left, "control characters are left");
        }
    }
}
