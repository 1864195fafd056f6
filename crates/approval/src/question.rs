//! The text of a question. Characters that could hide a part of it are made visible.

use crate::call::{Subject, ToolCall};

/// The longest shown text, in characters. Longer ones are cut in the middle, so that both ends are visible.
const MAX_LENGTH: usize = 4000;

/// A question about a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The id of the call.
    pub call_id: String,
    /// One line with the tool and its command, path or arguments.
    pub title: String,
}

impl Question {
    pub(crate) fn about(call: &ToolCall<'_>) -> Self {
        let what = match &call.subject {
            Subject::Command { text, .. } => visible(text),
            Subject::Path { written, target } => {
                let mut what = visible(written);
                let places = target.real.iter().flatten();
                // Shows the resolved path if it differs from the written one.
                for real in places.filter(|real| !target.spelled.contains(real)) {
                    what += &format!(" → {}", visible(&real.to_string_lossy()));
                }
                what
            }
            Subject::Arguments => visible(&call.arguments.to_string()),
        };
        Self {
            call_id: call.id.to_owned(),
            title: format!("Allow {}: {}?", visible(call.tool), shortened(&what)),
        }
    }
}

/// Replaces invisible and ambiguous characters by visible ones.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('⏎'),
            '\t' => out.push('⇥'),
            ' ' => out.push(' '),
            c if is_hidden(c) => out += &format!("‹U+{:04X}›", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}

/// Reports whether a character is invisible: control characters, unusual spaces, direction and width marks, private use.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{e0000}'..='\u{10ffff}'
        )
}

fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= MAX_LENGTH {
        return text.to_owned();
    }
    let part = MAX_LENGTH / 2;
    let begin: String = text.chars().take(part).collect();
    let end: String = text.chars().skip(length - part).collect();
    format!("{begin} … {} more characters … {end}", length - 2 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_shown() {
        assert_eq!(
            visible("a\n\tb\u{1b}[2K\u{202e}c\u{a0}d\r"),
            "a⏎⇥b‹U+001B›[2K‹U+202E›c‹U+00A0›d‹U+000D›"
        );
        assert_eq!(visible("grün 日本 🦀"), "grün 日本 🦀");
    }

    #[test]
    fn both_ends_of_a_long_text_are_shown() {
        let text = format!("begin{}end", "x".repeat(5000));
        let shown = shortened(&text);
        assert!(shown.starts_with("beginxx") && shown.ends_with("xxend"));
        assert!(shown.contains("… 1008 more characters …"), "{shown}");
        assert_eq!(shortened(&text[..MAX_LENGTH]), &text[..MAX_LENGTH]);
    }
}
