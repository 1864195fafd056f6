//! Sanitises text: removes escape sequences, control characters and everything that reverses or
//! hides other text.
//!
//! A sequence that never ends cannot hide text for long: at a line end, or after too many
//! characters, the sanitiser shows what it held back.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Cells from one tab stop to the next.
const TAB_WIDTH: usize = 4;
/// Characters after which an unfinished sequence is shown as text.
const MAX_SEQUENCE: usize = 4096;

/// Removes everything a terminal would act on. Lines end in LF, tabs become spaces, colours are
/// removed, and characters that change the direction of text become `�`.
pub fn sanitise(text: &str) -> Cow<'_, str> {
    if is_sanitised(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut sanitiser = Sanitiser::default();
    sanitiser.push(text, &mut clean);
    sanitiser.finish(&mut clean);
    Cow::Owned(clean)
}

/// Sanitises a text and joins its lines.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in sanitise(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Reports whether a text may be shown unchanged.
pub fn is_sanitised(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(treatment(c), Treatment::Keep))
}

/// Sanitises a text that arrives in pieces.
#[derive(Debug, Default, Clone)]
pub struct Sanitiser {
    state: SequenceState,
    /// The sequence read so far, without its introducer.
    held: String,
    /// Cells since the start of the line, for the next tab.
    column: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SequenceState {
    #[default]
    Text,
    /// After a carriage return, which ends the line only if no line feed follows.
    Return,
    /// After ESC.
    Escape,
    /// In a control sequence, before its last character.
    Control,
    /// In a string for the terminal: a title, a link, an image.
    TerminalString,
    /// In such a string, after ESC.
    TerminalStringEscape,
}

enum Treatment {
    Keep,
    Drop,
    Mark,
    Tab,
    NewLine,
    Return,
    Begin(SequenceState),
}

fn treatment(c: char) -> Treatment {
    match c {
        '\n' | ' '..='~' => Treatment::Keep,
        '\t' => Treatment::Tab,
        '\r' => Treatment::Return,
        '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Treatment::NewLine,
        '\u{1b}' => Treatment::Begin(SequenceState::Escape),
        '\u{9b}' => Treatment::Begin(SequenceState::Control),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
            Treatment::Begin(SequenceState::TerminalString)
        }
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Treatment::Drop,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Treatment::Mark,
        // Invisible: soft hyphens, direction marks, word joiners, byte order marks, annotations,
        // tags.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' => Treatment::Drop,
        '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => Treatment::Drop,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => Treatment::Drop,
        // Stands for a piece of an image in terminals that show images; text from outside may not
        // contain it.
        '\u{10eeee}' => Treatment::Drop,
        _ => Treatment::Keep,
    }
}

impl Sanitiser {
    /// Creates a sanitiser that continues after a sanitised text.
    pub fn after(text: &str) -> Self {
        let line = text.rsplit('\n').next().unwrap_or_default();
        Self {
            column: line.chars().map(cells).sum(),
            ..Self::default()
        }
    }

    /// Appends to `out` the part of `text` that is already certain.
    pub fn push(&mut self, text: &str, out: &mut String) {
        text.chars().for_each(|c| self.push_char(c, out));
    }

    /// Ends the text: characters held back were not a sequence and are shown.
    pub fn finish(&mut self, out: &mut String) {
        self.state = SequenceState::Text;
        let held = std::mem::take(&mut self.held);
        for c in held
            .chars()
            .filter(|&c| matches!(treatment(c), Treatment::Keep))
        {
            self.show(c, out);
        }
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        match self.state {
            SequenceState::Text => self.text(c, out),
            SequenceState::Return => {
                self.state = SequenceState::Text;
                if c != '\n' {
                    self.show('\n', out);
                }
                self.text(c, out);
            }
            SequenceState::Escape => match c {
                '[' if self.held.is_empty() => self.hold(c, SequenceState::Control, out),
                ']' | 'P' | 'X' | '^' | '_' if self.held.is_empty() => {
                    self.hold(c, SequenceState::TerminalString, out);
                }
                ' '..='/' => self.hold(c, SequenceState::Escape, out),
                '0'..='~' => self.done(),
                _ => self.no_sequence(c, out),
            },
            SequenceState::Control => match c {
                ' '..='?' => self.hold(c, SequenceState::Control, out),
                '@'..='~' => self.done(),
                _ => self.no_sequence(c, out),
            },
            SequenceState::TerminalString => match c {
                '\u{7}' | '\u{9c}' => self.done(),
                '\u{1b}' => self.hold(c, SequenceState::TerminalStringEscape, out),
                '\n' => self.no_sequence(c, out),
                _ => self.hold(c, SequenceState::TerminalString, out),
            },
            SequenceState::TerminalStringEscape => match c {
                '\\' => self.done(),
                // Another sequence begins and ends this one, as in terminals.
                _ => {
                    self.done();
                    self.state = SequenceState::Escape;
                    self.push_char(c, out);
                }
            },
        }
    }

    fn text(&mut self, c: char, out: &mut String) {
        match treatment(c) {
            Treatment::Keep => self.show(c, out),
            Treatment::Drop => {}
            Treatment::Mark => self.show('\u{fffd}', out),
            Treatment::NewLine => self.show('\n', out),
            Treatment::Return => self.state = SequenceState::Return,
            Treatment::Begin(state) => self.state = state,
            Treatment::Tab => {
                for _ in 0..TAB_WIDTH - self.column % TAB_WIDTH {
                    self.show(' ', out);
                }
            }
        }
    }

    fn show(&mut self, c: char, out: &mut String) {
        out.push(c);
        self.column = match c {
            '\n' => 0,
            c => self.column + cells(c),
        };
    }

    fn hold(&mut self, c: char, state: SequenceState, out: &mut String) {
        self.state = state;
        self.held.push(c);
        if self.held.len() > MAX_SEQUENCE {
            self.finish(out);
        }
    }

    fn done(&mut self) {
        self.state = SequenceState::Text;
        self.held.clear();
    }

    fn no_sequence(&mut self, c: char, out: &mut String) {
        self.finish(out);
        self.push_char(c, out);
    }
}

fn cells(c: char) -> usize {
    c.width().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_readable_text_is_left() {
        for (raw, clean) in [
            ("plain\ntext", "plain\ntext"),
            ("\u{1b}[31mred\u{1b}[0m\r\nline\0two", "red\nlinetwo"),
            ("10%\r20%\r", "10%\n20%"),
            ("\u{1b}[?25lhidden\u{1b}[2K", "hidden"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]52;c;aGk=\u{9c}safe", "safe"),
            ("\u{1b}_Gf=100,a=T;AAAA\u{1b}\\picture", "picture"),
            ("\u{1b}]0;x\u{1b}[31mred", "red"),
            ("\u{1b}Pq#0\u{1b}\\sixel", "sixel"),
            ("\u{9b}31mred\u{9d}0;t\u{7}!", "red!"),
            ("\u{1b}(Bplain\u{1b}=\u{1b}>\u{1b}7\u{1b}8\u{1b}c", "plain"),
            ("lone \u{1b}\nescape", "lone \nescape"),
            ("cut \u{1b}[3", "cut [3"),
            (
                "title \u{1b}]0;never ends\nnext",
                "title ]0;never ends\nnext",
            ),
            ("a\tb\n\tc", "a   b\n    c"),
            ("日\tb", "日  b"),
            ("if \u{202e}nimda\u{202c} {", "if \u{fffd}nimda\u{fffd} {"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("\u{e0041}\u{10eeee}\u{305}x", "\u{305}x"),
            ("👩‍👧 e\u{301}", "👩‍👧 e\u{301}"),
        ] {
            assert_eq!(sanitise(raw), clean, "{raw:?}");
        }
    }

    #[test]
    fn a_title_that_never_ends_hides_nothing_for_long() {
        let text = format!("\u{1b}]0;{}", "t".repeat(10_000));
        assert_eq!(sanitise(&text).len(), text.len() - 1);
    }

    #[test]
    fn many_lines_become_one() {
        assert_eq!(one_line(" a\tb\r\n\n c\u{1b}[1m "), "a b c");
    }

    fn nasty() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[a0;m\\[\\]P_\\\\\t\r\n\u{1b}\u{7}\u{9b}\u{9c}\u{9d}\u{202e}日]{0,40}",
        ]
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_a_terminal_obeys(text in nasty()) {
            let clean = sanitise(&text).into_owned();
            prop_assert!(!clean.chars().any(|c| c.is_control() && c != '\n'), "{clean:?}");
            prop_assert!(is_sanitised(&clean));
        }

        #[test]
        fn pieces_make_no_difference(text in nasty(), at in 0usize..60) {
            let at = text.floor_char_boundary(at.min(text.len()));
            let mut clean = String::new();
            let mut sanitiser = Sanitiser::default();
            sanitiser.push(&text[..at], &mut clean);
            sanitiser.push(&text[at..], &mut clean);
            sanitiser.finish(&mut clean);
            prop_assert_eq!(clean, sanitise(&text).into_owned());
        }

        #[test]
        fn sanitised_text_before_does_not_change_the_result(before in "[a日\n ]{0,12}", after in nasty()) {
            let mut clean = before.clone();
            let mut sanitiser = Sanitiser::after(&before);
            sanitiser.push(&after, &mut clean);
            sanitiser.finish(&mut clean);
            let whole = format!("{before}{after}");
            prop_assert_eq!(clean, sanitise(&whole).into_owned());
        }
    }
}
