//! Diffs as lines: what was added and removed is seen at a glance.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::Theme;
use crate::text;

/// The rows of a diff: a unified one, or one with numbered lines as the edit tool tells of its changes.
pub(crate) fn diff_lines(diff: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let diff = text::sanitise(diff);
    let is_unified = diff
        .lines()
        .any(|line| line.starts_with("@@ ") || line.starts_with("diff --git "));
    let mut in_hunk = false;
    let mut rows = Vec::new();
    for line in diff.lines() {
        let row = match is_unified {
            true => unified(line, &mut in_hunk, theme),
            false => numbered(line, theme),
        };
        let hang = [Span::raw(
            " ".repeat(row.indent.min(usize::from(width.saturating_sub(2)) / 2)),
        )];
        let line = Line::styled(row.text.to_owned(), row.style);
        rows.extend(text::fold(line, width, &[], &hang));
    }
    rows
}

struct Row<'a> {
    text: &'a str,
    style: Style,
    /// Where the changed text begins, which is where its next row begins too.
    indent: usize,
}

fn unified<'a>(line: &'a str, in_hunk: &mut bool, theme: &Theme) -> Row<'a> {
    let style = if line.starts_with("@@ ") {
        *in_hunk = true;
        theme.accent
    } else if line.starts_with("diff ") {
        *in_hunk = false;
        theme.strong
    } else if !*in_hunk {
        match line.starts_with("--- ") || line.starts_with("+++ ") {
            true => theme.strong,
            false => theme.dim,
        }
    } else {
        marked(line, theme)
    };
    let indent = usize::from(*in_hunk);
    Row {
        text: line,
        style,
        indent,
    }
}

fn numbered<'a>(line: &'a str, theme: &Theme) -> Row<'a> {
    let after_marker = line.get(1..).unwrap_or_default();
    let unpadded = after_marker.trim_start_matches(' ');
    let digits = unpadded.bytes().take_while(u8::is_ascii_digit).count();
    let indent = match digits {
        0 => 0,
        _ => 1 + after_marker.len() - unpadded.len() + digits + 1,
    };
    Row {
        text: line,
        style: marked(line, theme),
        indent,
    }
}

fn marked(line: &str, theme: &Theme) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => theme.added,
        Some(b'-') => theme.removed,
        Some(b'\\') => theme.dim.add_modifier(Modifier::ITALIC),
        _ => theme.dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Background, Colours};
    use proptest::prelude::*;

    fn theme() -> Theme {
        Theme::new(Background::Dark, Colours::Palette)
    }

    fn rows(diff: &str, width: u16) -> Vec<(String, Style)> {
        let lines = diff_lines(diff, width, &theme());
        let style = |line: &Line<'_>| line.spans.last().map(|span| span.style).unwrap_or_default();
        lines
            .iter()
            .map(|line| (line.to_string(), style(line)))
            .collect()
    }

    #[test]
    fn numbered_lines_hang_behind_their_numbers() {
        let theme = theme();
        let expected = [
            ("     ...", theme.dim),
            ("   9 same", theme.dim),
            ("- 10 old", theme.removed),
            ("+ 10 new text", theme.added),
            ("     that is l", theme.added),
            ("     ong", theme.added),
        ];
        let diff = "     ...\n   9 same\n- 10 old\n+ 10 new text that is long";
        let found = rows(diff, 14);
        let found: Vec<(&str, Style)> = found
            .iter()
            .map(|(text, style)| (text.as_str(), *style))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_unified_diff_has_headers_and_hunks() {
        let theme = theme();
        let diff = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn\n--- gone\n+\u{1b}[31mnew\n same\n\\ No newline at end of file";
        let styles: Vec<Style> = rows(diff, 80).into_iter().map(|(_, style)| style).collect();
        let last = theme.dim.add_modifier(Modifier::ITALIC);
        assert_eq!(
            styles,
            [
                theme.strong,
                theme.dim,
                theme.strong,
                theme.strong,
                theme.accent,
                theme.removed,
                theme.added,
                theme.dim,
                last
            ]
        );
        assert_eq!(rows(diff, 80)[6].0, "+new");
    }

    proptest! {
        #[test]
        fn any_diff_fits(diff in "([-+ @\\\\][ 0-9]{0,4}[a-z日é ]{0,20}\n){0,9}", width in 2u16..60) {
            for (row, _) in rows(&diff, width) {
                prop_assert!(text::width(&row) <= usize::from(width), "{row:?}");
            }
        }
    }
}
