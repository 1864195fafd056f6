//! Tables and text for a terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use pinion_proto::Message;

/// Formats rows under their headings, in columns.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(plain(cell).chars().count());
        }
    }
    let line = |cells: Vec<String>| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        line.trim_end().to_owned() + "\n"
    };
    let headings = line(headings.iter().map(ToString::to_string).collect());
    let mut text = strong(headings.trim_end()) + "\n";
    for row in rows {
        text += &line(row.iter().map(|cell| plain(cell)).collect());
    }
    text
}

/// Returns the text on one line, without control characters that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    harmless(text).replace('\t', " ").replace('\n', "\u{fffd}")
}

/// Returns the text without control characters except line breaks and tabs.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// Returns bold text, or plain text where colours are off.
pub(crate) fn strong(text: &str) -> String {
    match colourful() {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

fn colourful() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Formats messages as one JSON array, one message per line.
pub(crate) fn json_list<M: Message>(messages: &[M]) -> String {
    let lines: Vec<String> = messages.iter().map(Message::to_json).collect();
    match lines.as_slice() {
        [] => "[]\n".to_owned(),
        lines => format!("[\n{}\n]\n", lines.join(",\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_does_not_move_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\tc\u{9b}d"), "a\u{fffd}[2Jb c\u{fffd}d");
        assert_eq!(
            harmless("a\x1b]0;x\x07\n\tb\r"),
            "a\u{fffd}]0;x\u{fffd}\n\tb\u{fffd}"
        );
        let rows = [vec!["x\x1by".to_owned(), "1".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME  N\nx\u{fffd}y   1\n");
    }
}
