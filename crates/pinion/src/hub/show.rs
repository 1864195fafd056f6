//! Tables and text for a terminal.

use pinion_proto::Message;
use pinion_text::{columns, harmless_line};
use pinion_tui::has_colours;

/// Formats rows under their headings, in columns. Cells lose their control characters.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = vec![headings.iter().map(ToString::to_string).collect()];
    for row in rows {
        lines.push(
            row.iter()
                .map(|cell| harmless_line(cell))
                .collect::<Vec<_>>(),
        );
    }
    let text = columns(&lines);
    let (headings, rows) = text.split_once('\n').unwrap_or_default();
    strong(headings) + "\n" + rows
}

/// Returns bold text, or plain text where colours are off.
pub(crate) fn strong(text: &str) -> String {
    if has_colours(&std::io::stdout()) {
        format!("\x1b[1m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Formats messages as one JSON array, one message per line, without a line break at the end.
pub(crate) fn json_list<M: Message>(messages: &[M]) -> String {
    let lines: Vec<String> = messages.iter().map(Message::to_json).collect();
    match lines.as_slice() {
        [] => "[]".to_owned(),
        lines => format!("[\n{}\n]", lines.join(",\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_headings_and_no_control_characters() {
        let rows = [vec!["x\x1by".to_owned(), "1".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME  N\nx\u{fffd}y   1\n");
    }
}
